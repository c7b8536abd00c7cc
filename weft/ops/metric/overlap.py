"""How much masks overlap."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from weft.ir.dtype import float32
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.declaration import catalogue
from weft.ops.metric.mean import quotient

Array = np.ndarray[Any, Any]


def masks(x: Value, *, classes: int, indexed: bool) -> Value:
    """Masks (N, C, ...) of 0 and 1 from class numbers (N, ...), or from masks or scores."""
    if indexed:
        return catalogue.one_hot(x, depth=classes, axis=1, dtype=float32)
    if x.dtype.is_floating:
        return catalogue.one_hot(catalogue.argmax(x, axis=1), depth=classes, axis=1, dtype=float32)
    return catalogue.cast(x, dtype=float32)


def sums_of_overlap(x: Value, y: Value) -> tuple[Value, ...]:
    """Of masks (N, C, ...): the sizes (N, C) of their intersection, of the one, of the other."""
    axes = tuple(range(2, len(known(x.shape))))
    return tuple([catalogue.sum(v, axes=axes) for v in (x * y, x, y)])


def dice(both: Array, preds: Array, target: Array, *, average: str) -> Array:
    """Twice the intersection over the sum of both sizes (N, C), averaged over classes, then images.

    Images without a class do not count for it.
    """
    parts, wholes = 2.0 * both, preds + target
    if average == "micro":
        parts, wholes = parts.sum(-1), wholes.sum(-1)
    found = np.where(wholes > 0, quotient(parts, wholes), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of means without numbers, which are NaN
        if average == "macro":
            found = np.nanmean(found, -1)
        elif average == "weighted":
            weights = quotient(target, target.sum(-1, keepdims=True))
            empty = np.isnan(found).all(-1)
            found = np.where(empty, np.nan, np.nansum(found * weights, -1))
        return np.nanmean(found, 0)

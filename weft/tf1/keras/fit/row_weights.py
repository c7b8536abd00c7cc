"""Example weights: given ones times class weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weft.errors import ArgumentError, ShapeError
from weft.tf1.framework.graph import fail

Array = np.ndarray[Any, Any]


def row_weights(
    given: Any, factors: Any, targets: Sequence[Array], names: Sequence[str]
) -> list[Array] | None:
    """Weights for each output; `None` if there are none.

    Args:
        given: an array, a list of them, or by output; or `None`.
        factors: class weights by number; for several outputs a list or by output.

    Raises:
        ShapeError: the number of weights differs from the targets'.
        ArgumentError: outputs do not match.
    """
    own, classes = _each(given, names, "sample_weight"), _each(factors, names, "class_weight")
    if all(x is None for x in (*own, *classes)):
        return None
    found: list[Array] = []
    for weights, table, y, name in zip(own, classes, targets, names, strict=True):
        rows = np.ones(len(y), np.float32) if weights is None else np.asarray(weights, np.float32)
        if len(rows) != len(y):
            raise fail(
                ShapeError,
                f"fit: expected a weight for each of {len(y)} rows of {name}, got {len(rows)}",
            )
        if table:
            factors_of_rows = _by_class(y, table, name)
            rows = rows * factors_of_rows.reshape(-1, *[1] * (rows.ndim - 1))
        found.append(rows)
    return found


def _each(given: Any, names: Sequence[str], what: str) -> list[Any]:
    if given is None:
        return [None] * len(names)
    if isinstance(given, Mapping) and any(k in names for k in given):
        return [given.get(n) for n in names]
    several = isinstance(given, list | tuple) and (
        len(names) > 1 or (len(given) == 1 and np.ndim(given[0]) > 0)
    )
    items = list(given) if several else [given]
    if len(items) != len(names):
        raise fail(
            ArgumentError, f"fit: expected {what} for the outputs {list(names)}, got {len(items)}"
        )
    return items


def _by_class(y: Array, table: Mapping[Any, Any], name: str) -> Array:
    if y.ndim > 2:
        raise fail(
            ArgumentError,
            f"fit: expected targets (N,), (N, 1) or one-hot (N, C) of {name} with class_weight, "
            f"got {y.shape}; give sample_weight instead",
        )
    classes = y.argmax(-1) if y.ndim > 1 and y.shape[-1] > 1 else y.reshape(len(y))
    numbers = classes.astype(np.int64)
    missing = sorted(set(np.unique(numbers).tolist()) - {int(k) for k in table})
    if missing:
        raise fail(
            ArgumentError,
            f"fit: expected class_weight for all classes of {name}, it lacks {missing}",
        )
    known = {int(k): float(v) for k, v in table.items()}
    return np.array([known[n] for n in numbers.tolist()], np.float32)

"""Weighted totals, of which means over batches are made; and means of what was added up."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.ops.shape.creation import ones_like

Array = np.ndarray[Any, Any]


def weighted_total(x: Value, weights: Value | None = None) -> tuple[Value, Value]:
    """The weighted sum and the sum of the weights, which broadcast; all weigh 1 without them."""
    spread = ones_like(x) if weights is None else ones_like(x) * weights
    return catalogue.sum(x if weights is None else x * spread), catalogue.sum(spread)


def inner_product(x: Value, y: Value, *, axis: int) -> Value:
    """The sum of products along an axis, which stays with size 1."""
    return catalogue.sum(x * y, axes=(axis,), keepdims=True)


def quotient(a: Any, b: Any) -> Array:
    """`a / b` of NumPy arrays, in float64, and 0 where `b` is 0."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return np.divide(a, b, out=np.zeros(np.broadcast(a, b).shape), where=b != 0)


def average(x: Array, weights: Array) -> Array:
    """The weighted mean of an array; 0 if the weights add up to 0."""
    return quotient((x * weights).sum(), weights.sum())

"""Distances and similarities of vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import recorded
from weft.errors import ArgumentError, ShapeError
from weft.ir.node import Value
from weft.ir.shape import known, normal_axis, show
from weft.nn.functional.common import promoted, refuse_complex
from weft.ops.base import at_user_line, catalogue, constant_of
from weft.ops.declaration.fact import Autocast


def p_norm(x: Value, p: float, axis: int, keepdims: bool = False) -> Value:
    """The p-norm along an axis; the slope at 0 is 0."""
    where: dict[str, Any] = {"axes": (axis,), "keepdims": keepdims}
    size = catalogue.abs(x)
    if p == math.inf:
        return catalogue.max(size, **where)
    if p == 1:
        return catalogue.sum(size, **where)
    if p == 0:
        some = catalogue.not_equal(size, constant_of(0, size.dtype))
        return catalogue.sum(catalogue.cast(some, dtype=size.dtype), **where)
    if p == 2:
        length = size if x.dtype.is_complex else x
        return _root(catalogue.sum(catalogue.square(length), **where), 0.5)
    some = catalogue.not_equal(size, constant_of(0, size.dtype))
    safe = catalogue.select(some, size, constant_of(1, size.dtype))
    powers = catalogue.select(some, catalogue.power(safe, p), constant_of(0, size.dtype))
    return _root(catalogue.sum(powers, **where), 1 / p)


def _root(total: Value, exponent: float) -> Value:
    zero = constant_of(0, total.dtype)
    some = catalogue.not_equal(total, zero)
    safe = catalogue.select(some, total, constant_of(1, total.dtype))
    root = catalogue.sqrt(safe) if exponent == 0.5 else catalogue.power(safe, exponent)
    return catalogue.select(some, root, zero)


def distance(x: Value, y: Value, p: float, eps: float, keepdims: bool = False) -> Value:
    """The p-norm of `x - y + eps` along the last axis."""
    return p_norm(x - y + eps, p, -1, keepdims)


@recorded(autocast=Autocast.FLOAT32)
def _pairwise_distance(x: Value, y: Value, *, p: float, eps: float, keepdim: bool) -> Value:
    return distance(x, y, p, eps, keepdim)


def pairwise_distance(
    x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Any:
    """The p-norm of `x1 - x2 + eps` along the last dimension."""
    xs = promoted(x1, x2)
    return _pairwise_distance(*xs, p=float(p), eps=float(eps), keepdim=bool(keepdim))


@recorded(autocast=Autocast.FLOAT32)
def _cosine_similarity(x: Value, y: Value, *, dim: int, eps: float) -> Value:
    shape = known((x * y).shape) or (1,)
    axis = normal_axis(dim, len(shape))
    x, y = (catalogue.broadcast_to(v, shape=shape) for v in (x, y))
    least = constant_of(eps, x.dtype)
    sizes = [catalogue.maximum(p_norm(v, 2, axis), least) for v in (x, y)]
    return catalogue.sum(x * y, axes=(axis,)) / (sizes[0] * sizes[1])


def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """`x1 . x2 / (|x1| * |x2|)` along a dimension; lengths count as `eps` at least."""
    return _cosine_similarity(*promoted(x1, x2), dim=dim, eps=float(eps))


@recorded(autocast=Autocast.FLOAT32)
def _normalize(x: Value, *, p: float, dim: int, eps: float) -> Value:
    shape = known(x.shape)
    vector = x if shape else catalogue.reshape(x, shape=(1,))
    size = p_norm(vector, p, normal_axis(dim, len(shape) or 1), True)
    y = vector / catalogue.maximum(size, constant_of(eps, x.dtype))
    return y if shape else catalogue.reshape(y, shape=())


def normalize(input: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Any:
    """`x` over its p-norm along a dimension, which counts as `eps` at least."""
    return _normalize(input, p=float(p), dim=dim, eps=float(eps))


@recorded(autocast=Autocast.FLOAT32)
def _pdist(x: Value, *, p: float) -> Value:
    n = known(x.shape)[0]
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    rows = [catalogue.gather(x, constant_of(index)) for index in (ends[:, 0], ends[:, 1])]
    return p_norm(rows[0] - rows[1], p, -1)


def pdist(input: Any, p: float = 2.0) -> Any:
    """The p-norms of the differences of every pair of rows, in the order (0, 1), (0, 2), ...

    Raises:
        DTypeError: complex numbers.
        ShapeError: no matrix.
        ArgumentError: a negative `p`.
    """
    if not p >= 0:
        raise ArgumentError(f"pdist: expected p >= 0, got {p}{at_user_line()}")
    if len(dims_of(input)) != 2:
        text = f"pdist: expected a matrix, got shape {show(dims_of(input))}"
        raise ShapeError(text + at_user_line())
    refuse_complex("pdist", input)
    return _pdist(input, p=float(p))

"""Distances and similarities of vectors along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.ir.node import Value
from weft.ir.shape import known, normal_axis
from weft.ops.declaration import catalogue, constant_of
from weft.ops.declaration.fact import Autocast, autocasting
from weft.ops.reduction.norm import vector_norm


def _length(x: Value, p: float, axis: int, keepdims: bool = False) -> Value:
    """The p-norm along an axis; the gradient at 0 is 0."""
    return vector_norm(x, ord=p, axes=(axis,), keepdims=keepdims)


@autocasting(Autocast.FLOAT32)
def pairwise_distance(x: Value, y: Value, *, p: float, eps: float, keepdim: bool = False) -> Value:
    """The p-norm of `x - y + eps` along the last axis."""
    return _length(x - y + eps, p, -1, keepdim)


@autocasting(Autocast.FLOAT32)
def cosine_similarity(x: Value, y: Value, *, dim: int, eps: float) -> Value:
    """`x . y / (|x| * |y|)` along an axis; norms are at least `eps`."""
    shape = known((x * y).shape) or (1,)
    axis = normal_axis(dim, len(shape))
    x, y = (catalogue.broadcast_to(v, shape=shape) for v in (x, y))
    if x.dtype.size == 2:  # products of norms may be larger than the cosine by far
        a, b = (catalogue.cast(v, dtype="float32") for v in (x, y))
        return catalogue.cast(cosine_similarity(a, b, dim=axis, eps=eps), dtype=x.dtype)
    least = constant_of(eps, x.dtype)
    sizes = [catalogue.maximum(_length(v, 2, axis), least) for v in (x, y)]
    return catalogue.sum(x * y, axes=(axis,)) / (sizes[0] * sizes[1])


@autocasting(Autocast.FLOAT32)
def normalize(x: Value, *, p: float, dim: int, eps: float) -> Value:
    """`x` divided by its p-norm along an axis, at least `eps`."""
    shape = known(x.shape)
    vector = x if shape else catalogue.reshape(x, shape=(1,))
    size = _length(vector, p, normal_axis(dim, len(shape) or 1), True)
    y = vector / catalogue.maximum(size, constant_of(eps, x.dtype))
    return y if shape else catalogue.reshape(y, shape=())


def l2_normalize(x: Value, *, axes: Any, epsilon: float) -> Value:
    """`x / sqrt(max(sum(x ** 2), epsilon))` over axes."""
    total = catalogue.sum(catalogue.square(x), axes=axes, keepdims=True)
    return x * catalogue.rsqrt(catalogue.maximum(total, epsilon))


@autocasting(Autocast.FLOAT32)
def pdist(x: Value, *, p: float) -> Value:
    """The p-norm distances of all pairs of rows."""
    n = known(x.shape)[0]
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    rows = [catalogue.gather(x, constant_of(index)) for index in (ends[:, 0], ends[:, 1])]
    return _length(rows[0] - rows[1], p, -1)


@autocasting(Autocast.FLOAT32)
def cdist(x: Value, y: Value, *, p: float) -> Value:
    """The p-norm distance between each row of `x` and each row of `y`."""
    return _length(catalogue.expand_dims(x, axis=-2) - catalogue.expand_dims(y, axis=-3), p, -1)

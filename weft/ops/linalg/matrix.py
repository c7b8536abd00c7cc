"""What formulas on (batches of) matrices share, as graph values."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.ir.dtype import DType
from weft.ir.node import Value
from weft.ops.declaration import catalogue, constant_of
from weft.ops.declaration.rule import dims_of as dims
from weft.ops.shape import diagonal as places


def mm(*xs: Value) -> Value:
    """The matmul of several, from the left."""
    found = xs[0]
    for x in xs[1:]:
        found = catalogue.matmul(found, x)
    return found


def T(x: Value) -> Value:
    """The transpose."""
    rank = len(dims(x))
    return catalogue.transpose(x, perm=(*range(rank - 2), rank - 1, rank - 2))


def conj(x: Value) -> Value:
    """The conjugate; real numbers are returned as they are."""
    return catalogue.conj(x) if x.dtype.is_complex else x


def H(x: Value) -> Value:
    """The conjugate transpose."""
    return conj(T(x))


def column(x: Value) -> Value:
    """A vector as a column."""
    return catalogue.expand_dims(x, axis=-1)


def row(x: Value) -> Value:
    """A vector as a row."""
    return catalogue.expand_dims(x, axis=-2)


def constant(array: Any, dtype: DType) -> Value:
    """An array as a value of a dtype."""
    return constant_of(np.asarray(array).astype(dtype.numpy))


def eye(n: int, dtype: DType) -> Value:
    """The identity matrix."""
    return constant(np.eye(n), dtype)


def diagonal(x: Value) -> Value:
    """The diagonals of matrices."""
    return places.diagonal(x, 0, -2, -1)


def like(x: Value, z: Value) -> Value:
    """`x` as complex if `z` is complex."""
    return x if x.dtype is z.dtype else catalogue.cast(x, dtype=z.dtype)


def symmetric(x: Value) -> Value:
    """The mean of a matrix and its conjugate transpose."""
    return (x + H(x)) * constant(0.5, x.dtype)


def sum_to(x: Value, shape: tuple[int, ...]) -> Value:
    """Summed over the broadcast axes."""
    return x if dims(x) == shape else catalogue.sum_to(x, shape=shape)

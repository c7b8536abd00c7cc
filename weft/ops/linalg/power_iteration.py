"""The largest singular value of a weight, seen as a matrix, by power iteration."""

from __future__ import annotations

import math

from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.declaration import catalogue


def as_matrix(weight: Value, dim: int) -> Value:
    """A row for each entry along a dimension."""
    dims = known(weight.shape)
    order = (dim, *[i for i in range(len(dims)) if i != dim])
    rows = dims[dim]
    moved = catalogue.transpose(weight, perm=order)
    return catalogue.reshape(moved, shape=(rows, math.prod(dims) // rows))


def singular_vectors(
    weight: Value, start: Value, *, dim: int, steps: int, eps: float, right: bool = False
) -> tuple[Value, Value]:
    """The left and right singular vectors of the largest singular value, after some steps.

    Args:
        start: the left vector to start from, or the right one if `right`.
    """
    matrix = as_matrix(weight, dim)
    row = column = catalogue.expand_dims(start, axis=-1)
    for _ in range(steps):
        if right:
            column = _unit(catalogue.matmul(matrix, row), eps)
        row = _unit(catalogue.matmul(matrix, column, transpose_x=True), eps)
        if not right:
            column = _unit(catalogue.matmul(matrix, row), eps)
    return catalogue.squeeze(column, axes=(-1,)), catalogue.squeeze(row, axes=(-1,))


def _unit(x: Value, eps: float) -> Value:
    size = catalogue.sqrt(catalogue.sum(x * x))
    return x / catalogue.maximum(size, eps)


def singular_value(weight: Value, u: Value, v: Value, *, dim: int) -> Value:
    """`u @ weight @ v`, of the weight as a matrix."""
    product = catalogue.matmul(as_matrix(weight, dim), catalogue.expand_dims(v, axis=-1))
    return catalogue.sum(product * catalogue.expand_dims(u, axis=-1))

"""Diagonals of matrices: taken out, put in, and summed."""

from __future__ import annotations

from weft.errors import ShapeError
from weft.ir.node import Value
from weft.ir.shape import show
from weft.ops.array import axis_of
from weft.ops.base import at_user_line, catalogue
from weft.ops.rule import concrete
from weft.ops.slicing import slice_, unslice

__all__ = ["diag", "diag_embed", "diagonal", "trace"]


def diagonal(x: Value, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Value:
    """Elements `i, i + offset` along two axes, as a last axis in place of them; as in NumPy.

    Raises:
        ShapeError: a rank below 2, or the same axis twice; the shape must be known.
    """
    dims = concrete(x)
    a, b = _two_axes("diagonal", x, axis1, axis2)
    rest = [i for i in range(len(dims)) if i not in (a, b)]
    rows, columns = dims[a], dims[b]
    moved = catalogue.transpose(x, perm=(*rest, a, b))
    lead = tuple(dims[i] for i in rest)
    first, count = _span(rows, columns, offset)
    flat = catalogue.reshape(moved, shape=(*lead, rows * columns))
    zeros = (0,) * len(lead)
    return slice_(
        flat,
        begin=(*zeros, first),
        end=(*lead, first + count * (columns + 1)),
        strides=(*[1] * len(lead), columns + 1),
    )


def _two_axes(name: str, x: Value, axis1: int, axis2: int) -> tuple[int, int]:
    if len(concrete(x)) < 2:
        raise ShapeError(
            f"{name}: expected x of rank at least 2, got shape {show(x.shape)}{at_user_line()}"
        )
    a, b = axis_of(name, x, axis1), axis_of(name, x, axis2)
    if a == b:
        raise ShapeError(
            f"{name}: expected two different axes, got {axis1} and {axis2}{at_user_line()}"
        )
    return a, b


def _span(rows: int, columns: int, offset: int) -> tuple[int, int]:
    """The first element of a diagonal of a matrix in row-major order, and how many it has."""
    first = offset if offset >= 0 else -offset * columns
    count = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    return (first, count) if count > 0 else (0, 0)


def diag_embed(x: Value, offset: int = 0) -> Value:
    """Square matrices, zero but for the last axis of `x` on their diagonals.

    Raises:
        ShapeError: a rank of 0; the shape must be known.
    """
    dims = concrete(x)
    if not dims:
        raise ShapeError(f"diag_embed: expected x of rank at least 1, got shape (){at_user_line()}")
    lead, count = dims[:-1], dims[-1]
    size = count + abs(offset)
    first, _ = _span(size, size, offset)
    flat = unslice(
        x,
        shape=(*lead, size * size),
        begin=(*[0] * len(lead), first),
        end=(*lead, first + count * (size + 1)),
        strides=(*[1] * len(lead), size + 1),
    )
    return catalogue.reshape(flat, shape=(*lead, size, size))


def diag(x: Value, k: int = 0) -> Value:
    """The `k`-th diagonal of a matrix, or the matrix with that diagonal of a vector.

    Raises:
        ShapeError: a rank other than 1 and 2; the shape must be known.
    """
    rank = len(concrete(x))
    if rank not in (1, 2):
        shape = show(x.shape)
        raise ShapeError(f"diag: expected x of rank 1 or 2, got shape {shape}{at_user_line()}")
    return diag_embed(x, k) if rank == 1 else diagonal(x, k)


def trace(x: Value, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Value:
    """The sum of a diagonal along two axes.

    Raises:
        ShapeError: as `diagonal`.
    """
    return catalogue.sum(diagonal(x, offset, axis1, axis2), axes=(-1,))

"""Diagonals of matrices: reading, writing and trace."""

from __future__ import annotations

from typing import Any

from weft.errors import ShapeError
from weft.ir.node import Value
from weft.ir.shape import known, show
from weft.ops.declaration import catalogue
from weft.ops.declaration.rule import concrete, dims_of
from weft.ops.indexing.slicing import slice_, slice_update, unslice
from weft.ops.shape.reshape import axis_of

__all__ = ["diag", "diag_embed", "diagonal", "diagonal_update", "trace"]


def diagonal(x: Value, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Value:
    """The diagonal elements `i, i + offset` of two axes, as a new last axis, as in NumPy.

    Raises:
        ShapeError: a rank below 2, or the same axis twice; both sizes must be known.
    """
    flat, along, _ = _flattened("diagonal", x, offset, axis1, axis2)
    return slice_(flat, **along)


def diagonal_update(
    x: Value, update: Value, offset: int = 0, axis1: int = 0, axis2: int = 1
) -> Value:
    """`x` with a diagonal replaced by `update`, which broadcasts to it.

    Raises:
        ShapeError: as for `diagonal`, or an update that does not fit.
    """
    flat, along, order = _flattened("diagonal_update", x, offset, axis1, axis2)
    dims = dims_of(x)
    replaced = slice_update(flat, update, **along)
    moved = catalogue.reshape(replaced, shape=tuple(dims[i] for i in order))
    back = tuple(order.index(i) for i in range(len(dims)))
    return catalogue.transpose(moved, perm=back)


def _flattened(
    name: str, x: Value, offset: int, axis1: int, axis2: int
) -> tuple[Value, dict[str, Any], tuple[int, ...]]:
    """`x` with both axes flattened at the end, the slice of its diagonal, and the permutation."""
    a, b = _two_axes(name, x, axis1, axis2)
    dims, shape = dims_of(x), x.shape or ()
    rest = [i for i in range(len(dims)) if i not in (a, b)]
    rows, columns = known((shape[a], shape[b]))
    order = (*rest, a, b)
    lead = tuple(dims[i] for i in rest)
    first, count = _span(rows, columns, offset)
    moved = catalogue.transpose(x, perm=order)
    flat = catalogue.reshape(moved, shape=(*lead, rows * columns))
    along = {
        "begin": (*[0] * len(lead), first),
        "end": (*lead, first + count * (columns + 1)),
        "strides": (*[1] * len(lead), columns + 1),
    }
    return flat, along, order


def _two_axes(name: str, x: Value, axis1: int, axis2: int) -> tuple[int, int]:
    if len(dims_of(x)) < 2:
        raise ShapeError.here(f"{name}: expected x of rank at least 2, got shape {show(x.shape)}")
    a, b = axis_of(name, x, axis1), axis_of(name, x, axis2)
    if a == b:
        raise ShapeError.here(f"{name}: expected two different axes, got {axis1} and {axis2}")
    return a, b


def _span(rows: int, columns: int, offset: int) -> tuple[int, int]:
    """The flat index of a diagonal's first element, and its length."""
    first = offset if offset >= 0 else -offset * columns
    count = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    return (first, count) if count > 0 else (0, 0)


def diag_embed(x: Value, offset: int = 0) -> Value:
    """Square matrices with the last axis of `x` on their diagonals.

    Raises:
        ShapeError: a rank of 0; the last axis must be known.
    """
    dims = dims_of(x)
    if not dims:
        raise ShapeError.here("diag_embed: expected x of rank at least 1, got shape ()")
    lead, (count,) = dims[:-1], known(x.shape and x.shape[-1:])
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
    """The `k`-th diagonal of a matrix; for a vector, the matrix with this diagonal.

    Raises:
        ShapeError: a rank other than 1 and 2; the shape must be known.
    """
    rank = len(concrete(x))
    if rank not in (1, 2):
        shape = show(x.shape)
        raise ShapeError.here(f"diag: expected x of rank 1 or 2, got shape {shape}")
    return diag_embed(x, k) if rank == 1 else diagonal(x, k)


def trace(x: Value, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Value:
    """The sum of a diagonal along two axes.

    Raises:
        ShapeError: as for `diagonal`."""
    return catalogue.sum(diagonal(x, offset, axis1, axis2), axes=(-1,))

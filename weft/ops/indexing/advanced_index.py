"""NumPy's advanced indexing: elements at positions given by an index array for each axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from weft.errors import GraphError, ShapeError
from weft.ir.dtype import int32, int64
from weft.ir.node import Value
from weft.ir.shape import show
from weft.ops.declaration import catalogue, constant_of
from weft.ops.declaration.rule import concrete
from weft.ops.indexing.gather import gather, scatter_add
from weft.ops.indexing.scatter import scatter_max, scatter_min, scatter_multiply, scatter_set
from weft.ops.shape.creation import iota
from weft.ops.shape.reshape import axis_of, dimension

__all__ = ["put_along_axis", "put_rows", "take_nd", "wrap_indices"]

COMBINES: Final[Mapping[str, Callable[..., Value]]] = {
    "set": scatter_set,
    "add": scatter_add,
    "multiply": scatter_multiply,
    "max": scatter_max,
    "min": scatter_min,
}

LEAST_WIDTH: Final = 16
"""Elements after an axis from which its rows are written in place, one by one.

Shorter rows are moved to the front, where a vector holds several.
"""


def wrap_indices(indices: Value, size: int | Value, from_end: bool = True) -> Value:
    """Negative indices counted from the end; those outside [-size, size) stay out of bounds.

    Args:
        from_end: if false, all negative ones stay out of bounds.
    """
    if indices.dtype.kind == "u" or indices.dtype not in (int32, int64):
        indices = catalogue.cast(indices, dtype=int64)
    if not from_end:
        return indices
    if isinstance(size, Value):
        size = catalogue.cast(size, dtype=indices.dtype)
    counted = catalogue.add(indices, size)
    negative = catalogue.less(indices, constant_of(0, indices.dtype))
    fits = catalogue.greater_equal(counted, constant_of(0, indices.dtype))
    return catalogue.select(catalogue.logical_and(negative, fits), counted, indices)


def rows_or_end(indices: Value, *, size: int) -> Value:
    """Indices in [-size, size) as rows; `size` for those outside."""
    rows, end = wrap_indices(indices, size), constant_of(size, int64)
    rows = catalogue.cast(rows, dtype=int64)
    below = catalogue.less(rows, constant_of(0, int64))
    return catalogue.select(below, end, catalogue.minimum(rows, end))


def lies_outside(*indices: Value, sizes: tuple[int, ...]) -> Value:
    """Whether any of several indices, which broadcast, is not in [-size, size) of its axis."""
    found: Value | None = None
    for index, size in zip(indices, sizes, strict=True):
        rows = rows_or_end(index, size=size)
        beyond = catalogue.greater_equal(rows, constant_of(size, int64))
        found = beyond if found is None else catalogue.logical_or(found, beyond)
    assert found is not None
    return found


def take_nd(x: Value, indices: Sequence[Value | None], front: bool = False) -> Value:
    """`x[indices]` for integer arrays, which broadcast and may be negative; `None` keeps an axis.

    The dimensions of the indices replace the indexed axes if these are adjacent; otherwise, or if
    `front`, they come first, as in NumPy. Gradients of repeated elements add up.

    Raises:
        ShapeError: more indices than axes, or indices that do not broadcast.
        OutOfRangeError: when run, an index out of bounds.
    """
    axes = [k for k, index in enumerate(indices) if index is not None]
    if not axes:
        return x
    picked = [index for index in indices if index is not None]
    if len(axes) == 1:
        (at,) = axes
        found = gather(x, wrap_indices(picked[0], dimension(x, at)), axis=at)
        return _to_front(found, at, picked[0]) if front and at else found
    dims = concrete(x)
    at = axes[0]
    if front or axes[-1] - at >= len(axes):
        rest = [k for k in range(len(dims)) if k not in axes]
        x, at = catalogue.transpose(x, perm=(*axes, *rest)), 0
        dims = concrete(x)
    past = at + len(axes)
    merged = (*dims[:at], math.prod(dims[at:past]), *dims[past:])
    places = flat_indices(picked, dims[at:past])
    return gather(catalogue.reshape(x, shape=merged), places, axis=at)


def _to_front(y: Value, at: int, index: Value) -> Value:
    rank, width = len(concrete(y)), len(concrete(index))
    moved = range(at, at + width)
    return catalogue.transpose(y, perm=(*moved, *[k for k in range(rank) if k not in moved]))


def flat_indices(indices: Sequence[Value], dims: Sequence[int], from_end: bool = True) -> Value:
    """Broadcast indices, one array per axis, as row-major positions.

    Negative ones count from the end if `from_end`; an index out of bounds gives a position out of
    bounds.
    """
    flat, inside = None, None
    for k, (index, size) in enumerate(zip(indices, dims, strict=True)):
        wrapped = wrap_indices(catalogue.cast(index, dtype=int64), size, from_end)
        zero, limit = constant_of(0, int64), constant_of(size, int64)
        fits = catalogue.logical_and(
            catalogue.greater_equal(wrapped, zero), catalogue.less(wrapped, limit)
        )
        part = catalogue.multiply(wrapped, math.prod(dims[k + 1 :]))
        flat = part if flat is None else catalogue.add(flat, part)
        inside = fits if inside is None else catalogue.logical_and(inside, fits)
    assert flat is not None and inside is not None
    return catalogue.select(inside, flat, constant_of(-1, int64))


def combining(name: str) -> Callable[..., Value]:
    """The scatter of `set`, `add`, `multiply`, `max` or `min`.

    Raises:
        GraphError: another name.
    """
    found = COMBINES.get(name)
    if found is None:
        names = ", ".join(COMBINES)
        raise GraphError.here(f"combine: expected one of {names}, got {name!r}")
    return found


def put_rows(
    x: Value,
    indices: Value,
    updates: Value,
    combine: str = "set",
    from_end: bool = True,
    axis: int = 0,
) -> Value:
    """`x` with `updates` written to, or combined with, its slices `indices` along an axis.

    Args:
        updates: like x, with the dimensions of the indices in place of the axis.
        combine: `set` (the last of equal indices wins), `add`, `multiply`, `max` or `min`.
        from_end: whether indices may be negative.
    """
    put, dims = combining(combine), concrete(x)
    if not axis:
        return put(x, wrap_indices(indices, dimension(x, 0), from_end), updates)
    places = concrete(indices)
    if math.prod(dims[axis + 1 :]) < LEAST_WIDTH or not places:
        back = (*range(1, axis + 1), 0, *range(axis + 1, len(dims)))
        front = (axis, *[k for k in range(len(dims)) if k != axis])
        moved = _to_front(updates, axis, indices)
        y = put_rows(catalogue.transpose(x, perm=front), indices, moved, combine, from_end)
        return catalogue.transpose(y, perm=back)
    # Rows of the leading axes are flattened: x keeps its layout, so it may change in place.
    lead, rest = dims[:axis], dims[axis + 1 :]
    flat = catalogue.reshape(indices, shape=(math.prod(places),))
    each = [_line(n, k, axis + 1) for k, n in enumerate(lead)]
    across = flat_indices([*each, flat], dims[: axis + 1], from_end)
    count = math.prod((*lead, *places))
    y = put(
        catalogue.reshape(x, shape=(math.prod(dims[: axis + 1]), *rest)),
        catalogue.reshape(across, shape=(count,)),
        catalogue.reshape(updates, shape=(count, *rest)),
    )
    return catalogue.reshape(y, shape=dims)


def put_along_axis(
    x: Value,
    indices: Value,
    updates: Value,
    axis: int,
    combine: str = "set",
    from_end: bool = True,
) -> Value:
    """`x` with `updates` written at `indices` along an axis, position by position on the others.

    The inverse of `take_along_axis`. `indices` and `updates` have one shape, with the rank of `x`,
    which may be smaller than `x` on the other axes, as in PyTorch's `scatter`.

    Args:
        combine: `set` (the last of equal positions wins), `add`, `multiply`, `max` or `min`.
        from_end: whether indices may be negative.

    Raises:
        ShapeError: indices of another rank, or of more entries on another axis.
    """
    put, dims, places = combining(combine), concrete(x), concrete(indices)
    at = axis_of("put_along_axis", x, axis)
    small = len(places) == len(dims) and all(
        k == at or n <= d for k, (n, d) in enumerate(zip(places, dims, strict=True))
    )
    if not small:
        raise ShapeError.here(
            f"put_along_axis: expected indices that fit into {show(dims)} but for axis {at}, got"
            f" shape {show(places)}"
        )
    each = [indices if k == at else _line(places[k], k, len(dims)) for k in range(len(dims))]
    count = math.prod(places)
    flat = catalogue.reshape(flat_indices(each, dims, from_end), shape=(count,))
    wide = catalogue.broadcast_to(updates, shape=places)
    y = put(
        catalogue.reshape(x, shape=(math.prod(dims),)),
        flat,
        catalogue.reshape(wide, shape=(count,)),
    )
    return catalogue.reshape(y, shape=dims)


def _line(size: int, axis: int, rank: int) -> Value:
    shape = tuple(size if k == axis else 1 for k in range(rank))
    return iota(shape=shape, axis=axis, dtype=int64)

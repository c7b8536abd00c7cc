"""Positions: of values in sorted rows, of what is not zero, distinct, repeated or moved."""

from __future__ import annotations

import math

from weft.ir import dtype as types
from weft.ir.node import Value
from weft.ops.declaration import catalogue, constant_of
from weft.ops.indexing.scatter import scatter_set
from weft.ops.indexing.sort import argsort, comes_before
from weft.ops.linalg.matrix import dims
from weft.ops.shape.creation import full, iota


def places_in_order(
    ordered: Value, values: Value, *, side: str, int32: bool = False, nan_last: bool = False
) -> Value:
    """Insertion positions in sorted rows; with `nan_last`, NaNs go after existing ones."""
    if len(ordered.shape or ()) == 1:
        places = catalogue.searchsorted(ordered, values, side=side)
    else:
        row, column = (
            catalogue.expand_dims(ordered, axis=-2),
            catalogue.expand_dims(values, axis=-1),
        )
        before = catalogue.cast(comes_before(row, column, side), dtype=types.int32)
        places = catalogue.sum(before, axes=(-1,))
    if nan_last and values.dtype.is_floating:
        end = constant_of(dims(ordered)[-1], types.int32)
        places = catalogue.select(catalogue.not_equal(values, values), end, places)
    return catalogue.cast(places, dtype=types.int32 if int32 else types.int64)


def places_by_column(x: Value, limits: tuple[float, ...]) -> Value:
    """The intervals between limits in which numbers are, int64; those of each column are others."""
    ordered = constant_of([float(n) for n in limits], x.dtype)
    inside = places_in_order(ordered, x, side="right")
    column = iota(shape=(1, x.shape[1] if x.shape else 1), axis=1, dtype=types.int64)
    return inside + column * (len(limits) + 1)


def first_nonzero(x: Value, *, size: int, fills: tuple[int, ...]) -> tuple[Value, ...]:
    """The indices of the first elements that are not zero: a vector for each axis.

    Args:
        size: how many.
        fills: what stands for those that there are not, on each axis.
    """
    count = math.prod(dims(x))
    known = catalogue.not_equal(catalogue.reshape(x, shape=(count,)), constant_of(0, x.dtype))
    rank = catalogue.cumsum(catalogue.cast(known, dtype=types.int32), axis=0)
    last = constant_of(size, types.int32)
    place = catalogue.select(known, catalogue.minimum(rank - 1, last), last)
    found = scatter_set(
        full((size + 1,), count, types.int32), place, iota(shape=(count,), dtype=types.int32)
    )
    found = catalogue.slice(found, begin=(0,), end=(size,))
    none = catalogue.equal(found, constant_of(count, types.int32))
    parts = unraveled(found, sizes=dims(x))
    pairs = zip(parts, fills, strict=True)
    return tuple([catalogue.select(none, constant_of(f, types.int32), p) for p, f in pairs])


def unraveled(places: Value, *, sizes: tuple[int, ...]) -> tuple[Value, ...]:
    """The index along each axis for positions in a flattened array of these sizes."""
    steps = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    return tuple([
        catalogue.remainder(
            catalogue.floor_divide(places, constant_of(max(s, 1), places.dtype)),
            constant_of(max(n, 1), places.dtype),
        )
        for s, n in zip(steps, sizes, strict=True)
    ])  # fmt: skip


def raveled(*parts: Value, sizes: tuple[int, ...]) -> Value:
    """Positions in a flattened array of these sizes for an index along each axis."""
    found = parts[0]
    for part, n in zip(parts[1:], sizes[1:], strict=True):
        found = found * constant_of(n, found.dtype) + part
    return found


def first_distinct(x: Value, *, size: int) -> tuple[Value, Value, Value, Value, Value]:
    """The first distinct elements of a vector in order.

    Args:
        size: how many; the smallest stands for those that there are not.

    Returns:
        The elements; where each first occurs; which distinct element each element is; how often
        each occurs, 0 for those that there are not; how many there are.
    """
    (count,) = dims(x)
    ordered, order = catalogue.sort.all(x, axis=0)
    left = catalogue.slice(ordered, begin=(0,), end=(max(count - 1, 0),))
    right = catalogue.slice(ordered, begin=(min(1, count),), end=(count,))
    begins = full((min(1, count),), True, types.bool_)
    new = catalogue.concatenate(begins, catalogue.not_equal(left, right), axis=0)
    (places,) = first_nonzero(new, size=size, fills=(0,))
    (ends,) = first_nonzero(new, size=size + 1, fills=(count,))
    rank = catalogue.cumsum(catalogue.cast(new, dtype=types.int32), axis=0) - 1
    lengths = catalogue.slice(ends, begin=(1,), end=(size + 1,))
    lengths = lengths - catalogue.slice(ends, begin=(0,), end=(size,))
    return (
        catalogue.gather(ordered, places, axis=0), catalogue.gather(order, places, axis=0),
        scatter_set(full((count,), 0, types.int32), order, rank), lengths,
        catalogue.sum(catalogue.cast(new, dtype=types.int32)),
    )  # fmt: skip


def repeated(counts: Value, *, total: int) -> Value:
    """Which element stands at each of `total` places if elements are repeated so often.

    The last one fills what is left.
    """
    ends = catalogue.cumsum(counts, axis=0)
    places = catalogue.searchsorted(ends, iota(shape=(total,), dtype=counts.dtype), side="right")
    last = constant_of(max(dims(counts)[0] - 1, 0), types.int32)
    return catalogue.minimum(catalogue.cast(places, dtype=types.int32), last)


def turned(x: Value, *shifts: Value, axes: tuple[int, ...]) -> Value:
    """Elements moved along axes by computed shifts, with wrap-around."""
    for shift, axis in zip(shifts, axes, strict=True):
        size = dims(x)[axis]
        places = iota(shape=(size,), dtype=shift.dtype) - shift
        within = catalogue.remainder(places, constant_of(max(size, 1), shift.dtype))
        x = catalogue.gather(x, within, axis=axis)
    return x


def lexical_order(*keys: Value, axis: int) -> Value:
    """The int32 indices that sort by the last key, then by the one before it, and so on."""
    order = argsort(keys[0], axis=axis)
    for key in keys[1:]:
        inner = argsort(catalogue.take_along_axis(key, order, axis=axis), axis=axis)
        order = catalogue.take_along_axis(order, inner, axis=axis)
    return order

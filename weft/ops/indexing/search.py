"""Insertion positions of values in sorted rows; positions of what is not zero."""

from __future__ import annotations

import math

from weft.ir import dtype as types
from weft.ir.node import Value
from weft.ops.declaration import catalogue, constant_of
from weft.ops.indexing.scatter import scatter_set
from weft.ops.indexing.sort import comes_before
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

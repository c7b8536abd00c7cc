"""Order statistics with indices: median, mode, quantile, minimum, maximum, top-k."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft import ops
from weft.errors import ShapeError
from weft.ir import dtype as types
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.boundary import probability
from weft.ops.declaration import catalogue, constant_of
from weft.ops.declaration.rule import concrete
from weft.ops.indexing.slicing import cut


def nanmedian(x: Value, *, axis: int) -> tuple[Value, Value]:
    """The median along an axis, ignoring NaN, and its index."""
    values, places = catalogue.sort.all(x, axis=axis)
    proper = catalogue.cast(catalogue.equal(x, x), dtype=types.int64)
    count = catalogue.sum(proper, axes=(axis,), keepdims=True)
    least = constant_of(np.int64(0))
    rank = catalogue.maximum(catalogue.floor_divide(count - 1, constant_of(np.int64(2))), least)
    found = [catalogue.take_along_axis(y, rank, axis=axis) for y in (values, places)]
    return found[0], catalogue.cast(found[1], dtype=types.int64)


def mode(x: Value, *, axis: int) -> tuple[Value, Value]:
    """The most frequent element along an axis (the smallest in a tie), and its last index."""
    values, places = catalogue.sort.all(x, axis=axis)
    dims = concrete(x)
    shape = tuple([d if i == axis else 1 for i, d in enumerate(dims)])
    place = catalogue.iota(shape=shape, axis=axis, dtype=types.int64)
    before = catalogue.take_along_axis(values, catalogue.maximum(place - 1, place * 0), axis=axis)
    start = catalogue.select(catalogue.equal(values, before), place * 0, place)
    length = place - catalogue.cummax(start, axis=axis)
    best = catalogue.expand_dims(catalogue.argmax(length, axis=axis), axis=axis)
    best = catalogue.cast(best, dtype=types.int64)
    found = [catalogue.take_along_axis(y, best, axis=axis) for y in (values, places)]
    return found[0], catalogue.cast(found[1], dtype=types.int64)


def nanquantile(x: Value, q: Value, *, axis: int, method: str) -> Value:
    """`quantile` along an axis, ignoring NaN."""
    proper = catalogue.cast(catalogue.equal(x, x), dtype=types.int64)
    count = catalogue.sum(proper, axes=(axis,), keepdims=True)
    ordered = catalogue.sort(x, axis=axis)
    last = catalogue.maximum(count - 1, constant_of(np.int64(0)))
    at = catalogue.cast(last, dtype=x.dtype) * probability.chances(q, "nanquantile")
    low, high = catalogue.floor(at), catalogue.ceil(at)
    a, b = (
        catalogue.take_along_axis(ordered, catalogue.cast(k, dtype=types.int64), axis=axis)
        for k in (low, high)
    )
    return ops.lerp(a, b, ops.part_between(at, low, high, method))


def top(x: Value, *, k: int, axis: int, largest: bool) -> tuple[Value, Value]:
    """The `k` largest or smallest elements along an axis, sorted, and their indices."""
    if not x.shape:
        return catalogue.identity(x), constant_of(0, types.int64)
    last = len(x.shape) - 1
    rows = ops.moveaxis(x, axis, last)
    if largest:
        values, places = catalogue.top_k.all(rows, k=k)
    else:
        ordered = catalogue.sort.all(rows, axis=-1)
        values, places = (cut(y, last, 0, k) for y in ordered)
    places = catalogue.cast(places, dtype=types.int64)
    return ops.moveaxis(values, last, axis), ops.moveaxis(places, last, axis)


def ranked(x: Value, *, rank: int, axis: int, keepdims: bool, nan: bool) -> tuple[Value, Value]:
    """The k-th element in sorted order along an axis; NaN if there is one and `nan` is set."""
    if not x.shape:
        return catalogue.identity(x), constant_of(0, types.int64)
    values, places = catalogue.sort.all(x, axis=axis)
    size = concrete(x)[axis]
    found = [cut(y, axis, rank, rank + 1) for y in (values, places)]
    if nan and x.dtype.is_floating:
        last = [cut(y, axis, size - 1, size) for y in (values, places)]
        missing = ops.isnan(last[0])
        found = [catalogue.select(missing, y, z) for y, z in zip(last, found, strict=True)]
    if not keepdims:
        found = [catalogue.squeeze(y, axes=(axis,)) for y in found]
    return found[0], catalogue.cast(found[1], dtype=types.int64)


def quantile_at(x: Value, q: Value, *, axes: Any, keepdims: bool, method: str) -> Value:
    """`ops.quantile_at`, with probabilities checked if known."""
    if len(known(q.shape)) > 1:
        raise ShapeError.here("quantile: expected a number or a vector as q")
    return ops.quantile_at(x, probability.chances(q, "quantile"), axes, keepdims, method)


def running_extreme(x: Value, *, axis: int, largest: bool) -> tuple[Value, Value]:
    """The cumulative maximum or minimum, and its last index."""
    if not x.shape:
        return catalogue.identity(x), constant_of(0, types.int64)
    best = (ops.cummax if largest else ops.cummin)(x, axis=axis)
    met = catalogue.equal(x, best)
    if x.dtype.is_floating:
        met = catalogue.logical_or(met, ops.isnan(x))
    dims = concrete(x)
    shape = tuple([d if i == axis else 1 for i, d in enumerate(dims)])
    place = catalogue.iota(shape=shape, axis=axis, dtype=types.int64)
    places = catalogue.cummax(catalogue.select(met, place, constant_of(0, types.int64)), axis=axis)
    return catalogue.take_along_axis(x, places, axis=axis), places


def best(x: Value, *, axis: int, keepdims: bool, largest: bool) -> tuple[Value, Value]:
    """The largest or smallest element along an axis, and its index."""
    find = catalogue.argmax if largest else catalogue.argmin
    places = find(x, axis=axis, keepdims=True)
    values = catalogue.take_along_axis(x, places, axis=axis)
    if keepdims:
        return values, places
    return catalogue.squeeze(values, axes=(axis,)), catalogue.squeeze(places, axes=(axis,))


def place(x: Value, *, axis: int | None, keepdims: bool, largest: bool) -> Value:
    """The index of the largest or smallest element, along an axis or in the flattened array."""
    find = catalogue.argmax if largest else catalogue.argmin
    if axis is not None and x.shape:
        return find(x, axis=axis, keepdims=keepdims)
    place = find(catalogue.reshape(x, shape=(-1,)), axis=0)
    shape = (1,) * len(known(x.shape)) if keepdims else ()
    return catalogue.reshape(place, shape=shape)

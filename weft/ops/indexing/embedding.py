"""Embedding lookups, of single rows or of bags."""

from __future__ import annotations

import math

from weft import ops
from weft.ir.dtype import DType, int32, int64
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.declaration import catalogue, constant_of
from weft.ops.reduction.norm import renorm


def embedding(indices: Value, weight: Value, *, padding_idx: int | None, shared: bool) -> Value:
    """The rows of `weight` at `indices`; row `padding_idx` gets no gradient."""
    rows = catalogue.gather(weight, indices)
    rows = _seen_once(indices, weight, rows) if shared else rows
    if padding_idx is None:
        return rows
    # The row is looked up as any other, but gets no gradient.
    fixed = catalogue.equal(indices, constant_of(padding_idx, indices.dtype))
    mask = catalogue.expand_dims(fixed, axis=-1)
    return catalogue.select(mask, catalogue.stop_gradient(rows), rows)


def shortened(indices: Value, weight: Value, *, longest: float, power: float) -> Value:
    """The table with the norms of looked-up rows limited to a maximum."""
    flat = catalogue.reshape(indices, shape=(-1,))
    rows = catalogue.gather(weight, flat)
    short = renorm(rows, constant_of(longest, weight.dtype), p=power, axis=0)
    return ops.put_rows(weight, flat, short, "set")


def _shares(indices: Value, rows: int, dtype: DType) -> Value:
    """The inverse of each index's frequency."""
    flat = catalogue.reshape(indices, shape=(-1,))
    none = catalogue.broadcast_to(constant_of(0, dtype), shape=(rows,))
    one = catalogue.broadcast_to(constant_of(1, dtype), shape=flat.shape)
    counts = catalogue.gather(catalogue.scatter_add(none, flat, one), flat)
    return catalogue.reshape(constant_of(1, dtype) / counts, shape=indices.shape)


def _seen_once(indices: Value, weight: Value, rows: Value) -> Value:
    """Rows whose gradient is divided by the frequency of their index."""
    share = _shares(indices, known(weight.shape)[0], weight.dtype)
    share = catalogue.stop_gradient(catalogue.expand_dims(share, axis=-1))
    fixed = catalogue.stop_gradient(rows)
    return fixed + (rows - fixed) * share


def bag_of_rows(
    indices: Value, weight: Value, scale: Value | None,
    *, mode: str, padding_idx: int | None, shared: bool,
) -> Value:  # fmt: skip
    """Bags are the rows of a matrix of indices."""
    rows = catalogue.gather(weight, indices)  # bags, size, width
    rows = _seen_once(indices, weight, rows) if shared else rows
    if scale is not None:
        rows = rows * catalogue.expand_dims(scale, axis=-1)
    size = known(indices.shape)[1]
    if padding_idx is None:
        if size == 0:
            return catalogue.sum(rows, axes=(1,))
        return getattr(catalogue, mode)(rows, axes=(1,))
    kept = catalogue.not_equal(indices, constant_of(padding_idx, indices.dtype))
    mask = catalogue.expand_dims(kept, axis=-1)
    zero = constant_of(0, weight.dtype)
    counts = catalogue.sum(catalogue.cast(mask, dtype=weight.dtype), axes=(1,))
    if mode == "max":
        low = constant_of(-math.inf, weight.dtype)
        y = catalogue.max(catalogue.select(mask, rows, low), axes=(1,))
        return catalogue.select(catalogue.greater(counts, zero), y, zero)
    total = catalogue.sum(catalogue.select(mask, rows, zero), axes=(1,))
    if mode == "sum":
        return total
    return total / catalogue.maximum(counts, constant_of(1, weight.dtype))


def _misplaced(offsets: Value, count: int) -> Value:
    """How many offsets are decreasing, negative or beyond the input."""
    size = known(offsets.shape)[0]
    if not size:
        return constant_of(0, int32)
    after = catalogue.slice(offsets, begin=(1,), end=(size,))
    before = catalogue.slice(offsets, begin=(0,), end=(size - 1,))
    falls = catalogue.sum(catalogue.cast(catalogue.less(after, before), dtype=int32))
    first = catalogue.slice(offsets, begin=(0,), end=(1,))
    return falls + ops.count_outside(first, 0, 0) + ops.count_outside(offsets, 0, count)


def bags_by_offset(
    indices: Value, weight: Value, offsets: Value, scale: Value | None,
    *, mode: str, padding_idx: int | None, last: bool, shared: bool,
) -> Value:  # fmt: skip
    """Bags are ranges of a vector of indices that begin at the offsets."""
    count, bags = known(indices.shape)[0], known(offsets.shape)[0] - last
    text = f"embedding_bag: expected offsets that begin at 0 and rise to at most {count}"
    offsets = catalogue.check(offsets, _misplaced(offsets, count), text=text)
    rows = catalogue.gather(weight, indices)
    rows = _seen_once(indices, weight, rows) if shared else rows
    if scale is not None:
        rows = rows * catalogue.expand_dims(scale, axis=-1)
    starts = catalogue.slice(offsets, begin=(0,), end=(bags,)) if last else offsets
    places = catalogue.iota(shape=(count,), dtype=offsets.dtype)
    # The bag of a position: the number of bags that begin at or before it, minus one.
    bag = catalogue.searchsorted(starts, places, side="right") - 1
    bag = catalogue.cast(bag, dtype=int64)
    inside = catalogue.greater_equal(bag, constant_of(0, int64))
    if last:
        inside = catalogue.logical_and(inside, catalogue.less(places, offsets[bags]))
    if padding_idx is not None:
        inside = catalogue.logical_and(
            inside, catalogue.not_equal(indices, constant_of(padding_idx, indices.dtype))
        )
    # Indices in no bag go to an additional one, which is dropped.
    bag = catalogue.select(inside, bag, constant_of(bags, int64))
    return _gathered(rows, bag, bags, mode)


def _gathered(rows: Value, bag: Value, bags: int, mode: str) -> Value:
    width, dtype = known(rows.shape)[1], rows.dtype
    zeros = catalogue.broadcast_to(constant_of(0, dtype), shape=(bags + 1, width))
    one = catalogue.broadcast_to(constant_of(1, dtype), shape=(known(rows.shape)[0], 1))
    empty = catalogue.broadcast_to(constant_of(0, dtype), shape=(bags + 1, 1))
    counts = catalogue.scatter_add(empty, bag, one)
    if mode == "max":
        low = catalogue.broadcast_to(constant_of(-math.inf, dtype), shape=(bags + 1, width))
        best = catalogue.scatter_max(low, bag, rows)
        some = catalogue.greater(counts, constant_of(0, dtype))
        y = catalogue.select(some, best, constant_of(0, dtype))
    else:
        y = catalogue.scatter_add(zeros, bag, rows)
        if mode == "mean":
            y = y / catalogue.maximum(counts, constant_of(1, dtype))
    return catalogue.slice(y, begin=(0, 0), end=(bags, width))


def one_hot(indices: Value, *, depth: int) -> Value:
    """A new last dimension with a 1 at each index; int64."""
    text = f"one_hot: expected indices from 0 to {depth - 1}"
    hot = catalogue.one_hot(indices, depth=depth, dtype=int64)
    return catalogue.check(hot, ops.count_outside(indices, 0, depth - 1), text=text)

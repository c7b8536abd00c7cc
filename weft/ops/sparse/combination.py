"""Looked-up rows combined by the rows of a sparse tensor: weighted sums and means."""

from __future__ import annotations

from typing import Any

from weft.ir.dtype import int32
from weft.ir.node import Value
from weft.ops.declaration import catalogue, constant_of
from weft.ops.shape.creation import full
from weft.ops.sparse.segment import reduce_by_ids


def segments_of(places: Value) -> Value:
    """One more than the highest of some ids, known at execution."""
    last = catalogue.concatenate(full((1,), -1, places.dtype), places, axis=0)
    return catalogue.cast(catalogue.max(last), dtype=int32) + 1


def combined_rows(
    rows: Value, weights: Value | None, places: Value, count: Any, *, combiner: str,
    is_sorted: bool = False, guarded: bool = False,
) -> Value:  # fmt: skip
    """Row i is combined from the rows whose place is i.

    Args:
        rows: (n, ...).
        weights: (n), or `None` for ones.
        places: (n).
        count: how many there are.
        combiner: `sum` of the weighted rows; `mean`: divided by the sum of the weights; `sqrtn`: by
            the root of the sum of their squares.
        guarded: a divisor 0 is 1, so that the result without rows is 0.
    """
    beside = (-1, *(1,) * ((rows.rank or 1) - 1))

    def sums(x: Value) -> Value:
        return reduce_by_ids(x, places, count, "sum", is_sorted)

    if weights is None and combiner == "sum":
        return sums(rows)
    if weights is None:
        weights = catalogue.cast(catalogue.greater_equal(places, 0), dtype=rows.dtype)
    total = sums(rows * catalogue.reshape(weights, shape=beside))
    if combiner == "sum":
        return total
    divisor = sums(weights if combiner == "mean" else weights * weights)
    if combiner == "sqrtn":
        divisor = catalogue.sqrt(divisor)
    if guarded:
        zero, one = constant_of(0, rows.dtype), constant_of(1, rows.dtype)
        divisor = catalogue.select(catalogue.equal(divisor, zero), one, divisor)
    return total / catalogue.reshape(divisor, shape=beside)


def valid_ids(
    ids: Value, weights: Value | None, *, combiner: str, dtype: Any
) -> tuple[Value, Value, Value]:
    """Ids with 0 for those that do not count, their weights with 0, and which count (1 or 0).

    Those that do not are negative, or have a weight that is not positive and are for a mean.
    """
    zero = constant_of(0, ids.dtype)
    kept = catalogue.greater_equal(ids, zero)
    if weights is not None and combiner != "sum":
        positive = catalogue.greater(weights, constant_of(0, weights.dtype))
        kept = catalogue.logical_and(kept, positive)
    there = catalogue.cast(kept, dtype=dtype)
    known = catalogue.select(kept, ids, zero)
    if weights is None:
        return known, there, there
    return known, catalogue.select(kept, weights, constant_of(0, weights.dtype)), there


def with_default(rows: Value, default: Value, there: Value, places: Value, count: Any) -> Value:
    """Rows without any that count are replaced by the one row of `default`."""
    some = reduce_by_ids(there, places, count, "sum")
    some = catalogue.reshape(some, shape=(-1, *(1,) * ((rows.rank or 1) - 1)))
    return catalogue.select(catalogue.greater(some, constant_of(0, some.dtype)), rows, default)


def row_of(indices: Value, leading: Any) -> Value:
    """The number of the row of each index, counted over all axes but the last.

    Args:
        indices: (n, rank).
        leading: the sizes of these axes: numbers or values.
    """
    place = indices[:, 0]
    for axis in range(1, len(leading)):
        size: Any = leading[axis]
        if isinstance(size, Value):
            size = catalogue.cast(size, dtype=indices.dtype)
        place = place * size + indices[:, axis]
    return place


def rows_in(shape: Value) -> Value:
    """The number of rows of a shape: the product of all sizes but the last."""
    return catalogue.cast(catalogue.prod(shape[:-1]), dtype=int32)

"""Reductions of rows by ids in any order."""

from __future__ import annotations

from typing import Any

from weft import ops
from weft.ir.node import Value


def unsorted_segments(x: Value, ids: Value, count: Any, reduce: str) -> Value:
    """Row i is reduced from the rows of `x` whose id is i; rows with negative ids are left out.

    Args:
        reduce: `sum`, `mean`, `prod`, `max`, `min`, or `sqrt_n`, the sum divided by the root of
            the number of rows.
    """
    if reduce == "sum":
        return ops.unsorted_segment_sum(x, ids, size=count, drop=True)
    counts = ops.greater_equal(ids, 0)
    beside = [-1, *(1,) * ((x.rank or 1) - 1)]
    places = ops.select(counts, ids, 0)
    neutral = ops.identity_of(reduce, x.dtype)
    kept = ops.select(ops.reshape(counts, shape=beside), x, neutral)
    if reduce not in ("mean", "sqrt_n"):
        return ops.reduce_by_ids(kept, places, count, reduce, initial=None)
    many = ops.scatter_add(ops.full([count], 0, x.dtype), places, ops.cast(counts, dtype=x.dtype))
    many = ops.reshape(ops.maximum(many, 1), shape=beside)
    total = ops.reduce_by_ids(kept, places, count, "sum")
    return total / (ops.sqrt(many) if reduce == "sqrt_n" else many)

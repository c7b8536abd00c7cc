"""Reductions by row id: `segment_sum` for sorted ids, `unsorted_segment_sum` for any."""

from __future__ import annotations

import builtins
from typing import Any, Final

from weft import ops
from weft.ir.node import Value
from weft.ops.sparse.unsorted_segment import unsorted_segments
from weft.tf1.framework.convert import convert_to_tensor, shape_operand, static_value
from weft.tf1.framework.dtypes import int32
from weft.tf1.framework.dynamic_shape import dimension
from weft.tf1.framework.graph import emit, name_scope
from weft.tf1.framework.tensor import Tensor

__all__ = [
    "segment_max", "segment_mean", "segment_min", "segment_prod", "segment_sum",
    "unsorted_segment_max", "unsorted_segment_mean", "unsorted_segment_min",
    "unsorted_segment_prod", "unsorted_segment_sqrt_n", "unsorted_segment_sum",
]  # fmt: skip


def _sorted(kind: str, reduce: str):
    def function(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
        known = static_value(segment_ids)
        with name_scope(name, kind, [data, segment_ids]) as scope:
            rows = convert_to_tensor(data, name="data")
            ids = convert_to_tensor(segment_ids, name="segment_ids")

            def build(x: Value, i: Value) -> Value:
                count: Any = _count(i) if known is None else int(known.max(initial=-1)) + 1
                return ops.reduce_by_ids(x, i, count, reduce, is_sorted=True)

            return emit(kind, [rows, ids], build, name=scope)

    function.__doc__ = f"""Row i is the {WORDS[reduce]} of the rows of `data` whose id is i.

    Args:
        data: (rows, ...).
        segment_ids: (rows), sorted. A segment that none names is 0, a product 1.

    Raises:
        InvalidArgumentError: in a run, ids that are negative or not sorted.
    """
    return function


def _count(ids: Value) -> Value:
    """One more than the last id, known at execution."""
    last = ops.concatenate(ops.full((1,), -1, ids.dtype), ids, axis=0)
    return ops.cast(ops.max(last), dtype=int32.ir) + 1


def _unsorted(kind: str, reduce: str):
    def function(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
        with name_scope(name, kind, [data, segment_ids]) as scope:
            rows = convert_to_tensor(data, name="data")
            ids = convert_to_tensor(segment_ids, name="segment_ids")
            count, target = shape_operand(num_segments, "num_segments")
            lead = ids.shape.ndims or 1

            def build(x: Value, i: Value, _: Value) -> Value:
                if lead > 1:
                    x = ops.reshape(x, shape=[-1, *_tail(x, lead)])
                    i = ops.reshape(i, shape=(-1,))
                return unsorted_segments(x, i, target, reduce)

            return emit(kind, [rows, ids, count], build, name=scope)

    function.__doc__ = f"""Row i is the {WORDS[reduce]} of the rows of `data` whose id is i.

    Args:
        data: its first dimensions are those of the ids.
        segment_ids: in any order. Rows of negative ids do not count.
        num_segments: how many there are. One that no id names is what the reduction of nothing is:
            0, 1, or the lowest or highest number; a mean is 0.

    Raises:
        InvalidArgumentError: in a run, an id that is `num_segments` or more.
    """
    return function


def _tail(x: Value, lead: int) -> list[Any]:
    return [dimension(x, a) for a in builtins.range(lead, x.rank or lead)]


WORDS: Final = {
    "sum": "sum", "mean": "mean", "prod": "product", "max": "maximum", "min": "minimum",
    "sqrt_n": "sum, divided by the root of their number,",
}  # fmt: skip
segment_sum = _sorted("SegmentSum", "sum")
segment_mean = _sorted("SegmentMean", "mean")
segment_prod = _sorted("SegmentProd", "prod")
segment_max = _sorted("SegmentMax", "max")
segment_min = _sorted("SegmentMin", "min")
unsorted_segment_sum = _unsorted("UnsortedSegmentSum", "sum")
unsorted_segment_mean = _unsorted("UnsortedSegmentMean", "mean")
unsorted_segment_sqrt_n = _unsorted("UnsortedSegmentSqrtN", "sqrt_n")
unsorted_segment_prod = _unsorted("UnsortedSegmentProd", "prod")
unsorted_segment_max = _unsorted("UnsortedSegmentMax", "max")
unsorted_segment_min = _unsorted("UnsortedSegmentMin", "min")

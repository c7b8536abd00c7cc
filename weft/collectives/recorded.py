"""Recorded reductions: part of the program that computes their inputs.

See `weft.eager.tensor.rank_call` for when they run.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.eager.record.call.plan import function_plan
from weft.eager.record.pending.lazy import Lazy
from weft.eager.record.pending.state import trace
from weft.eager.tensor.rank_call import await_result, run_pending_collectives
from weft.ir.shape import known, size
from weft.ops.communication.bucket import reduced_later
from weft.transport.group import Group


def reduce_all(
    xs: Sequence[Lazy], reduction: str, group: Group, bucket_bytes: int,
    counts: Sequence[int] | None = None,
) -> tuple[Lazy, ...]:  # fmt: skip
    """Record an all-reduce of several values as one call.

    Args:
        bucket_bytes: the size of a bucket, whose values are reduced together. Pass values in the
            order in which they are computed.
        counts: the number of values in each bucket; by default from `bucket_bytes`.
    """
    buckets = tuple(counts) if counts else buckets_by_size(xs, bucket_bytes)
    static = {"buckets": buckets, "reduction": reduction, "group": group.number}
    plan = function_plan(reduced_later, [x.type for x in xs], static, differentiable=False)
    reduced = trace.now.record(plan, tuple(xs))
    await_result(reduced[0])
    return reduced


def buckets_by_size(xs: Sequence[Lazy], most: int) -> tuple[int, ...]:
    """The number of values in each bucket of at most `most` bytes."""
    sizes = [int(size(known(x.type.shape))) * x.type.dtype.size for x in xs]
    return buckets_of(sizes, most)


def buckets_of(sizes: Sequence[int], most: int) -> tuple[int, ...]:
    """The number of values in each bucket.

    Example:
        >>> buckets_of([3, 3, 3, 9, 1], 6)
        (2, 1, 1, 1)
    """
    counts: list[int] = []
    room = 0
    for each in sizes:
        if not counts or each > room:
            counts.append(0)
            room = most
        counts[-1] += 1
        room -= each
    return tuple(counts)


__all__ = ["await_result", "buckets_by_size", "buckets_of", "reduce_all", "run_pending_collectives"]

"""Batching rules of collectives: one exchange between ranks carries all examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.transform.batching.job import Job, Same, Table, entering

RULES: Final[Table] = {}
rule = entering(RULES)


@rule(
    "all_reduce", "broadcast_from", "where_member", "permute_parts", "shared_by_members",
    "sum_of_members", "first_of_members", "from_first", "given_to_first",
)  # fmt: skip
def _as_it_is(job: Job) -> Sequence[Value | Same]:
    pairs = zip(job.again(*job.xs), job.mapped, strict=True)
    return [y if mapped else Same(y) for y, mapped in pairs]


@rule("all_gather", "join_parts")
def _gather(job: Job) -> Sequence[Value]:
    return [_exchanged(y) for y in job.again(*job.xs)]


@rule("reduce_scatter", "own_part")
def _scatter(job: Job) -> Sequence[Value]:
    return job.again(*map(_exchanged, job.xs))


@rule("all_to_all")
def _to_all(job: Job) -> Sequence[Value]:
    return [_exchanged(y) for y in job.again(*map(_exchanged, job.xs))]


@rule("gather_examples")
def _gather_examples(job: Job) -> Sequence[Value | Same]:
    x, own = job.xs[0], job.mapped[1]  # another batch than its own is one more axis
    return [Same(job.spread_one(0))] if own else [_exchanged(*job.again(x, job.xs[1]))]


def _exchanged(x: Value) -> Value:
    """Swaps the first two axes, those of examples and of ranks."""
    rest = range(2, len(x.shape or ()))
    return catalogue.transpose(x, perm=(1, 0, *rest))

"""The order in which a rank computes the forward and backward passes of its micro-batches.

In all schedules, a stage computes the micro-batches in order, and gradients accumulate in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Pass(NamedTuple):
    """The forward or backward pass of one micro-batch through one stage."""

    stage: int
    backward: bool
    micro_batch: int


def forward_only(stages: list[int], micro_batches: int) -> list[Pass]:
    """All forward passes."""
    return [Pass(stage, False, i) for stage in stages for i in range(micro_batches)]


def all_then_all(stage: int, micro_batches: int) -> list[Pass]:
    """All forward passes, then all backward passes (GPipe, Huang et al. 2019).

    Example:
        >>> [("B" if p.backward else "F") + str(p.micro_batch) for p in all_then_all(0, 2)]
        ['F0', 'F1', 'B0', 'B1']
    """
    numbers = range(micro_batches)
    return [Pass(stage, backward, i) for backward in (False, True) for i in numbers]


def one_by_one(stage: int, stages: int, micro_batches: int) -> list[Pass]:
    """One forward pass, one backward pass (PipeDream-flush, Narayanan et al. 2021, section 2.2.1).

    A stage starts with as many forward passes as there are stages from it to the last. That is the
    most activations that it keeps.

    Example:
        >>> order = one_by_one(0, 2, 3)
        >>> [("B" if p.backward else "F") + str(p.micro_batch) for p in order]
        ['F0', 'F1', 'B0', 'F2', 'B1', 'B2']
    """
    forward = forward_only([stage], micro_batches)
    ahead = stages - stage
    passes = forward[:ahead]
    for i in range(micro_batches):
        passes += [Pass(stage, True, i), *forward[ahead + i : ahead + i + 1]]
    return passes


def interleaved(rank: int, ranks: int, chunks: int, micro_batches: int) -> list[Pass]:
    """One forward pass, one backward pass, with several stages per rank (section 2.2.2).

    Rank r has the stages r, r + ranks, r + 2 ranks, ... Micro-batches are divided into rounds: all
    those of a round go through one stage of a rank, then through its next.
    """
    in_round = micro_batches // max(1, micro_batches // ranks)
    total = chunks * micro_batches
    ahead = min((chunks - 1) * in_round + 2 * (ranks - 1 - rank), total)

    def passes(backward: bool) -> Iterator[Pass]:
        counts = [0] * chunks
        for step in range(total):
            chunk = step // in_round % chunks
            chunk = chunks - 1 - chunk if backward else chunk
            yield Pass(chunk * ranks + rank, backward, counts[chunk])
            counts[chunk] += 1

    forward, backward = list(passes(False)), list(passes(True))
    schedule = forward[:ahead]
    for i in range(total):
        schedule += [*forward[ahead + i : ahead + i + 1], backward[i]]
    return schedule

"""The calls of two ranks are compared one by one, however each cuts them into programs."""

import itertools

import numpy as np
import pytest

from weft.transport.sequence import HISTORY, Announced, CallLog, CallSequence, Planned


def programs(names, cuts, group=0):
    ends = [0, *sorted(cuts), len(names)]
    return [
        CallSequence([(group, Planned(n, f" (created at a.py:{n})")) for n in names[a:b]])
        for a, b in itertools.pairwise(ends)
        if a < b
    ]


def run(log, sequences, rank):
    """Enter programs; what the rank tells others of them."""
    told = []
    for sequence in sequences:
        starts = log.enter(sequence)
        told += [Announced(rank, g, start, sequence.digests[g]) for g, start in starts.items()]
    return told


@pytest.mark.parametrize("seed", range(20))
def test_the_first_call_that_differs_is_found_whatever_the_cuts(seed):
    random = np.random.default_rng(seed)
    mine = list(map(str, random.integers(0, 4, 12)))
    theirs, wrong = list(mine), int(random.integers(-1, 12))
    if wrong >= 0:
        theirs[wrong] = "other"
    cuts = [random.choice(12, random.integers(0, 4), replace=False).tolist() for _ in range(2)]
    log, other = CallLog(), CallLog()
    told = run(other, programs(theirs, cuts[1]), 1)
    late = bool(random.integers(2))  # whether they are told before this rank comes to its calls
    if late:
        [log.announced(x) for x in told]
    run(log, programs(mine, cuts[0]), 0)
    if not late:
        [log.announced(x) for x in told]
    found = log.differences()
    assert [(d.rank, d.number) for d in found] == ([(1, wrong + 1)] if wrong >= 0 else [])
    if found:
        assert str(found[0].call) == f"{mine[wrong]} (created at a.py:{mine[wrong]})"
        assert str(other.call(0, wrong + 1)).startswith("other")
    assert log.differences() == []  # told once


def test_groups_are_numbered_apart_and_old_runs_are_forgotten():
    log = CallLog()
    for _ in range(HISTORY + 1):
        log.enter(
            CallSequence([(0, Planned("a", "")), (7, Planned("b", "")), (7, Planned("c", ""))])
        )
    assert log.call(0, 1) is None and log.call(7, 2 * HISTORY + 2) == Planned("c", "")
    log.announced(Announced(3, 7, 2 * HISTORY + 1, [Planned("b", "").digest, 0]))
    assert [(d.group, d.number) for d in log.differences()] == [(7, 2 * HISTORY + 2)]

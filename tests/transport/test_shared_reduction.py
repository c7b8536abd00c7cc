"""Collectives in shared memory, here of threads, give the bits of those by messages."""

import numpy as np
import pytest

from weft.ir.dtype import bfloat16
from weft.runtime.execution import driver
from weft.transport import collective, shared
from weft.transport.channel import REGION_BYTES, Channel
from weft.transport.group import Group
from weft.transport.local import in_threads

SIZES = [2, 3, 4]
COUNTS = [0, 1, 7, 20_000, 600_001]  # nothing, small, more than all read whole, several pieces


def sharing(size, work):
    """The result of `work` on each of `ranks` ranks that share memory."""
    memory = [np.zeros(REGION_BYTES, np.uint8) for _ in range(size)]

    def run(transport):
        group = Group(transport, range(size))
        if transport.size > 1:
            group.channel = Channel(
                memory, group.ranks, group.index, lambda: driver.entries().meet, True
            )
        return work(group)

    return in_threads(size, run)


def both(size, work):
    """The same in shared memory, and by messages."""
    return sharing(size, work), in_threads(size, lambda t: work(Group(t, range(size))))


def drawn(count, dtype, seed):
    return np.random.default_rng(seed).standard_normal(count).astype(dtype)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["sum", "mean", "max"])
@pytest.mark.parametrize("dtype", [np.float32, bfloat16.numpy])
def test_reductions_have_the_bits_of_messages(size, name, dtype):
    def work(group):
        found = []
        for turn in range(3):
            for count in COUNTS:
                x = drawn(count, dtype, 10 * turn + group.index)
                collective.all_reduce(group, x, x, name, f"{name} of {count}")
                found.append(x)
        return found

    for found, wanted in zip(*both(size, work), strict=True):
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(a.view(np.uint8), b.view(np.uint8))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("shapes", [[(3,), (), (2, 5)], [(700, 500), (0,), (3,), (40, 9)]])
def test_several_arrays_are_reduced_as_one(size, shapes):
    """Of members too that give them as one array, as those do that have joined."""

    def work(group, whole):
        xs = [drawn(shape, np.float32, group.index + i) for i, shape in enumerate(shapes)]
        flat = np.concatenate([x.ravel() for x in xs])
        given = [flat] if whole or group.index == 1 else xs
        if group.channel is None:
            collective.all_reduce(group, flat, flat, "mean", "several")
        else:
            shared.all_reduce(group, group.channel, given, given, "mean", "several")
        return np.concatenate([x.ravel() for x in given])

    wanted = in_threads(size, lambda t: work(Group(t, range(size)), True))
    for found in sharing(size, lambda group: work(group, False)):
        np.testing.assert_array_equal(found, wanted[0])


@pytest.mark.parametrize("size", SIZES)
def test_parts_of_any_lengths(size):
    def work(group):
        lengths = [100_000 * i + 3 * (i == 1) for i in range(size)]
        rows = [np.zeros(n, np.float32) for n in lengths]
        collective.all_gather(
            group, drawn(lengths[group.index], np.float32, group.index), rows, "g"
        )
        parts = [drawn(n, np.float32, group.index + 7 * n) for n in lengths]
        out = np.zeros(lengths[group.index], np.float32)
        collective.reduce_scatter(group, parts, out, "sum", "r")
        return [*rows, out]

    for found, wanted in zip(*both(size, work), strict=True):
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(a, b)


def test_calls_that_differ_do_not_meet():
    def work(group):
        group.timeout = 0.3
        x = np.ones(3, np.float32)
        collective.all_reduce(group, x, x, "sum", f"call {group.index}")

    with pytest.raises(Exception, match=r"call \d.*: no answer from rank \d for 0.3 s"):
        sharing(2, work)

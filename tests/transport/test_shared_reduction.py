"""Collectives in shared memory, here of threads, give the bits of those by messages."""

import numpy as np
import pytest

from weft.ir.dtype import bfloat16
from weft.runtime.all_reduce import all_reduce_function
from weft.runtime.execution import driver
from weft.transport import channel as channel_module
from weft.transport import collective, shared
from weft.transport.channel import LINE_BYTES, REGION_BYTES, Channel
from weft.transport.group import Group
from weft.transport.local import LocalTransport, in_threads
from weft.transport.native import BUSY, CALLS, DONE, FAILED, SHOWN, TRACED, Native
from weft.transport.reduction import Tree
from weft.transport.shared_call import SharedCall

NATIVE = Native(
    lambda: driver.entries().meet, all_reduce_function, lambda: driver.entries().stream
)  # fmt: skip
SIZES = [2, 3, 4]
COUNTS = [0, 1, 7, 20_000, 600_001]  # nothing, small, more than all read whole, several pieces


def sharing(size, work):
    """The result of `work` on each of `ranks` ranks that share memory."""
    memory = [np.zeros(REGION_BYTES, np.uint8) for _ in range(size)]

    def run(transport):
        group = Group(transport, range(size))
        if transport.size > 1:
            group.channel = Channel(memory, group.ranks, group.index, NATIVE, True, transport.words)
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
@pytest.mark.parametrize("slow", [0.0, np.inf])
def test_reductions_have_the_bits_of_messages(size, name, dtype, slow, monkeypatch):
    """Whether pieces are written past the caches, as they are after a slow one, or not."""
    monkeypatch.setattr(channel_module, "SLOW", slow)

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


KINDS = [("sum", np.float32), ("mean", np.float32), ("mean", np.float64), ("sum", np.int64)]


@pytest.mark.parametrize("size", [2, 3, 4, 5, 8])
@pytest.mark.parametrize(("name", "dtype"), KINDS)
def test_native_code_has_the_bits_of_the_tree(size, name, dtype):
    """Of one member, who finds that all others have raised their flags."""
    transport, dtype = LocalTransport(0, size), np.dtype(dtype)
    group = Group(transport, range(size))
    memory = [np.zeros(REGION_BYTES, np.uint8) for _ in range(size)]
    group.channel = channel = Channel(memory, group.ranks, 0, NATIVE, True, transport.words)
    function = all_reduce_function(name, dtype, size)
    for number, count in enumerate((1, 7, 16, 17, 1000), 1):
        rows = [(10 * drawn(count, np.float64, i)).astype(dtype) for i in range(size)]
        call = SharedCall(group, channel, name, "native", dtype, [count], None)
        for other in range(1, size):
            channel.slots(number & 1, dtype, count)[other][...] = rows[other]
            flags = memory[other][(number & 1) * LINE_BYTES :][:8].view(np.int64)
            flags[0] = number << 32 | group.tag_of("native")
        found, wanted = np.empty(count, dtype), np.empty(count, dtype)
        function(call.place)(rows[0], found)
        assert call.table.stage == DONE and transport.words[CALLS] == group.turn == number
        Tree(rows, name).into(wanted)
        np.testing.assert_array_equal(found.view(np.uint8), wanted.view(np.uint8))


def test_native_code_leaves_to_python_what_has_to_wait():
    transport = LocalTransport(0, 2)
    group, x = Group(transport, range(2)), np.ones(3, np.float32)
    memory = [np.zeros(REGION_BYTES, np.uint8) for _ in range(2)]
    group.channel = channel = Channel(memory, group.ranks, 0, NATIVE, True, transport.words)
    call = SharedCall(group, channel, "sum", "native", x.dtype, [3], None)
    function = all_reduce_function("sum", x.dtype, 2)(call.place)
    for word in (BUSY, TRACED, FAILED):
        transport.words[word] = 1
        function(x, x)
        assert (call.table.stage, group.turn) == (0, 0)
        transport.words[word] = 0
    function(x, x)
    assert (call.table.stage, group.turn, channel.missing()) == (SHOWN, 1, [1])
    channel.close()
    function(x, x)
    assert (call.table.stage, group.turn) == (0, 1)


@pytest.mark.parametrize(("name", "dtype"), [("max", "float32"), ("sum", "float16"), ("mean", "?")])
def test_what_native_code_does_not_reduce(name, dtype):
    assert all_reduce_function(name, np.dtype(dtype), 2) is None
    assert all_reduce_function("sum", np.dtype("float32"), 9) is None

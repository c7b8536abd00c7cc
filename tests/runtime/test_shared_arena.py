"""The shared arena: one address, resident up to the largest program's needs."""

from __future__ import annotations

import gc
import mmap
import resource

import numpy as np
import pytest

from weft import ops
from weft.errors import OutOfMemoryError
from weft.ir.graph import Graph
from weft.runtime.engine import Function, State
from weft.runtime.execution.program import Program
from weft.runtime.memory.arena import HUGE
from weft.runtime.memory.shared import SharedArena, arena_of, expect


def resident_pages():
    with open("/proc/self/statm", encoding="ascii") as text:
        return int(text.read().split()[1])


def test_programs_have_the_same_memory_and_lock():
    (a, first), (b, second) = arena_of(3 * HUGE, True), arena_of(5 * HUGE + 17, True)
    assert isinstance(a, SharedArena) and isinstance(b, SharedArena)
    assert a.address == b.address and a.address % HUGE == 0 and first is second
    assert (a.size, b.size) == (a.bytes.size, b.bytes.size) == (3 * HUGE, 5 * HUGE + 17)
    b.view(5 * HUGE, np.dtype(np.uint8), (17,))[...] = 1


def test_small_and_unshared_arenas_are_private():
    for a, b in (arena_of(64, True), arena_of(HUGE, False)), (arena_of(HUGE, False),) * 2:
        assert not isinstance(a[0], SharedArena) and not isinstance(b[0], SharedArena)
    assert arena_of(64, True)[1] is not arena_of(64, True)[1]


def faults_of_writing(block):
    """Page faults of this thread alone: others of the process have theirs at any time."""
    gc.collect()
    gc.disable()
    try:
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
        block[::512] = 1
        return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before
    finally:
        gc.enable()


def test_every_page_is_there_and_goes_with_the_last_user():
    size = 64 * HUGE
    arena, _ = arena_of(size, True)
    arena.ready()
    faults_of_writing(np.zeros(HUGE, np.uint8))
    assert faults_of_writing(arena.bytes) < 20
    assert faults_of_writing(np.frombuffer(mmap.mmap(-1, 64 * HUGE), np.uint8)) >= 64
    held = resident_pages()
    del arena
    gc.collect()
    assert held - resident_pages() > size // 4096 // 2


def test_what_is_expected_is_resident_and_what_is_too_much_of_it_goes():
    gc.collect()
    size = 64 * HUGE
    expect(size)
    arena, _ = arena_of(size, True)
    arena.ready()
    before = resident_pages()
    assert arena.bytes[-1] == 0
    held = arena_of(2 * HUGE, True)  # another program's
    del arena
    gc.collect()
    assert before - resident_pages() > size // 4096 // 2
    expect(size)
    small = arena_of(HUGE, True)
    assert before - resident_pages() > size // 4096 // 2
    expect(1 << 62)
    del held, small


def test_no_step_runs_before_every_page_is_there():
    size = 64 * HUGE
    arena, _ = arena_of(size, True)
    Program([], {}, arena)
    assert arena.residence.is_complete


def test_too_much_is_a_clean_error():
    with pytest.raises(OutOfMemoryError):
        arena_of(1 << 62, True)


def test_two_functions_in_turns():
    graph = Graph()
    with graph.as_default():
        x = ops.placeholder(dtype="float32", shape=(None, 1024))
        y = ops.softmax(ops.matmul(x, ops.transpose(x)) * 0.01)
        z = ops.sum(ops.matmul(y, x), axes=(0,))
    function, state = Function(graph, [z], feeds=[x]), State()
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=(n, 1024)).astype(np.float32) for n in (1024, 1500)]
    first = [function([a], state)[0] for a in inputs]
    arenas = [function.program([a], state).arena for a in inputs]
    assert all(isinstance(a, SharedArena) for a in arenas)
    for _ in range(2):
        for a, expected in zip(inputs, first, strict=True):
            assert np.array_equal(function([a], state)[0], expected)

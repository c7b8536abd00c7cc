"""Asynchronous programs are complete and correct, whatever happens meanwhile."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from handmade import affine, fails, increment, make, nothing, python, random_program, threads_seen
from patience import LIMIT

from weft.passes.launch import ERROR
from weft.runtime import flight
from weft.runtime.execution.call import Call, External, InArena
from weft.runtime.execution.program import Fault, Program
from weft.runtime.execution.team import TEAM, Team
from weft.runtime.flight import land
from weft.runtime.memory.arena import Arena

NONE = frozenset[int]()


@pytest.fixture
def alone(monkeypatch):
    """A team without workers: what a caller leaves stays undone until someone lands it."""
    TEAM.stop()
    monkeypatch.setattr(Team, "_start", lambda *_: None)
    yield
    TEAM.stop()


def segments(program: Program) -> int:
    assert program.segmented is not None
    return len(program.segmented.segments)


def counting(calls: int = 20) -> tuple[Program, np.ndarray]:
    """Calls that add 1 to 64 numbers, one after the other."""
    arena = Arena(64 * 8)
    cells = InArena(0, 64 * 8)
    program = make([Call(increment(), (cells,), (0,), 64)] * calls, arena, threads=2, long=True)
    return program, arena.view(0, np.dtype(np.int64), (64,))


@pytest.mark.parametrize("threads", [2, 3, 8])
@pytest.mark.parametrize("seed", range(4))
def test_results_are_the_same_wherever_the_caller_leaves(seed, threads):
    program, _, results = random_program(seed, threads)
    for leave in (*range(segments(program) + 1), *range(segments(program))):
        for result, _ in results[1:]:
            result[:] = 0
        assert program.run_ahead(leave, NONE, None) is None
        land()
        for result, expected in results:
            np.testing.assert_array_equal(result, expected)


def test_what_is_waited_for_is_done_and_the_rest_is_not(alone):
    program, values = counting()
    for leave in range(20):
        values[:] = 0
        program.run_ahead(leave, NONE, None)
        assert (values == leave).all()
        land()
        assert (values == 20).all()


def test_the_team_does_the_rest():
    arena = Arena(2 * 256 * 8)
    first, second = InArena(0, 256 * 8), InArena(256 * 8, 256 * 8)
    calls = [Call(threads_seen(), (place,), (0,), 256) for place in (first, second, first)]
    program = make([*calls, *calls], arena, threads=2, long=True)
    seen = arena.view(256 * 8, np.dtype(np.int64), (256,))
    for _ in range(2000):
        seen[:] = 0
        program.run_ahead(0, NONE, None)
        for _ in range(100_000):
            if (seen == 2).any():
                break
        else:
            continue
        land()
        return
    pytest.fail("nobody but the caller did anything")


def test_the_next_program_waits(alone):
    program, values = counting()
    other, _ = counting(2)
    values[:] = 0
    program.run_ahead(3, NONE, None)
    other.run()
    assert (values == 20).all()
    program.run_ahead(3, NONE, None)
    program.run_ahead(5, NONE, None)
    assert (values == 45).all()
    land()
    assert (values == 60).all()


def test_arrays_that_the_rest_does_not_touch_are_not_waited_for(alone):
    program, values = counting()
    values[:] = 0
    program.run_ahead(3, frozenset([7]), None)
    flight.land_for(7)
    assert (values == 3).all()
    flight.land_for(8)
    assert (values == 20).all()


def test_after_a_fault_nothing_is_left():
    arena = Arena(64 * 8)
    cells = InArena(0, 64 * 8)
    calls = [
        Call(nothing(), (cells,), (0,), 64),
        Call(fails(3, 5, 7), (ERROR,), (), check=True),
        Call(increment(), (cells,), (0,), 64, guard=True),
    ]
    program = make(calls, arena, threads=2, long=True)
    assert program.ends is not None
    assert program.run_ahead(program.ends.checks + 1, NONE, None) == Fault(3, 5, 7)
    assert not flight.aloft
    assert not arena.view(0, np.dtype(np.int64), (64,)).any()


def test_ends_say_when_a_program_is_done_with_what():
    k, a = affine(1.0, 1.0), InArena(0, 256)
    x, y, z = (External(i, 256) for i in range(3))
    calls = [Call(k, (x, a), (1,)), Call(k, (a, y), (1,)), Call(k, (y, z), (1,))]
    ends = make(calls, Arena(256), threads=2, externals=3, long=True).ends
    assert ends is not None
    assert ends.externals.tolist() == [0, 2, 2]
    assert ends.checks == -1
    assert ends.left_ns[0] > ends.left_ns[1] > ends.left_ns[3] == 0


def test_programs_that_call_python_or_have_one_thread_are_not_left():
    cells = InArena(0, 64 * 8)
    count = Call(increment(), (cells,), (0,), 64)
    assert make([count], Arena(64 * 8), threads=1, long=True).ends is None
    calls = [count, Call(python(lambda: None), (), ())]
    assert make(calls, Arena(64 * 8), 2, long=True).ends is None


@pytest.mark.parametrize("late", [False, True])
def test_an_exception_on_the_way_in_or_out_leaves_a_program_whole(alone, late):
    program, values = counting()
    enter = program.enter

    def interrupted(pointer: object) -> int:
        if late:
            enter(pointer)
        raise KeyboardInterrupt

    values[:] = 0
    program.enter = interrupted
    with pytest.raises(KeyboardInterrupt):
        program.run_ahead(3, NONE, None)
    program.enter = enter
    assert (values == 3 * late).all()
    program.run()
    assert (values == 20 + 20 * late).all()
    assert not flight.aloft


def test_what_it_works_on_is_kept_until_it_is_done(alone):
    class Memory:
        gone = False

        def __del__(self) -> None:
            Memory.gone = True

    program, _ = counting()
    program.run_ahead(3, NONE, Memory())
    assert not Memory.gone
    land()
    assert Memory.gone


def test_threads_start_leave_and_land_programs():
    programs = [counting() for _ in range(3)]
    for _, values in programs:
        values[:] = 0
    faults: list[BaseException] = []

    def use(number: int) -> None:
        try:
            for turn in range(300):
                program, values = programs[(number + turn) % len(programs)]
                with program.lock:
                    program.run_ahead(turn % 20, NONE, None)
                    land()
                    assert values[0] % 20 == 0
                    assert (values == values[0]).all()
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=use, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    assert sum(int(values[0]) for _, values in programs) == 4 * 300 * 20


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_finds_memory_finished(alone):
    program, values = counting()
    values[:] = 0
    program.run_ahead(3, NONE, None)
    child = os.fork()
    if child == 0:
        os._exit(0 if (values == 20).all() and not flight.aloft else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (values == 20).all()


def test_a_team_that_stops_finishes_first():
    program, values = counting()
    values[:] = 0
    program.run_ahead(3, NONE, None)
    TEAM.stop()
    assert (values == 20).all()
    program.run_ahead(3, NONE, None)
    land()
    assert (values == 40).all()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_takes_locks_in_the_order_in_which_steps_take_them(monkeypatch):
    monkeypatch.setattr(flight, "PATIENCE_SECONDS", LIMIT)
    pairs = [(flight.new_lock(flight.OUTER), flight.new_lock(flight.STEP)) for _ in range(8)]
    begun, forking = threading.Event(), threading.Event()

    def run() -> None:
        with contextlib.ExitStack() as held:
            for outer, _ in pairs:
                held.enter_context(outer)
            begun.set()
            forking.wait()
            time.sleep(0.1)
            for _, step in pairs:
                held.enter_context(step)

    thread = threading.Thread(target=run)
    thread.start()
    begun.wait()
    forking.set()
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert time.monotonic() - start < LIMIT / 2
    os.waitpid(child, 0)
    thread.join()


_QUEUE_AT_THE_END = """
import multiprocessing.util, time
import weft as wf

class Late:
    def __init__(self, value):
        self.value = value

    def __reduce__(self):
        time.sleep(0.3)  # the process ends meanwhile
        return float, (self.value.sum().item(),)

def read(queue):
    print(queue.get(timeout=20), flush=True)

context = multiprocessing.get_context("fork")
queue = context.Queue()
process = context.Process(target=read, args=(queue,))
process.start()
queue.put(Late(wf.ones(3) * 2))
"""


def test_what_a_queue_holds_is_computed_at_the_end_of_a_process():
    command = [sys.executable, "-c", _QUEUE_AT_THE_END]
    found = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert found.stdout == "6.0\n"

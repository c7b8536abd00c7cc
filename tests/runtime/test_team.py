"""The thread team: equal results on any number of threads, under disturbances."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest
from handmade import BLOCK, affine, increment, make, nothing, random_program, threads_seen
from patience import LIMIT

from weft.codegen.driver import source
from weft.codegen.target import current
from weft.passes.launch import Kernel
from weft.runtime.compilation.compiler import compile_kernels
from weft.runtime.execution import driver, segment
from weft.runtime.execution.call import Call, InArena
from weft.runtime.execution.team import TEAM
from weft.runtime.memory.arena import Arena


@pytest.mark.parametrize("threads", [1, 2, 4, 16])
@pytest.mark.parametrize("seed", range(6))
def test_results_are_bitwise_equal_on_any_number_of_threads(seed, threads):
    program, _x, results = random_program(seed, threads)
    assert program.parallel == (threads > 1)
    for _ in range(10):
        program.run()
        for result, expected in results:
            np.testing.assert_array_equal(result, expected)


def test_the_comparison_can_fail():
    """A call missing from the segments' order gives another result."""
    program, _, results = random_program(0, 2)
    assert program.segmented is not None
    program.segmented.units["end"][-1] = program.segmented.units["begin"][-1]
    results[1][0][:] = 0
    program.run()
    assert not np.array_equal(*results[1])


def test_without_barriers_the_comparison_fails(monkeypatch):
    monkeypatch.setattr(segment, "group", lambda calls: [list(range(len(calls)))])
    program, _, results = random_program(0, 2)
    for _ in range(3000):
        for result, _ in results[1:]:
            result[:] = 0
        program.run()
        if not all(np.array_equal(*pair) for pair in results):
            return
    pytest.fail("calls that depend on each other ran at the same time, and nobody noticed")


def test_many_runs_count_right():
    """Every chunk of every run is done exactly once, by any thread."""
    arena, counts = Arena(100 * 8), 10_000
    cells = InArena(0, 100 * 8)
    calls = [Call(increment(), (cells,), (0,), 100) for _ in range(3)]
    program = make(calls, arena, threads=2, long=True)
    for _ in range(counts):
        program.run()
    values = arena.view(0, np.dtype(np.int64), (100,))
    assert (values == 3 * counts).all()


def test_independent_calls_share_a_segment_and_dependent_ones_do_not():
    a, b, c = (InArena(i * 4 * BLOCK, 4 * BLOCK) for i in range(3))
    k = affine(1.0, 1.0)
    arena = Arena(3 * 4 * BLOCK)

    def segments(*calls: Call) -> int:
        program = make(calls, arena, threads=2, long=True)
        assert program.segmented is not None
        return len(program.segmented.segments)

    assert segments(Call(k, (a, b), (1,)), Call(k, (a, c), (1,))) == 1
    assert segments(Call(k, (a, b), (1,)), Call(k, (b, c), (1,))) == 2  # reads what was written
    assert segments(Call(k, (a, b), (1,)), Call(k, (c, a), (1,))) == 2  # writes what was read
    assert segments(Call(k, (a, b), (1,)), Call(k, (c, b), (1,))) == 2  # writes it twice
    half = InArena(2 * BLOCK, 4 * BLOCK)
    assert segments(Call(k, (a, b), (1,)), Call(k, (half, c), (1,))) == 2  # partly


def test_long_calls_are_cut_into_more_units():
    arena, cells = Arena(64 * 8), InArena(0, 64 * 8)

    def units(flops: float) -> int:
        program = make([Call(increment(), (cells,), (0,), 64, flops=flops)], arena, threads=2)
        assert program.segmented is not None
        return len(program.segmented.units)

    assert units(5e6) == 16  # 50 us
    assert units(2e8) == 40  # 2 ms
    assert units(1e9) == 64  # no more than there are chunks


def test_the_team_takes_part():
    arena = Arena(256 * 8)
    call = Call(threads_seen(), (InArena(0, 256 * 8),), (0,), 256)
    program = make([call], arena, threads=2, long=True)
    seen: set[int] = set()
    for _ in range(2000):
        program.run()
        seen.update(arena.view(0, np.dtype(np.int64), (256,)).tolist())
        if len(seen) > 1:
            break
    assert seen == {1, 2}


def test_a_narrow_program_leaves_the_others_of_a_wide_team_out():
    arena = Arena(64 * 8)
    call = Call(threads_seen(), (InArena(0, 64 * 8),), (0,), 64)
    wide, narrow = (make([call], arena, threads=n, long=True) for n in (8, 2))
    for _ in range(200):
        wide.run()
        narrow.run()
        assert arena.view(0, np.dtype(np.int64), (64,)).max() <= 2


def test_a_sleeping_team_wakes():
    program, _, results = random_program(1, 2)
    for _ in range(10):
        program.run()
        time.sleep(0.01)
    np.testing.assert_array_equal(*results[1])


def test_a_stopped_team_starts_again():
    program, _, results = random_program(2, 3)
    program.run()
    TEAM.stop()
    assert TEAM.size == 1
    results[1][0][:] = 0
    program.run()
    assert TEAM.size == 3
    np.testing.assert_array_equal(*results[1])


def test_short_programs_stay_on_the_callers_thread():
    program = make([Call(nothing(), (InArena(0, 64),), (0,), 8)] * 8, Arena(64), threads=4)
    assert not program.parallel


def test_python_threads_take_turns_and_the_team_serves_one_at_a_time():
    programs = [random_program(seed, 2) for seed in range(4)]
    faults: list[BaseException] = []

    def use(number: int) -> None:
        try:
            for turn in range(200):
                program, _, results = programs[(number + turn) % len(programs)]
                with program.lock:
                    program.run()
                    for result, expected in results:
                        np.testing.assert_array_equal(result, expected)
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=use, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_has_a_team_of_its_own():
    program, _, results = random_program(3, 2)
    program.run()
    results[1][0][:] = 0
    child = os.fork()
    if child == 0:
        status = 1
        try:
            program.run()
            first = np.array_equal(*results[1])
            again, _, others = random_program(4, 2)  # compiles, links, starts a thread
            again.run()
            status = 0 if first and np.array_equal(*others[1]) and TEAM.size == 2 else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    program.run()
    np.testing.assert_array_equal(*results[1])


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_waits_for_the_step_that_runs_in_another_thread():
    cells = InArena(0, 64 * 8)
    arena = Arena(64 * 8)
    calls = [Call(increment(), (cells,), (0,), 64) for _ in range(50)]
    program = make(calls, arena, threads=2, long=True)
    values = arena.view(0, np.dtype(np.int64), (64,))
    stop = threading.Event()

    def train() -> None:
        while not stop.is_set():
            with program.lock:
                program.run()

    thread = threading.Thread(target=train)
    thread.start()
    try:
        for _ in range(10):
            child = os.fork()
            if child == 0:
                whole = len(set(values.tolist())) == 1 and values[0] % 50 == 0
                os._exit(0 if whole and program.lock.acquire(timeout=LIMIT) else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("system", ["linux", "darwin"])
@pytest.mark.parametrize("machine", ["x86_64", "aarch64", "riscv64"])
def test_the_driver_is_written_for_every_system(system, machine):
    text = source(system, machine)
    assert "$" not in text
    assert ("@syscall" in text) == (system == "linux" and machine != "riscv64")


def test_the_portable_driver_works_too(monkeypatch):
    """No futex, no processor numbers: sleeping is polling."""
    text = source("darwin").replace("gettime(i32 6", "gettime(i32 1")  # Linux's clock
    kernel = Kernel("portable driver", text)
    portable = driver.entries_at(compile_kernels([kernel], current())[kernel])
    TEAM.stop()
    monkeypatch.setattr(driver, "_entries", portable)
    try:
        program, _, results = random_program(5, 2)
        for _ in range(5):
            program.run()
            time.sleep(0.003)
        np.testing.assert_array_equal(*results[1])
        assert TEAM.size == 2
    finally:
        TEAM.stop()

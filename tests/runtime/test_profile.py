"""Profiles and arena maps."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
import rich.console
from handmade import increment, make, python, random_program

from weft.passes.memory import Step, plan
from weft.runtime.execution.call import Call, InArena
from weft.runtime.measurement.peak import Meter, Peak
from weft.runtime.measurement.profile import (
    Row,
    Run,
    arena_map,
    covered_ns,
    measure,
    profile_steps,
    trace_events,
    watchers,
    work_of,
)
from weft.runtime.memory.arena import Arena


@pytest.mark.parametrize("threads", [1, 2])
def test_every_call_is_timed_and_results_stay(threads):
    program, _, results = random_program(2, threads)
    profile = measure(program, runs=4)
    for result, expected in results:
        np.testing.assert_array_equal(result, expected)
    assert sum(row.calls for row in profile.rows) == len(program.calls)
    assert all(row.ns > 0 and row.busy_ns > 0 for row in profile.rows)
    if threads == 1:
        assert sum(row.ns for row in profile.rows) <= profile.total_ns * 1.5
    busy = [row.busy_ns for row in profile.rows]
    assert busy == sorted(busy, reverse=True)
    assert not program._units["flags"].any()  # the clocks are gone


def test_profiled_runs_are_real_runs():
    arena = Arena(64)
    program = make([Call(increment(), (InArena(0, 64),), (0,), 8)], arena)
    measure(program, runs=3)
    assert arena.view(0, np.dtype(np.int64), (8,)).tolist() == [3] * 8


def test_what_comes_after_a_fault_is_not_timed():
    def host() -> None:
        raise ValueError

    calls = [Call(python(host), (), ()), Call(increment(), (InArena(0, 64),), (0,), guard=True)]
    program = make(calls, Arena(64))
    with pytest.raises(ValueError):
        program.record()
    assert program._table.records is None


def test_the_table_prints():
    program, _, _ = random_program(2, 1)
    console = rich.console.Console(width=100, file=io.StringIO())
    console.print(measure(program).table(limit=2))
    text = console.file.getvalue()
    assert "GFLOP/s" in text and "affine" in text and "more" in text


def test_the_arena_map_shows_lives():
    steps = [Step((), (0,)), Step((0,), (1,)), Step((1,), (2,)), Step((2,), ())]
    text = arena_map(plan(steps, {0: 6400, 1: 3200, 2: 6400}), {1: "hidden"}, rows=3)
    assert text.splitlines() == [
        "arena 9,600 B, 3 buffers, most alive at once 9,600 B (at step 1)",
        "|@@@@|",
        "|@@@@|",
        "| @@ |",
        "         6,400 B  steps 0-1  buffer 0",
        "         6,400 B  steps 2-3  buffer 2",
        "         3,200 B  steps 1-2  hidden",
    ]


def test_an_empty_arena_has_a_map():
    assert arena_map(plan([], {})).startswith("arena 0 B")


def recorded(threads):
    program, _, _ = random_program(3, threads)
    works = ["a" if i % 2 else "b" for i in range(len(program.calls))]
    return Run(program, works, program.record(), blueprint=None)  # nothing here looks into it


@pytest.mark.parametrize("threads", [1, 2])
def test_a_step_of_several_programs_has_one_profile(threads):
    runs = [recorded(threads), recorded(threads)]
    again = [replace(run, recording=run.program.record()) for run in runs]
    profile = profile_steps([[runs[0]], runs, again], 1e9)
    assert sum(row.calls for row in profile.rows) == sum(len(r.program.calls) for r in runs)
    assert {row.work for row in profile.rows} == {"a", "b"}
    assert len({(row.name, row.work) for row in profile.rows}) == len(profile.rows)
    assert 0 < covered_ns(runs) <= sum(run.recording.total_ns for run in runs)


def test_a_trace_has_every_unit_and_a_track_for_each_thread():
    run = recorded(2)
    events = trace_events([run], "a step")["traceEvents"]
    spans = [e for e in events if e["ph"] == "X" and e["tid"]]
    assert len(spans) == (run.recording.records["start"] > 0).sum()
    assert {e["args"]["work"] for e in spans} == {"a", "b"}
    named = {e["tid"] for e in events if e["name"] == "thread_name"}
    assert {e["tid"] for e in events if e["ph"] == "X"} <= named


def test_watching_ends_with_its_block():
    with watchers.watch() as outer:
        with watchers.watch() as inner:
            watchers[-1](recorded(1))
        watchers[0](recorded(1))
    assert (len(outer), len(inner), watchers) == (1, 1, [])


def test_a_share_is_of_the_nearer_peak():
    row = Row("kernel", 1, ns=1e6, busy_ns=1e6, flops=5e7, bytes=1e7)
    assert row.share(Peak(100.0, 20.0)) == 0.5
    assert row.share(Peak(100.0, 10.0)) == 1.0


def test_work_without_a_group_has_no_shapes():
    assert work_of(None) == ""


def test_peaks_are_measured():
    meter = Meter(2)
    meter.take(2)
    assert meter.peak.gflops > 1 and meter.peak.gbytes > 0.1  # beside other work: not their ratio

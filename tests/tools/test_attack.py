"""The attacks: small runs find nothing, and each finds its planted fault."""

import functools
import importlib
import json
import multiprocessing
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import planted
import pytest

from tools.attack import __main__ as command
from tools.attack.files import difference
from tools.attack.hostile import surface
from tools.attack.hostile.agreement import different
from tools.attack.hostile.calling import drawn_call
from tools.attack.hostile.surface import targets
from tools.attack.hostile.value import Draw
from tools.attack.mutation import CHANGES, mutated
from tools.attack.plan import ATTACKS
from tools.attack.program import PROGRAMS
from tools.attack.state import ROWS
from tools.attack.verdict import DEATH, HANG, OTHER, PASSED, PLAIN, WRONG
from tools.attack.worker import Order, generator, judged
from weft import config

SMALL = {
    "calls": 60, "files": 200, "kills": 10, "signals": 3, "caches": 6, "memory": 3, "graphs": 4,
    "control": 3, "crowds": 1, "extremes": 4, "hosts": 1, "loops": 3, "ranks": 1, "tasks": 1,
    "threads": 4, "trainers": 4,
}  # fmt: skip


def run(folder: Path, name: str, count: int, fault: Callable[[], None] | None) -> list[str]:
    """Runs cases of an attack, with a fault or without; how they ended."""
    os.chdir(folder)
    for left_out in ("trained", "images", "deferred"):
        del PROGRAMS[left_out]
    if fault is not None:
        fault()
    case = importlib.import_module(f"tools.attack.{name}").begin()
    order = Order(name, 0, tuple(range(count)), "", 0)
    with config.override(cache=str(folder / "kernels")):
        found = [judged(case, generator(order, number)) for number in order.cases]
    return [f"{v.kind} {v.what} {v.detail}".strip() for v in found]


def sent(there: Connection, *given: Any) -> None:
    """Runs cases as `run` does, and sends how they ended."""
    there.send(run(*given))


@pytest.fixture
def kinds(tmp_path):
    """Calls `run` in a new process: gRPC does not survive a fork. One that hangs is killed."""
    fresh = multiprocessing.get_context("spawn")

    def isolated(*given: Any) -> list[str]:
        here, there = fresh.Pipe(duplex=False)
        process = fresh.Process(target=sent, args=(there, tmp_path, *given))
        process.start()
        there.close()
        try:
            assert here.poll(300), "no end within 300 s"
            return here.recv()
        finally:
            process.kill()
            process.join()

    return isolated


@pytest.fixture
def attack(monkeypatch, tmp_path):
    """Runs the command; returns its exit status and its JSON."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))  # of planted faults

    def run(*arguments, **options):
        out = tmp_path / "found.json"
        given = ["--jobs", "1", "--folder", tmp_path / "run", "--json", out, *arguments]
        status = command.main([str(a) for a in given], **options)
        return status, json.loads(out.read_text())

    before = signal.getsignal(signal.SIGTERM)
    yield run
    signal.signal(signal.SIGTERM, before)


def test_each_has_a_small_variant():
    assert SMALL.keys() == ATTACKS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_a_small_one_finds_nothing(name, kinds):
    assert kinds(name, SMALL[name], None) == [PASSED] * SMALL[name]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fault", "count", "expected"),
    [
        ("calls", planted.raises_plainly, 2, {PLAIN}),
        ("calls", planted.compiles_wrongly, 2, {WRONG}),
        ("calls", planted.compiles_nothing, 2, {WRONG}),
        ("calls", planted.fails, 2, {OTHER}),
        ("files", planted.loads_anything, 20, {WRONG}),
        ("files", planted.loads_with_plain_errors, 20, {PLAIN}),
        ("kills", planted.saves_in_place, 10, {WRONG}),
        ("kills", planted.saves_late, 3, {WRONG}),
        ("kills", planted.leaves_files, 3, {OTHER}),
        ("signals", planted.half_a_step, 5, {WRONG}),
        ("caches", planted.believes_the_cache, 6, {DEATH, WRONG}),
        ("memory", planted.raises_under_limits, 2, {PLAIN}),
        ("graphs", planted.computes_wrongly, 4, {WRONG}),
        ("control", planted.leaks_what_is_not_taken, 16, {WRONG}),
        ("threads", planted.forgets_changes, 8, {WRONG}),
        ("loops", planted.keeps_what_is_given_up, 3, {HANG}),
        ("extremes", planted.computes_wrongly, 6, {WRONG}),
        ("ranks", planted.ends_late, 1, {HANG}),
        ("tasks", planted.trains_slowly, 1, {HANG}),
        ("trainers", planted.loses_the_end, 12, {WRONG}),
    ],
)
def test_a_planted_fault_is_reported(name, fault, count, expected, kinds):
    assert {found.split()[0] for found in kinds(name, count, fault)} >= expected


@pytest.mark.slow
def test_a_death_is_reported_with_what_led_to_it(attack, capsys):
    fault = "planted:dies_of_what_was_before"
    status, found = attack("--only", "calls", "--count", "4", plant=fault)
    (row,) = found["findings"]
    assert (row["kind"], row["case"], row["first"]) == (DEATH, 2, 0)
    assert row["command"] == "python -m tools.attack --only calls --seed 0 --case 0-2"
    assert (status, found["counts"]["calls"]) == (1, {PASSED: 3, DEATH: 1})
    told = capsys.readouterr().out
    assert f"| calls: {ATTACKS['calls'].about} | 4 | 1 | 0 | 0 | 0 | 0 |" in told
    assert "calls: death, 1x: SIGSEGV" in told
    assert "weft.planted_function(" in told
    assert row["command"] in told


@pytest.mark.slow
def test_a_hang_is_reported(attack):
    _, found = attack("--only", "calls", "--count", "1", plant="planted:hangs", seconds=0.5)
    (row,) = found["findings"]
    assert (row["kind"], row["case"]) == (HANG, 0)


@pytest.mark.slow
def test_a_case_comes_out_again_alone(attack):
    _, found = attack("--only", "calls", "--count", "3", plant="planted:raises_plainly")
    row = found["findings"][-1]
    _, found = attack(*row["command"].split()[3:], plant="planted:raises_plainly")
    assert found["findings"] == [row]


@pytest.mark.slow
def test_a_run_continues_where_it_was_stopped(attack, tmp_path):
    rows, fault = tmp_path / "run" / ROWS, "planted:passes"
    status, found = attack("--only", "calls", "--count", "20", "--minutes", "0", plant=fault)
    assert (status, found["counts"]) == (2, {"calls": {}})
    attack("--resume", plant=fault)
    whole = rows.read_text()
    rows.write_text("".join(whole.splitlines(True)[:12])[:-5])  # the last is half a one
    status, found = attack("--resume", plant=fault)
    assert rows.read_text() == whole
    assert (status, found["counts"], found["findings"]) == (0, {"calls": {PASSED: 20}}, [])


def test_what_the_command_refuses(attack, tmp_path):
    with pytest.raises(SystemExit, match="there is no run in"):
        attack("--resume")
    with pytest.raises(SystemExit, match="expected --only with one attack"):
        attack("--case", "3")
    with pytest.raises(SystemExit):
        attack("--only", "files", "--case", "3-x")


def test_calls_are_of_every_front_end_and_the_same_each_time():
    fronts = {(target.front, target.kind) for target in targets()}
    assert {front for front, _ in fronts} == {"eager", "array", "graph", "node"}
    assert {kind for _, kind in fronts} >= {"function", "method", "layer", "op", "transform"}
    texts = [
        [str(drawn_call(Draw(np.random.default_rng(seed)))) for seed in range(40)] for _ in range(2)
    ]
    assert texts[0] == texts[1]
    assert len(set(texts[0])) == 40


def test_a_new_name_leaves_other_draws_as_they_are(monkeypatch):
    points = range(0, 1 << 32, 1 << 24)
    before = [surface.drawn_target(point).text for point in points]
    found = surface.targets()
    more = [replace(found[0], text=f"weft.new{k}") for k in range(30)]
    monkeypatch.setattr(surface, "targets", lambda: (*found, *more))
    monkeypatch.setattr(surface, "_ring", functools.cache(surface._ring.__wrapped__))
    after = [surface.drawn_target(point).text for point in points]
    assert 0 < sum(a != b for a, b in zip(before, after, strict=True)) < 20  # of 256
    assert {text for text in after if text.startswith("weft.new")}


def test_a_mutation_changes_bytes():
    data = bytes(range(256)) * 3
    random = np.random.default_rng(0)
    made = [mutated(random, data, 100) for _ in range(300)]
    assert all(found != data for found, _ in made)
    assert {how.split()[0] for _, how in made} == {change.__name__[1:] for change in CHANGES}


def test_differences_are_seen():
    one = np.array([1.0, np.nan, np.inf])
    assert different([one], [one.copy()]) == ""
    assert different([one], []) == "1 and 0 arrays"
    assert "float64[3] and float32[3]" in different([one], [one.astype(np.float32)])
    assert "at (1,)" in different([one], [np.array([1.0, 0.0, np.inf])])
    assert "at (0,)" in different([one.astype(np.float32)], [np.float32([1.01, np.nan, np.inf])])
    assert difference(("dict", [("a", 1)]), ("dict", [("a", 2)])) == "expected 1, got 2"

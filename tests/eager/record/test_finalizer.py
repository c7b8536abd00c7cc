"""Finalizers may read values that were not computed before, as they may read any other."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

import weft as wf
from weft.eager.record.run import program

SEEN: list[Any] = []


class Cycle:
    """Part of a garbage cycle, as soon as nothing else refers to it."""

    def __init__(self, made: Any, end: Callable[[Any], Any]) -> None:
        self.me, self.made, self.end = self, made, end

    def __del__(self) -> None:
        SEEN.append(self.end(self.made))


def read(t: wf.Tensor) -> Any:
    return t.tolist()


def reduced(t: wf.Tensor) -> Any:
    return t.sum().item()


def changed(t: wf.Tensor) -> Any:
    t.add_(1.0)
    view = t[1:]
    view *= 2.0
    return t.tolist()


def two() -> wf.Tensor:
    return wf.ones(3) * 2


P = wf.nn.Parameter(wf.ones(3))
CASES = {
    "value": (two, read, [2.0] * 3),
    "used": (two, reduced, 6.0),
    "changed": (two, changed, [3.0, 6.0, 6.0]),
    "view": (lambda: two()[1:], read, [2.0] * 2),
    "used view": (lambda: two()[1:], reduced, 4.0),
    "view of a view": (lambda: two().reshape(3, 1)[1:].t(), reduced, 4.0),
    "tracked": (lambda: (P * 3)[1:], reduced, 6.0),
    "one of several": (lambda: wf.sort(two() + wf.arange(3.0)).indices, reduced, 3),
}


@pytest.mark.parametrize("name", CASES)
def test_a_finalizer_reads_values(name: str) -> None:
    make, end, wanted = CASES[name]
    SEEN.clear()
    for _ in range(4):  # interpreted, known, compiled
        Cycle(make(), end)
        gc.collect(0)
    assert [wanted] * 4 == SEEN


@pytest.mark.parametrize("stage", ["structure_of", "assign_arrays"])
def test_no_finalizer_computes_what_is_being_computed(
    stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A collection that comes in the middle of a computation would begin it again.

    Python's own collections wait: between two in-place changes, one would show a finalizer the
    value between them.
    """
    inner, threshold = getattr(program, stage), gc.get_threshold()

    def collecting(*args: Any) -> Any:
        if gc.isenabled():
            gc.collect()
        return inner(*args)

    monkeypatch.setattr(program, stage, collecting)
    SEEN.clear()
    gc.set_threshold(0)
    try:
        for _ in range(2):
            x = wf.zeros(3)
            Cycle(x.add_(1.0), read)
            Cycle(two().reshape(3, 1)[1:].t(), read)
            x.add_(2.0)
            assert x.tolist() == [3.0] * 3
            Cycle(two(), read)
            wf.synchronize()
    finally:
        gc.set_threshold(*threshold)
    gc.collect()
    assert sorted(map(str, SEEN)) == sorted(map(str, [[3.0] * 3, [[2.0] * 2], [2.0] * 3] * 2))


def test_a_finalizer_may_run_a_backward_pass() -> None:
    p = wf.nn.Parameter(wf.ones(3))
    SEEN.clear()
    for _ in range(4):
        p.grad = None
        Cycle((p * 2).sum(), lambda loss: (loss.backward(), p.grad.tolist())[1])
        gc.collect(0)
    assert SEEN == [[2.0] * 3] * 4


def test_a_generator_that_is_garbage_reads_values_at_its_end() -> None:
    def run() -> Any:
        cycle: list[Any] = [t := two()]
        cycle.append(cycle)
        try:
            yield
        finally:
            SEEN.append(t.sum().item())

    SEEN.clear()
    for _ in range(4):
        cycle: list[Any] = [run()]
        next(cycle[0])
        cycle.append(cycle)
        del cycle
        gc.collect(0)
    assert SEEN == [6.0] * 4


AT_EXIT = """
    import atexit, os
    import weft as wf

    class Meter:
        def __init__(self):
            self.me, self.t, self.write = self, wf.ones(3) * 2, os.write
        def __del__(self):
            self.write(1, f"{self.t.sum().item()} {self.t.tolist()}\\n".encode())

    kept = [Meter() for _ in range(4)]
    last = wf.ones(2) * 5
    atexit.register(lambda: os.write(1, f"{last.sum().item()}\\n".encode()))
"""


def test_values_are_read_at_the_exit_of_the_interpreter() -> None:
    code = textwrap.dedent(AT_EXIT)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == ["10.0", *["6.0 [2.0, 2.0, 2.0]"] * 4], done.stderr
    assert not done.stderr

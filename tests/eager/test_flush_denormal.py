"""Subnormal numbers are kept by every tier, or flushed to zero by every tier."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft as wf
from weft import config
from weft.errors import ArgumentError

SIZE = 1 << 18  # elements, of which each thread of the team gets some
RUNS = 5  # the first are interpreted


@pytest.fixture
def flushing() -> Any:
    """Sets the mode of this thread; at the end, numbers are kept again."""
    yield wf.set_flush_denormal
    wf.set_flush_denormal(False)


def _answers(dtype: Any, tiny: float) -> list[list[Any]]:
    """What the first runs of a program and the later ones say of a subnormal number."""
    found: list[list[Any]] = []
    for _ in range(RUNS):
        x = wf.full((SIZE,), tiny, dtype=dtype)
        tests = ((x > 0).sum(), x.bool().sum(), x.sign().sum(), (x * 1 != 0).sum())
        values = ((x * 1).max(), x.double().max() * 2, wf.sqrt(-x).isnan().sum())
        found.append([y.item() for y in (*tests, *values)])
    return found


TYPES = [(wf.float32, 1e-40), (wf.float64, 1e-310), (wf.bfloat16, 1e-40)]


@pytest.mark.parametrize(("dtype", "tiny"), TYPES)
def test_every_run_keeps_them(dtype: Any, tiny: float) -> None:
    tiny *= 1.25  # a constant that was computed before stays
    kept = wf.tensor(tiny, dtype=dtype).item()
    expected = [SIZE, SIZE, SIZE, SIZE, kept, kept * 2, SIZE]
    assert _answers(dtype, tiny) == [expected] * RUNS


@pytest.mark.parametrize(("dtype", "tiny"), TYPES)
@pytest.mark.parametrize("threads", [1, 2])
def test_every_run_flushes_them(
    dtype: Any, tiny: float, threads: int, flushing: Callable[[bool], bool]
) -> None:
    assert flushing(True) is True
    with config.override(threads=threads):
        found = _answers(dtype, tiny)
    assert found[0][0] == found[0][3] == found[0][4] == 0
    assert found == [found[0]] * RUNS
    assert flushing(False) is True
    with config.override(threads=threads):
        other = tiny * 1.5
        assert _answers(dtype, other)[RUNS - 1][3] == SIZE  # the team has the new mode, too


def test_it_holds_for_this_thread_and_those_it_starts_later(
    flushing: Callable[[bool], bool],
) -> None:
    seen: dict[str, float] = {}
    begin = threading.Event()

    def look(name: str) -> None:
        seen[name] = float(np.float64(1e-310) * np.float64(1))

    def early() -> None:
        begin.wait()
        look("before")

    before = threading.Thread(target=early)
    before.start()
    flushing(True)
    begin.set()
    after = threading.Thread(target=look, args=("after",))
    after.start()
    look("here")
    before.join()
    after.join()
    assert seen == {"before": 1e-310, "after": 0.0, "here": 0.0}


def test_another_argument_is_refused() -> None:
    with pytest.raises(ArgumentError, match="set_flush_denormal: expected True or False, got 1"):
        wf.set_flush_denormal(1)

"""Loops and branches in programs: as interpreted, on any number of threads, stopped by Ctrl-C."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_loops import Loops

from weft import config
from weft.runtime import program, segment


@pytest.mark.parametrize("seed", range(60))
def test_drawn_loops_are_as_interpreted(seed: int) -> None:
    loops = Loops(seed)
    target = ("native", "x86-64-v3")[seed % 2]
    with config.override(target=target):
        found = loops.compiled()
    for got, want in zip(found, loops.expected(), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("seed", range(100, 108))
def test_any_number_of_threads_gives_the_same_bits(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "SERIAL_NS", 0.0)  # the team's tables, however little work it is
    monkeypatch.setattr(segment, "UNIT_NS", 1e-3)
    loops = Loops(seed)
    one = [np.asarray(y).tobytes() for y in loops.compiled(1)]
    for threads in (2, 4):
        assert [np.asarray(y).tobytes() for y in loops.compiled(threads)] == one

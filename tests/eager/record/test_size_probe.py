"""Sizes that change the recorded calls: few are probed, and a program serves the rest.

A mask that is padded to what a cache holds is cut instead from there on, as in a text that grows.
"""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.eager.record import dynamic_shape
from weft.eager.record import prepared_program as programs
from weft.eager.record.dynamic_shape import Family
from weft.nn import functional as F

pytestmark = pytest.mark.usefixtures("unstitched")

ROOM = 64  # rows that the mask is for
FIRST = 5
MOST = 90


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without programs of earlier tests; nothing is interpreted for long."""
    monkeypatch.setattr(programs, "_programs", type(programs._programs)())
    monkeypatch.setattr(programs, "_families", {})
    monkeypatch.setattr(dynamic_shape, "_families", type(programs._programs)())
    monkeypatch.setattr(programs, "HURRY", 0.0)
    monkeypatch.setattr(programs, "ENOUGH", 0.0)


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often structures were written in other sizes, and steps simplified."""
    found = {"resized": 0, "optimize": 0}

    def counted(name: str) -> None:
        before = getattr(programs, name)

        def call(*args: object) -> object:
            found[name] += 1
            return before(*args)

        monkeypatch.setattr(programs, name, call)

    for name in found:
        counted(name)
    return found


def _masked(n: int) -> float:
    """Some of `n` rows, as a mask says that is padded or cut to 64."""
    mask = F.pad(wf.from_numpy(np.ones((1, n), np.float32)), (0, ROOM - n))
    rows = wf.from_numpy(np.arange(3.0 * n, dtype=np.float32).reshape(n, 3))
    return float((mask * 2.0).sum() + (rows * 0.5).sum())


def _wanted(n: int) -> float:
    return 2.0 * min(n, ROOM) + 0.25 * 3 * n * (3 * n - 1)


def test_a_change_of_calls_costs_few_trials(
    monkeypatch: pytest.MonkeyPatch, counts: dict[str, int]
) -> None:
    served: list[int] = []
    before = Family.general

    def general(self: Family, *args: object) -> object:
        found = before(self, *args)  # pyright: ignore[reportArgumentType]
        served.extend([n] if found else [])
        return found

    monkeypatch.setattr(Family, "general", general)
    for n in range(FIRST, MOST):
        assert _masked(n) == pytest.approx(_wanted(n), rel=1e-6), n
    # Programs up to 17 and 63, whose kernels are for 22 or more; then two trials fail.
    assert set(served) >= set(range(40, ROOM)) and max(served) < ROOM
    assert counts == {"resized": 26, "optimize": 6}

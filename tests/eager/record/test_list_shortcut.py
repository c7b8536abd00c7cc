"""Calls in ever new sizes take a shortcut to library kernels; others leave it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft as wf
from weft import config
from weft.eager.record.run import shortcut, stitched_tier
from weft.errors import OutOfRangeError

WAYS: list[Callable[[Any], Any]] = [
    lambda x: (x * 2 + 1).tanh().sum(),
    lambda x: x.softmax(0) - 1,
    lambda x: (x[1:] - x[:-1]).abs().max(),
    lambda x: (x.reshape(-1, 1) * x).exp(),
]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists in one size take shortcuts after a few runs, too."""
    monkeypatch.setattr(shortcut, "LIST_RUNS", 8)


@pytest.mark.parametrize("way", WAYS)
def test_values_are_those_of_a_program(taken: list[bool], way: Callable[[Any], Any]) -> None:
    for n in range(2, 24):
        x = wf.randn(n)
        wf.synchronize()
        found, short = way(x).numpy(), taken[-1]
        if n > 18:
            assert short
            with config.override(compile=True):
                np.testing.assert_array_equal(found, way(x).numpy())
            assert not taken[-1]
    assert way(wf.ones(2)).shape == way(wf.zeros(2)).shape


def test_what_differs_takes_the_usual_way(taken: list[bool]) -> None:
    table = wf.arange(300.0)

    def read(n: int, last: int = 2) -> float:
        indices = wf.tensor([0] * n + [last])
        wf.synchronize()
        return (table[indices] * 2).sum().item()

    for n in range(2, 24):
        assert read(n) == 4.0
    assert taken[-1]
    with pytest.raises(OutOfRangeError, match="got 300"):
        read(40, 300)
    assert read(41) == 4.0 and taken[-1]
    x = table[:50] * 1
    wf.synchronize()
    y = x * 2  # another value is wanted, too
    assert (y + 1).tanh().sum().item() == pytest.approx(50, abs=1)
    assert y.tolist() == (np.arange(50) * 2).tolist()


def test_unused_shared_and_changed_results_are_those_of_the_usual_way(taken: list[bool]) -> None:
    def results(n: int) -> list[Any]:
        x, table = wf.arange(float(n)), wf.zeros(2, n)
        wf.synchronize()
        _ = x.exp()  # which nobody reads
        y = x * 2
        rows = y.reshape(1, n)  # shares memory
        table[1:].add_(y)
        for _ in range(40):
            y = y + 1
        short = y.sum().item()
        return [taken[-1], short, rows.tolist(), table.tolist(), y.tolist()]

    for n in range(2, 40):
        short, *found = results(n)
        x = np.arange(n, dtype=np.float32)
        assert found[1:] == [[(x * 2).tolist()], [[0.0] * n, (x * 2).tolist()],
                             (x * 2 + 40).tolist()]  # fmt: skip
        assert found[0] == sum(found[-1])
    assert short


def test_calls_in_one_size_take_it_until_their_program_is_begun(
    taken: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stitched_tier, "STITCHED_RUNS", 20)
    for module, name in ((shortcut, "_learned"), (stitched_tier, "_early")):
        monkeypatch.setattr(module, name, {})  # what other tests have filled is forgotten at once
    ways: list[Callable[[Any], Any]] = [  # none is met in other sizes
        lambda x: ((x - 3).exp() * x).sum(), lambda x: x.sin() - x.cos() * 3,
    ]  # fmt: skip
    for way in ways:
        x = wf.randn(29)
        wf.synchronize()
        found = [(way(x).numpy().tobytes(), taken[-1]) for _ in range(22)]
        assert len({values for values, _ in found}) == 1
        shorts = [short for _, short in found]
        assert not any(shorts[:9]) and all(shorts[9:19]) and not any(shorts[19:])
        y = way(x * 1)  # other calls
        assert y.numpy().tobytes() == found[0][0] and not taken[-1]

"""Shortcuts give what the usual way gives, and leave to it what is different."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft as wf
from weft import nn
from weft.eager.record.pending import state
from weft.eager.record.run import shortcut
from weft.errors import OutOfRangeError

Taken = list[bool]
pytestmark = pytest.mark.usefixtures("unstitched")


def _hot(taken: Taken, read: Callable[[], Any], runs: int = 20) -> Any:
    """What is read once it takes the shortcut."""
    for _ in range(runs - 1):
        read()
    found = read()
    assert taken[-1]
    return found


WAYS: list[Callable[[Any, Any], Any]] = [
    lambda x, y: (x + y).sum(),
    lambda x, y: (x * 2.0 - y) @ y.T,
    lambda x, y: (x * y).sum() - (x - y).sum(),
    lambda x, y: nn.functional.softmax(x @ y.T, -1).argmax(-1),
    lambda x, y: (x.max() > y.min()).float(),
    lambda x, y: x[1:] - y[:-1],
    lambda x, y: x.clone().sub_(y).div_(y + 3.0),  # a pending value is changed in place
]


@pytest.mark.parametrize("way", WAYS)
def test_values_are_those_of_the_usual_way(taken: Taken, way: Callable[[Any, Any], Any]) -> None:
    x, y = wf.randn(4, 5), wf.randn(4, 5)
    found = _hot(taken, lambda: way(x, y).numpy())
    for _ in range(3):
        x, y = wf.randn(4, 5), wf.randn(4, 5)
        wf.synchronize()
        found = way(x, y).numpy()
        assert taken[-1]
        state.set_shortcut(lambda now: False)
        np.testing.assert_array_equal(found, way(x, y).numpy())
        state.set_shortcut(lambda now: taken.append(shortcut.taken(now)) or taken[-1])


def test_what_differs_takes_the_usual_way(taken: Taken) -> None:
    x, y = wf.tensor([1.0, 2.0]), wf.tensor([3.0, 4.0])
    total = lambda a=x, b=y: (a + b).sum().item()  # noqa: E731
    assert _hot(taken, total) == 10
    assert total(x, x) == 6 and not taken[-1]  # leaves that share an array
    z = x + y
    assert z.sum().item() == 10 and not taken[-1]  # one more value is wanted
    assert z.tolist() == [4, 6]
    w = x.clone().requires_grad_()
    assert total(w) == 10 and not taken[-1]  # tracked
    z = x.mul_(y)  # a change in place is pending
    assert total() == 18 and not taken[-1] and z is x
    assert total() == 18 and taken[-1]
    a = np.asfortranarray(np.arange(4, dtype=np.float32).reshape(2, 2))
    b = wf.ones(2, 2)
    _hot(taken, lambda: (b + b * 2).sum().item())
    assert (wf.from_numpy(a).t() + b * 2).sum().item() == 14


def test_changes_in_place_and_unused_results_take_it_too(taken: Taken) -> None:
    x, y, expected = wf.arange(3.0), wf.ones(3), np.arange(3, dtype=np.float32)
    part = x[1:]

    def read() -> float:
        nonlocal expected
        expected = (expected + 1) * np.float32(0.5)
        _ = y * 3.0  # unused
        x.add_(y).mul_(0.5)
        return x.sum().item()

    for i in range(40):
        assert read() == expected.sum(), i
        assert part.tolist() == expected[1:].tolist()
    before = len(taken)
    assert _hot(taken, read) == expected.sum() and len(taken) == before + 20
    assert not state.trace.now.changes
    shared = x.numpy()  # now the change has to be made there
    for i in range(40):
        assert read() == expected.sum() == shared.sum(), i
    del shared
    index, bad = wf.tensor([1, 2]), wf.tensor([1, 9])
    wf.synchronize()

    def taken_of(index: Any) -> float:
        x.add_(y)
        return x.index_select(0, index).sum().item()

    _hot(taken, lambda: taken_of(index))
    expected = x.numpy().copy()
    with pytest.raises(OutOfRangeError):
        taken_of(bad)
    np.testing.assert_array_equal(x.numpy(), expected + 1)  # that line did not fail
    assert taken_of(index) == (expected + 2)[1:].sum()


def test_weights_that_were_packed_are_packed_again_once_they_change(taken: Taken) -> None:
    layer: Any = nn.Linear(3, 2)
    x = wf.ones(1, 3)
    with wf.no_grad():
        read = lambda: layer(x).sum().item()  # noqa: E731
        _hot(taken, read)
        for change in (lambda: layer.weight.fill_(1.0), lambda: layer.bias.zero_()):
            change()
            wf.synchronize()
            expected = layer.weight.numpy().sum() + layer.bias.numpy().sum()
            assert read() == pytest.approx(expected, abs=1e-6)
            assert read() == pytest.approx(expected, abs=1e-6)
    layer = nn.Linear(3, 2)
    with wf.no_grad():
        expected = layer.weight.numpy().sum() + layer.bias.numpy().sum()
        assert layer(x).sum().item() == pytest.approx(expected, abs=1e-6)


def test_gradients_flow_through_what_was_computed(taken: Taken) -> None:
    w, x = wf.tensor([2.0, 3.0], requires_grad=True), wf.tensor([5.0, 7.0])

    def read() -> list[float]:
        w.grad = None
        y = (w * x).sum()
        assert y.item() == 31
        y.backward()
        assert w.grad is not None
        return w.grad.tolist()

    for _ in range(20):
        assert read() == [5, 7]
    assert True in taken


def test_an_index_out_of_range_is_refused_every_time(taken: Taken) -> None:
    x, good, bad = wf.arange(4.0), wf.tensor([1, 2]), wf.tensor([1, 9])
    wf.synchronize()
    _hot(taken, lambda: x.index_select(0, good).sum().item())
    for _ in range(3):
        with pytest.raises(OutOfRangeError):
            x.index_select(0, bad).sum().item()
        assert x.index_select(0, good).sum().item() == 3


@pytest.mark.parametrize("raises", [True, False])
def test_signals_come_anywhere(taken: Taken, raises: bool) -> None:
    x, y = wf.tensor([1.0, 2.0]), wf.tensor([3.0, 4.0])
    read = lambda: (x + y).sum()  # noqa: E731
    _hot(taken, lambda: read().item())
    came, held = [0], [read()]

    def handle(*_: object) -> None:
        came[0] += 1
        if raises:
            raise KeyboardInterrupt
        assert held[0].item() == 10  # computes what is pending

    before = signal.signal(signal.SIGALRM, handle)
    try:
        for i in range(3000):
            value = 10.0
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-6 * (1 + i % 40))
                held[0] = read()
                value = held[0].item()
            except KeyboardInterrupt:
                pass  # of the timer: the value before or the new one, never half of it
            assert value == 10
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert came[0] > 100 and held[0].item() == 10
    assert read().item() == 10 and taken[-1]

"""After Ctrl-C of what never ends, everything that does not depend on it is computed as usual."""

from __future__ import annotations

import signal
import threading
from typing import Any

import numpy as np
import pytest

import weft as wf
from weft.eager.record.pending.state import trace
from weft.eager.tensor.dispatch import recorded
from weft.errors import OutOfRangeError
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.boundary import host


class Endless:
    """A function of two numbers that Ctrl-C interrupts, as often as it runs, until it `ends`."""

    def __init__(self) -> None:
        self.ends, self.calls = False, 0

        def compute(x: Any) -> Any:
            self.calls += 1
            if not self.ends:
                signal.raise_signal(signal.SIGINT)
            return x + 1

        def added(x: Value) -> Value:
            (found,) = host.call(compute, x, types_of=[(x.dtype, known(x.shape))])
            return found

        self.run = recorded(added, differentiable=False)


@pytest.fixture(autouse=True)
def ctrl_c():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
    wf.drop_interrupted()


def usual(endless: Endless) -> None:
    """Check that new values are computed without the endless function."""
    calls = endless.calls
    x = wf.ones(2)
    for _ in range(200):
        x = x + 1
    assert x.tolist() == [201.0] * 2
    p = wf.nn.Parameter(wf.ones(2))
    optimizer = wf.optim.SGD([p], lr=0.5)
    for _ in range(6):
        optimizer.zero_grad()
        loss = (p * 2).sum()
        loss.backward()
        optimizer.step()
    assert p.tolist() == [-5.0] * 2
    assert endless.calls == calls


def interrupted(function: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        function()


def test_its_result_is_computed_when_it_is_read():
    endless, before = Endless(), wf.ones(2) * 3
    found = endless.run(wf.ones(2))
    later = found * 2
    for _ in range(2):
        interrupted(found.tolist)
        usual(endless)
        assert before.tolist() == [3.0] * 2
        interrupted(later.tolist)
    endless.ends = True
    assert later.tolist() == [4.0] * 2
    assert found.tolist() == [2.0] * 2
    assert not trace.now.interrupted.pending.records


def test_a_result_that_nobody_holds_is_not_computed():
    endless = Endless()
    interrupted(lambda: endless.run(wf.ones(2)).tolist())
    usual(endless)
    wf.synchronize()
    assert endless.calls == 1


@pytest.mark.parametrize("drop", [False, True])
def test_what_it_changes_in_place_has_a_way_back(drop):
    endless, x, w = Endless(), wf.zeros(2), wf.zeros(2)
    array, beside = w.numpy(), x * 3

    def change() -> None:
        x.add_(endless.run(wf.ones(2)))
        x.mul_(2.0)
        wf.synchronize()

    interrupted(change)
    x.add_(1.0)  # waits as well
    w.add_(1.0)
    assert array.tolist() == [1.0] * 2
    usual(endless)
    assert beside.tolist() == [0.0] * 2
    interrupted(x.tolist)
    usual(endless)
    endless.ends = not drop
    if drop:
        wf.drop_interrupted()
    assert x.tolist() == ([0.0] if drop else [5.0]) * 2
    assert beside.tolist() == [0.0] * 2
    x.add_(1.0)
    assert x.tolist() == ([1.0] if drop else [6.0]) * 2


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("stepped", ["before", "behind"])
def test_a_parameter_stepped_behind_it_has_a_way_back(stepped, drop):
    endless, p = Endless(), wf.nn.Parameter(wf.ones(2))
    optimizer = wf.optim.Adam([p], lr=0.5)
    factor = endless.run(wf.ones(2))

    def step() -> None:
        optimizer.zero_grad()
        (p * factor).sum().backward()
        optimizer.step()

    if stepped == "before":
        step()
        interrupted(wf.synchronize)
    else:
        interrupted(factor.tolist)
        step()
    usual(endless)
    interrupted(p.tolist)
    usual(endless)
    endless.ends = True
    if drop:
        wf.drop_interrupted()
    np.testing.assert_allclose(p.tolist(), [1.0 if drop else 0.5] * 2, 1e-5)
    assert len(optimizer.state) == (not drop)
    step()
    np.testing.assert_allclose(p.tolist(), [0.5 if drop else 0.0] * 2, 1e-5, 1e-5)


def test_training_goes_on_where_it_was_interrupted_once():
    endless, p = Endless(), wf.nn.Parameter(wf.ones(2))
    optimizer = wf.optim.SGD([p], lr=0.25)
    count = 0
    for i in range(12):
        endless.ends = i != 3
        optimizer.zero_grad()
        loss = (p * endless.run(wf.ones(2))).sum()
        loss.backward()
        optimizer.step()
        try:
            loss.item()
        except KeyboardInterrupt:
            count += 1
        endless.ends = True
    assert count == 1
    assert p.tolist() == [1 - 12 * 0.5] * 2
    assert not trace.now.interrupted.pending.records


def test_what_fails_when_it_is_tried_again_is_undone():
    endless, x = Endless(), wf.zeros(2)
    index = endless.run(wf.tensor([4.0])).long()
    x.add_(wf.ones(2)[index])
    interrupted(wf.synchronize)
    endless.ends = True
    with pytest.raises(OutOfRangeError):
        x.tolist()
    assert x.tolist() == [0.0] * 2


LOOPS = {
    "while_loop": lambda: wf.func.while_loop(lambda s: s >= 0, lambda s: (s + 1) % 1000, 0),
    "jit": lambda: wf.func.jit(
        lambda x: wf.func.while_loop(lambda s: s >= 0, lambda s: (s + 1) % 1000, x)
    )(wf.tensor(0)),
}


@pytest.mark.parametrize("name", LOOPS)
def test_an_endless_loop(name):
    x = wf.zeros(())
    found = LOOPS[name]()
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    x.add_(found)
    timer.start()
    interrupted(found.item)
    assert (wf.ones(2) + 1).tolist() == [2.0] * 2
    wf.drop_interrupted()
    assert x.item() == 0.0

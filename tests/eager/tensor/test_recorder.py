"""The native function that records a call makes what the one in Python makes."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import weft as wf
from weft.codegen.driver import recording
from weft.eager.record.pending.state import trace
from weft.eager.tensor import recorder as own

wf.zeros(1).add(1).item()  # which loads native code
native = own.recorder.made
frame = sys._getframe  # pyright: ignore[reportPrivateUsage]
pytestmark = pytest.mark.skipif(
    native is own._made,  # pyright: ignore[reportPrivateUsage]
    reason="there is none for this interpreter",
)


def _call(make: Any, *inputs: Any) -> Any:
    plan = (inputs[0] + inputs[1]).shown.record.plan
    return make(wf.Tensor, trace.now, plan, tuple([x.lazy for x in inputs]), frame(1))


def _fields(of: str, x: Any) -> dict[str, Any]:
    return {name: getattr(x, name) for name in recording.SLOTS[of]}


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("grad", [False, True])
def test_its_objects_are_the_same(tracked: bool, grad: bool) -> None:
    x, y = wf.ones(2), wf.ones(2).requires_grad_(tracked)
    with wf.set_grad_enabled(grad):
        made = [_call(make, x, y) for make in (native, own._made)]  # pyright: ignore
    for of, objects in (
        ("handle", made), ("lazy", [z.shown for z in made]),
        ("record", [z.shown.record for z in made]),
    ):  # fmt: skip
        first, second = [_fields(of, z) for z in objects]
        for name in ("shown", "record", "owner", "results", "serial"):
            first.pop(name, None)
            second.pop(name, None)
        assert first == second
        assert sys.getrefcount(objects[0]) == sys.getrefcount(objects[1])
    a, b = made
    assert a.shown.owner() is a and a.shown.record.results[0]() is a.shown
    assert b.shown.record.serial > a.shown.record.serial
    assert a.shown.record in trace.now.pending and trace.now.pending[-1] is b.shown.record
    assert a.tolist() == b.tolist() == [2, 2]


def test_it_keeps_no_references() -> None:
    x, y = wf.ones(2), wf.ones(2)
    wf.synchronize()
    shared: list[Any] = [None, True, False, 0, x.lazy, y.lazy, wf.Tensor, frame().f_code]
    _call(native, x, y)
    wf.synchronize()
    before = [sys.getrefcount(z) for z in shared]
    for _ in range(500):
        _call(native, x, y)
    wf.synchronize()
    after = [sys.getrefcount(z) for z in shared]
    assert max([abs(b - a) for a, b in zip(before, after, strict=True)]) < 50


def test_what_is_unusual_is_left_to_python() -> None:
    array = np.ones(2, np.float32)
    x, y = wf.from_numpy(array), wf.ones(2)
    z = _call(native, x, y)
    array[:] = 5
    assert z.tolist() == [2, 2]
    with wf.inference_mode():
        assert _call(native, y, y).is_inference()

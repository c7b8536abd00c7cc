"""The runner of stages: order, errors, Ctrl-C, threads, times, memory."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from patience import LIMIT, eventually

from weft import ops
from weft.errors import AbortedError, OutOfRangeError, UninitializedError, UserOpError
from weft.ir.graph import Graph
from weft.ir.node import Node, TensorType, Value
from weft.ops.call import trace
from weft.passes.placement.choose import chosen
from weft.passes.placement.place import place
from weft.passes.step import Step
from weft.runtime import local_devices
from weft.runtime.device.kept_memory import KeptMemory
from weft.runtime.device.local import cpu_devices
from weft.runtime.device.states import DeviceStates
from weft.runtime.engine import Function, State
from weft.runtime.finish import partitioned
from weft.runtime.local_devices import LocalProgram
from weft.runtime.stage_times import StageTime, watchers
from weft.runtime.staged import Box

Array = np.ndarray[Any, Any]
DEVICES = {str(d.name): d for d in cpu_devices(2, 1)}
CPU0, CPU1 = DEVICES


class Local:
    """A graph that runs on two devices, or on one."""

    def __init__(self, *shapes: tuple[int, ...], dtype: str = "float32") -> None:
        self.graph = Graph()
        self.state = DeviceStates({n: d.variables() for n, d in DEVICES.items()}, CPU0)
        self.alone = State()
        self.programs: list[LocalProgram] = []
        with self.graph.as_default():
            self.feeds = [ops.placeholder(dtype=dtype, shape=s) for s in shapes]

    def function(self, fetches: Sequence[Value], targets: Sequence[Node] = ()) -> Function:
        placed = place(self.graph, [d.name for d in DEVICES.values()])
        self.state.tell(placed.homes)

        def finish(step: Step, threads: int, count: int) -> LocalProgram:
            del threads
            whole, parts = partitioned(step, lambda s: chosen(s, CPU0), placed.homes)
            self.programs.append(LocalProgram(whole, parts, DEVICES, count))
            return self.programs[-1]

        return Function(self.graph, fetches, targets, self.feeds, 1, finish, placed=placed.devices)

    def one(self, fetches: Sequence[Value], targets: Sequence[Node] = ()) -> Function:
        return Function(self.graph, fetches, targets, self.feeds, 1)


@pytest.fixture(params=[False, True], ids=["in turn", "at once"])
def at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether devices run at the same time, though it does not pay."""
    monkeypatch.setattr(local_devices, "WORTH_NS", -1.0 if request.param else 1e12)
    return bool(request.param)


def called(function: Callable[[Array], Array], x: Value) -> Value:
    kinds = {"dtypes": (x.dtype.name,), "shapes": (x.shape,)}
    return ops.host_call(x, function=function, **kinds)


def test_fetches_are_fresh_and_other_memory_is_kept(at_once: bool):
    local = Local((3,))
    with local.graph.as_default(), local.graph.device("/cpu:1"):
        y = ops.tanh(local.feeds[0])
        with local.graph.device("/cpu:0"):
            z = y * 2.0
    run = local.function([z, y, local.feeds[0], z])
    x = np.ones(3, np.float32)
    first, second = run([x], local.state), run([x * 2], local.state)
    arrays = [*first, *second, x]
    assert not any(np.shares_memory(a, b) for i, a in enumerate(arrays) for b in arrays[:i])
    assert np.array_equal(second[0], np.tanh(x * 2) * 2) or np.allclose(second[0], np.tanh(2) * 2)
    local = Local((3,))
    with local.graph.as_default(), local.graph.device("/cpu:1"):
        y = ops.exp(local.feeds[0])
        with local.graph.device("/cpu:0"):
            z = ops.sum(y)
    run = local.function([z])
    assert run([x], local.state)[0].shape == ()
    (kept,) = local.programs[0]._kept.values()  # pyright: ignore[reportPrivateUsage]
    before = kept.__array_interface__["data"]
    run([x * 0], local.state)
    assert np.array_equal(kept, np.ones(3)) and kept.__array_interface__["data"] == before


def test_programs_that_take_turns_share_memory():
    local = Local((3,))
    with local.graph.as_default(), local.graph.device("/cpu:1"):
        a, b = ops.tanh(local.feeds[0]), ops.exp(local.feeds[0])
        with local.graph.device("/cpu:0"):
            both, one = ops.sum(a) + ops.sum(b), ops.sum(a)
    runs = [local.function([y]) for y in (both, one)]
    for run in runs:
        run([np.ones(3, np.float32)], local.state)
    shared = KeptMemory(DEVICES)
    parts = [p.partition for p in local.programs]
    first, second = (shared.of(p, p.fetches) for p in parts)
    assert len(first) == 2 and len(second) == 1
    assert next(iter(second.values())) is next(iter(first.values()))
    del first, second
    assert not shared._arrays  # pyright: ignore[reportPrivateUsage]


def test_an_error_ends_all_devices_and_is_raised(at_once: bool):
    local, ran = Local((3,)), list[str]()

    def fails(x: Array) -> Array:
        raise ValueError("broken")

    with local.graph.as_default():
        with local.graph.device("/cpu:1"):
            y = called(fails, local.feeds[0])
        z = called(lambda x: ran.append("later") or x, y)  # pyright: ignore
    with pytest.raises(UserOpError, match="the function raised ValueError: broken"):
        local.function([z])([np.ones(3, np.float32)], local.state)
    assert not ran


def test_after_a_fault_no_variable_has_changed(at_once: bool):
    local = Local((3,), dtype="int32")
    with local.graph.as_default():
        count = ops.variable(key="count", dtype="float32", shape=())
        done = ops.assign(count, ops.read(count) + 1.0).node
        with local.graph.device("/cpu:1"):
            rows = ops.gather(ops.constant(np.arange(4.0)), local.feeds[0])
            v = ops.variable(key="v", dtype="float64", shape=(3,))
            other = ops.assign(v, ops.read(v) + rows).node
    for state in (local.state, local.alone):
        state.update({"count": np.float32(5), "v": np.zeros(3)})
    run, one = local.function([rows], [done, other]), local.one([rows], [done, other])
    good, bad = np.array([1, 2, 3], np.int32), np.array([1, 7, 3], np.int32)
    texts = list[str]()
    for function, state in ((run, local.state), (one, local.alone)):
        with pytest.raises(OutOfRangeError, match="7") as error:
            function([bad], state)
        texts.append(str(error.value))
        assert state["count"] == 5 and not state["v"].any()
        function([good], state)
        assert state["count"] == 6 and np.array_equal(state["v"], [1, 2, 3])
    assert texts[0] == texts[1]


def test_nothing_runs_if_a_variable_has_no_value(at_once: bool):
    local, ran = Local((3,)), list[int]()
    with local.graph.as_default():
        x = called(lambda x: ran.append(1) or x, local.feeds[0])  # pyright: ignore
        with local.graph.device("/cpu:1"):
            v = ops.variable(key="v", dtype="float32", shape=(3,))
            y = x + ops.read(v)
    run = local.function([y])
    for function, state in ((run, local.state), (local.one([y]), local.alone)):
        with pytest.raises(UninitializedError, match="'v' is used before it has a value") as error:
            function([np.ones(3, np.float32)], state)
        assert "test_staged.py:" in str(error.value)
    assert not ran


@pytest.mark.parametrize("device", [CPU0, CPU1])
def test_ctrl_c_ends_an_endless_loop_of_any_device(device: str, at_once: bool):
    local = Local(())
    kinds = [TensorType(local.feeds[0].dtype, ())]
    with local.graph.as_default():
        other = CPU1 if device == CPU0 else CPU0
        with local.graph.device(other):
            x = ops.tanh(local.feeds[0])
        with local.graph.device(device):
            (y,) = ops.while_loop.all(
                x, condition=trace(lambda x: ops.less(x, 5.0), kinds),
                body=trace(lambda x: [x * 0.5], kinds), carried=1, maximum=None,
            )  # fmt: skip
        with local.graph.device(other):
            z = ops.exp(y)
    run = local.function([z])
    run([np.array(np.nan, np.float32)], local.state)  # ends at once
    threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        run([np.array(1, np.float32)], local.state)  # would not end
    assert np.isnan(run([np.array(np.nan, np.float32)], local.state)[0])


def test_devices_run_at_the_same_time_and_tell_when():
    local = Local((400, 400))
    x = local.feeds[0]
    with local.graph.as_default():
        ends = [x, x]
        for i, device in enumerate(DEVICES):
            with local.graph.device(device):
                for _ in range(4):
                    ends[i] = ops.tanh(ends[i] @ x)
        y = ends[0] + ends[1]
    run = local.function([y])
    array = np.full((400, 400), 0.01, np.float32)
    run([array], local.state)

    def at_once() -> bool:
        times.clear()
        run([array], local.state)
        first = {t.device: t for t in reversed(sorted(times))}
        return max(t.begin for t in first.values()) < min(t.done for t in first.values())

    with watchers.watch() as times:  # a busy machine may let one device wait, not in every run
        assert any(at_once() for _ in range(20))
    assert all(t.begin <= t.ready <= t.done <= t.end for t in times)
    text = local.programs[0].profile([array], local.state, 2)
    assert f"{len(times)} stages" in text and f"{CPU1} at " in text and "waited" in text


def test_threads_end_when_there_is_nothing_to_do(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(local_devices, "WORTH_NS", -1.0)
    local = Local((3,))
    with local.graph.as_default(), local.graph.device("/cpu:1"):
        y = ops.tanh(local.feeds[0])
        with local.graph.device("/cpu:0"):
            z = ops.exp(y)
    run = local.function([z])
    for _ in range(50):
        run([np.ones(3, np.float32)], local.state)

    def alive() -> list[threading.Thread]:
        return [t for t in threading.enumerate() if t.name.startswith("weft-device")]

    assert len(alive()) <= 2
    eventually(lambda: not alive())


def test_steps_of_several_threads_take_turns(at_once: bool):
    local = Local(())
    with local.graph.as_default():
        with local.graph.device("/cpu:1"):
            v = ops.variable(key="v", dtype="float32", shape=())
        with local.graph.device("/cpu:0"):
            new = ops.read(v) + local.feeds[0]
        done = ops.assign(v, new).node
    local.state["v"] = np.float32(0)
    run = local.function([new], [done])
    one = np.array(1, np.float32)
    run([one], local.state)

    def work() -> None:
        for _ in range(50):
            run([one], local.state)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert local.state["v"] == 201


# -- the box


def test_a_value_is_waited_for():
    box = Box(2)
    threading.Timer(0.05, box.put, [1, "there"]).start()
    assert box.get(1) == "there" and box.get(1) == "there"


def test_all_that_wait_get_the_first_error():
    box, found = Box(1), list[str]()

    def wait() -> None:
        try:
            box.get(0)
        except AbortedError as error:
            found.append(str(error))

    threads = [threading.Thread(target=wait) for _ in range(3)]
    for thread in threads:
        thread.start()
    box.abort(AbortedError("first"))
    box.abort(AbortedError("second"))
    for thread in threads:
        thread.join(LIMIT)
    assert found == ["first"] * 3
    with pytest.raises(AbortedError, match="first"):
        box.get(0)
    box.put(0, "too late")
    assert box.get(0) == "too late"  # what is there is there


def test_results_go_to_memory_that_the_box_gives_and_are_sent():
    local = Local((3,))
    with local.graph.as_default(), local.graph.device("/cpu:1"):
        y = ops.tanh(local.feeds[0])
        with local.graph.device("/cpu:0"):
            z = ops.exp(y)
    local.function([z])([np.ones(3, np.float32)], local.state)
    program = local.programs[0]
    memory = {v: np.zeros(3, np.float32) for v in (1, 2)}
    sent: list[tuple[int, Array]] = []
    times: list[StageTime] = []
    box = Box(3, lambda value, kind: memory[value], lambda *pair: sent.append(pair), times.append)
    box.put(0, np.ones(3, np.float32))
    program._staged.run(box, local.state.states)  # pyright: ignore[reportPrivateUsage]
    assert [v for v, _ in sent] == [1, 2] and sent[1][1] is memory[2] is box.get(2)
    assert [(t.stage, t.device) for t in times] == [(0, CPU1), (1, CPU0)]


def test_variables_are_at_their_homes():
    states = DeviceStates({n: d.variables() for n, d in DEVICES.items()}, CPU0)
    states.tell({"b": CPU1})
    states.update({"a": np.ones(2), "b": np.zeros(3), "c": np.zeros(1)})
    assert {n: list(s) for n, s in states.states.items()} == {CPU0: ["a", "c"], CPU1: ["b"]}
    assert len(states) == 3 and sorted(states) == ["a", "b", "c"] and "d" not in states
    states.tell({"b": CPU0, "c": CPU1})  # one has a home, the other moves there
    assert {n: list(s) for n, s in states.states.items()} == {CPU0: ["a"], CPU1: ["b", "c"]}
    states["b"] = np.ones(3)
    assert states.states[CPU1]["b"].sum() == states["b"].sum() == 3
    version = states.version
    del states["b"]
    assert states.version != version and "b" not in states

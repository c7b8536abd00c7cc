"""Data-dependent shapes: one program for each shape, not for each fed value."""

from __future__ import annotations

import numpy as np
import pytest

from weft import config, ops
from weft.errors import NoCompilerError, ShapeError
from weft.ir.graph import Graph
from weft.ir.node import Value
from weft.ops.call import trace
from weft.ops.control.while_loop import while_loop
from weft.runtime.decision import MOST, Answers, Decisions
from weft.runtime.engine import Function
from weft.runtime.memory.state import State
from weft.transform.interpreter import evaluate


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def fed(*shape: int | None) -> Value:
    return ops.placeholder(dtype="int32", shape=shape)


def same(function: Function, graph: Graph, *arrays: np.ndarray) -> None:
    feeds = dict(zip(function.request.feeds, arrays, strict=True))
    expected = evaluate(graph, function.request.fetches, feeds)
    for found, wanted in zip(function(arrays, State()), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
        assert np.shape(found) == np.shape(wanted)


def mask(lengths: Value) -> Value:
    """Ones up to each length, as wide as the longest."""
    count = ops.reshape(ops.max(lengths), shape=(1,))
    steps = ops.cumsum(ops.broadcast_to(ops.constant(1, "int32"), shape=count))
    return ops.less_equal(steps, ops.expand_dims(lengths, axis=1))


def test_a_program_for_each_longest_length() -> None:
    with Graph().as_default() as graph:
        lengths = fed(None)
        function = Function(graph, [mask(lengths)], feeds=[lengths])
    for given in (ints(1, 3, 2), ints(3, 3, 0), ints(2, 1, 3), ints(4, 0, 0), ints(0, 4, 1)):
        same(function, graph, given)
    assert len(function._programs) == 2
    same(function, graph, ints(4, 3))
    assert len(function._programs) == 3  # another number of lengths


def test_a_fed_shape_is_read_where_it_is() -> None:
    with Graph().as_default() as graph:
        x, shape = ops.placeholder(dtype="float32", shape=(None,)), fed(2)
        function = Function(graph, [ops.reshape(x, shape=shape)], feeds=[x, shape])
    for given in (ints(2, 6), ints(3, 4), ints(2, 6)):
        same(function, graph, np.arange(12, dtype=np.float32), given)
    assert len(function._programs) == 2


def test_a_decision_may_follow_from_another() -> None:
    with Graph().as_default() as graph:
        lengths, more = fed(None), fed(None)
        wide = mask(lengths)
        # How many true ones there are is known only once the width is.
        count = ops.sum(ops.cast(wide, dtype="int32")) + ops.max(more)
        y = ops.broadcast_to(more, shape=ops.stack(count, ops.size_of(more), axis=0))
        function = Function(graph, [wide, y], feeds=[lengths, more])
    cases = [(ints(1, 2), ints(5, 0)), (ints(2, 1), ints(0, 5)), (ints(2, 2), ints(5, 4))]
    for case in [*cases, (ints(3, 0), ints(1, 2)), *cases]:
        same(function, graph, *case)
    # Widths 2, 2, 2, 3; of ones there are 3, 3, 4, 3, and the largest of the others are 5, 5, 5, 2.
    assert len(function._programs) == 3


def test_a_shape_in_a_loop_that_a_feed_decides() -> None:
    with Graph().as_default() as graph:
        lengths, x = fed(None), ops.placeholder(dtype="float32", shape=())
        n = ops.max(lengths)
        types = [v.type for v in (ops.constant(0, "int32"), x, n)]

        def step(i: Value, total: Value, size: Value) -> list[Value]:
            row = ops.broadcast_to(total, shape=ops.reshape(size, shape=(1,)))
            return [i + 1, ops.sum(row) + 1.0]

        y = while_loop.all(
            ops.constant(0, "int32"), x, n, carried=2, body=trace(step, types),
            condition=trace(lambda i, total, size: ops.less(i, 3), types),
        )[1]  # fmt: skip
        function = Function(graph, [y], feeds=[lengths, x])
    for given in (ints(1, 3), ints(3, 0), ints(2, 2), ints(2, 0)):
        same(function, graph, given, np.float32(0.5))
    assert len(function._programs) == 2


def test_a_variable_decides_no_shape() -> None:
    with Graph().as_default() as graph:
        kept = ops.variable(key="n", dtype="int32", shape=(1,))
        y = ops.broadcast_to(ops.constant(1.0, "float32"), shape=ops.read(kept))
        function = Function(graph, [y])
    state = State()
    state["n"] = ints(3)
    with pytest.raises(ShapeError, match="must be known before the step runs"):
        function([], state)


def test_old_shape_decisions_are_evicted() -> None:
    with Graph().as_default() as graph:
        shape = fed(1)
        y = ops.broadcast_to(ops.constant(1.0, "float32"), shape=shape)
        request = Function(graph, [y], feeds=[shape]).request
    decisions = Decisions(request, 1)
    for n in range(MOST + 3):
        key = ("shapes", n)
        decisions.specialized(key, {}, Answers([ints(2)], State(), list))
    assert 0 < len(decisions.first) <= MOST
    assert decisions.values(key, Answers([ints(7)], State(), list)) == ((ints(7).tobytes(),),)


class Counted:
    """Python functions of a graph that note their calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __call__(self, name: str, x: Value) -> Value:
        def function(array: np.ndarray) -> np.ndarray:
            self.calls.append(name)
            return array + 1

        return ops.host_call.all(x, function=function, dtypes=(x.dtype,), shapes=(x.shape,))[0]


@pytest.mark.parametrize("reads", [False, True])
def test_calls_that_decide_shapes_are_made_once_and_in_order(reads: bool) -> None:
    """Whether the shape is new or not, with those before, and not those behind."""
    counted = Counted()
    with Graph().as_default() as graph:
        n, x = fed(), fed(2)
        kept = ops.variable(key="kept", dtype="int32", shape=(2,))
        first = counted("first", ops.read(kept) if reads else x)
        length = counted("length", n)
        second = counted("second", length * 2)
        last = counted("last", x)
        shape = ops.reshape(length, shape=(1,))
        y = ops.broadcast_to(first[0], shape=shape)
        z = ops.broadcast_to(ops.constant(1, "int32"), shape=ops.reshape(second, shape=(1,)))
        change = ops.assign(kept, x).node
        function = Function(graph, [last, z, y, length], (change,), [n, x])
    state = State()
    state["kept"] = ints(5, 6)
    for step, value in enumerate([2, 3, 2, 2, 3]):
        counted.calls.clear()
        before = state["kept"][0] if reads else step
        found = function([np.array(value, np.int32), ints(step, 1)], state)
        assert counted.calls == ["first", "length", "second", "last"]
        assert found[0].tolist() == [step + 1, 2] and found[1].shape == (2 * value + 3,)
        assert found[2].tolist() == [before + 1] * (value + 1) and found[3] == value + 1
        assert state["kept"].tolist() == [step, 1]
    assert len(function._programs) == 2


def test_what_follows_a_call_that_decides_shapes() -> None:
    """A control dependency on the call does not make it again, and an update before it stays."""
    counted = Counted()
    with Graph().as_default() as graph:
        n = fed()
        kept = ops.variable(key="kept", dtype="int32", shape=())
        changed = ops.assign(kept, n)
        with graph.control_dependencies([changed.node]):
            length = counted("length", n)
        with graph.control_dependencies([length.node]):
            now = ops.read(kept)
        y = ops.broadcast_to(now, shape=ops.reshape(length, shape=(1,)))
        function = Function(graph, [y], feeds=[n])
    state = State()
    state["kept"] = np.array(7, np.int32)
    for value in (3, 1, 3):
        assert function([np.array(value, np.int32)], state)[0].tolist() == [value] * (value + 1)
    assert counted.calls == ["length"] * 3


def test_calls_are_made_once_if_the_compiler_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted()
    with Graph().as_default() as graph:
        n = fed()
        length = counted("length", n)
        y = ops.broadcast_to(n, shape=ops.reshape(length, shape=(1,)))
        function = Function(graph, [y], feeds=[n])
    function([np.array(2, np.int32)], State())

    def refuse(*_: object) -> None:
        raise NoCompilerError("none")

    monkeypatch.setattr(function, "_finish", refuse)
    with pytest.raises(NoCompilerError):
        function([np.array(3, np.int32)], State())
    assert function([np.array(2, np.int32)], State())[0].tolist() == [2] * 3
    assert counted.calls == ["length"] * 3


def test_calls_are_made_once_where_values_are_compared() -> None:
    counted = Counted()
    with config.override(reference=True), Graph().as_default() as graph:
        n = fed()
        length = counted("length", n)
        y = ops.broadcast_to(n, shape=ops.reshape(length, shape=(1,)))
        function = Function(graph, [y], feeds=[n])
        for value in (2, 3, 2):
            found = function([np.array(value, np.int32)], State())
            assert found[0].tolist() == [value] * (value + 1)
    assert counted.calls == ["length"] * 3

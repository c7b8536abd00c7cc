"""Feeds, constants, variables, counters and Python calls, run by the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from weft import ops
from weft.errors import (
    DTypeError,
    FeedError,
    OutOfRangeError,
    ShapeError,
    UninitializedError,
    UserOpError,
)
from weft.ir.graph import Graph
from weft.transform.interpreter import Memory, evaluate


def test_feeds_are_checked() -> None:
    with Graph().as_default() as graph:
        x = ops.placeholder(dtype="float32", shape=(None, 2), name="x")
        y = x * 2.0
    assert evaluate(graph, [y], {x: [[1, 2]]})[0].tolist() == [[2, 4]]
    with pytest.raises(FeedError, match=r"x:0: expected a feed of shape \(\?, 2\), got \(3,\)"):
        evaluate(graph, [y], {x: np.zeros(3, np.float32)})
    with pytest.raises(FeedError, match="x:0: expected a feed of float32, got float64"):
        evaluate(graph, [y], {x: np.zeros((1, 2))})
    for bad in (["a", "b"], [[1], [1, 2]], [object()]):
        with pytest.raises(FeedError, match="x:0: expected a feed of float32, got"):
            evaluate(graph, [y], {x: bad})
    with pytest.raises(FeedError, match=r"expected a feed \(node x, created at test_state.py:"):
        evaluate(graph, [y])


def test_any_value_may_be_fed() -> None:
    with Graph().as_default() as graph:
        x = ops.placeholder(dtype="float32", shape=())
        middle = ops.exp(x)
        y = middle * middle
        left, right = ops.split.all(ops.expand_dims(y, axis=0) * [1.0, 2.0], sizes=(1, 1))
        total = left + right
    assert evaluate(graph, [y, middle], {middle: 3.0}) == [9, 3]  # x is not needed then
    assert evaluate(graph, [total], {left: [1.0], middle: 2.0})[0] == [9]
    assert evaluate(graph, [y], {y: 7.0}) == [7]


def test_reads_see_the_value_before_the_step_unless_ordered() -> None:
    with Graph().as_default() as graph:
        v = ops.variable(key="v", dtype="float32", shape=())
        before = ops.read(v)
        one = ops.assign(v, before + 1.0)
        unordered = ops.read(v)
        with graph.control_dependencies([one.node]):
            after = ops.read(v)
            two = ops.assign(v, after * 10.0)
        with graph.control_dependencies([two.node]):
            last = ops.read(v)
        latest = ops.read(v, latest=True)
        graph.add_control_edge(latest.node, two.node)
    memory = Memory({"v": np.array(1, np.float32)})
    fetches = [last, unordered, after, before, one, two, latest]
    assert evaluate(graph, fetches, {}, memory) == [20, 1, 2, 1, 2, 20, 20]
    assert memory.variables["v"] == 20
    assert evaluate(graph, [before, one], {}, memory) == [20, 21]
    assert evaluate(graph, [v], {}, memory) == [21]
    assert evaluate(graph, [before, v], {v: 5.0}, memory) == [5, 5]


def test_targets_run_and_group_orders() -> None:
    with Graph().as_default() as graph:
        v = ops.variable(key="v", dtype="int32", shape=(2,))
        start = ops.assign(v, [1, 2])
        with graph.control_dependencies([start.node]):
            everything = graph.add("group", (), {}, ())
    memory = Memory()
    assert evaluate(graph, [], {}, memory, targets=[everything]) == []
    assert memory.variables["v"].tolist() == [1, 2]


def test_reading_an_uninitialized_variable() -> None:
    with Graph().as_default() as graph:
        y = ops.read(ops.variable(key="layer/w", dtype="float32", shape=()))
    text = r"variable 'layer/w': read before it was initialized \(node read, created at test_state"
    with pytest.raises(UninitializedError, match=text):
        evaluate(graph, [y])


def test_a_step_that_fails_changes_nothing() -> None:
    with Graph().as_default() as graph:
        count = ops.counter(key="c")
        v = ops.variable(key="v", dtype="float32", shape=())
        new = ops.assign(v, 5.0)
        i = ops.placeholder(dtype="int32", shape=())
        with graph.control_dependencies([new.node, count.node]):
            y = ops.gather([1.0, 2.0], i)
    memory = Memory()
    with pytest.raises(OutOfRangeError, match="got 9"):
        evaluate(graph, [y], {i: 9}, memory)
    assert memory == Memory()
    evaluate(graph, [y], {i: 1}, memory)
    assert memory.variables == {"v": 5}
    assert memory.counters == {"c": 1}


def test_assign_checks_type_and_shape() -> None:
    with Graph().as_default():
        v = ops.variable(key="v", dtype="float32", shape=(2, None))
        with pytest.raises(ShapeError, match=r"assign: expected a value of shape \(2, \?\), got"):
            ops.assign(v, np.zeros((3, 1), np.float32))
        with pytest.raises(DTypeError, match="assign: expected a value of type float32, got int32"):
            ops.assign(v, np.zeros((2, 1), np.int32))


def test_constants() -> None:
    with Graph().as_default():
        assert str(ops.constant(1.5).type) == "float32[]"
        assert str(ops.constant([[1, 2]]).type) == "int64[1,2]"
        assert str(ops.constant([1, 2], "float16").type) == "float16[2]"
        assert str(ops.constant(np.float64(1)).type) == "float64[]"
        assert ops.constant(np.arange(3.0), "int32", name="three").name == "three:0"
        with pytest.raises(DTypeError, match=r"expected a number that uint8 holds, got 256"):
            ops.constant(256, "uint8")
        with pytest.raises(DTypeError, match="dtype: expected one of"):
            ops.constant("text")


def test_bare_numbers_take_the_type_of_their_neighbors() -> None:
    with Graph().as_default():
        x = ops.placeholder(dtype="bfloat16", shape=(2,))
        assert (2 * x).dtype.name == "bfloat16"
        assert ops.gather(x, [0, 1]).dtype.name == "bfloat16"
        assert ops.select([True, False], x, 0).dtype.name == "bfloat16"


def call(*xs: object, function: object, dtypes: object = ("float32",)) -> object:
    shapes = ((2,),) * len(dtypes)  # type: ignore[arg-type]
    return ops.host_call.all(*xs, function=function, dtypes=dtypes, shapes=shapes)


def test_host_call() -> None:
    with Graph().as_default() as graph:
        x = ops.placeholder(dtype="float32", shape=(2,))
        double, count = call(x, function=lambda a: (a * 2, [1, 2]), dtypes=("float32", "int32"))
        broken, = call(x, function=lambda a: a[5])  # fmt: skip
        mistyped, = call(x, function=lambda a: a.astype(np.float64))  # fmt: skip
    feeds = {x: [1.0, 2.0]}
    found = evaluate(graph, [double, count], feeds)
    assert [a.tolist() for a in found] == [[2, 4], [1, 2]]
    with pytest.raises(UserOpError, match="host_call: the function raised IndexError") as caught:
        evaluate(graph, [broken], feeds)
    assert isinstance(caught.value.__cause__, IndexError)
    with pytest.raises(UserOpError, match="expected a result of type float32, got float64"):
        evaluate(graph, [mistyped], feeds)

"""Branches and loops in the graph: types, text, equality, composites and unknown shapes."""

import itertools
import signal
from collections.abc import Iterator

import numpy as np
import pytest

from weft import ops
from weft.errors import DTypeError, ShapeError
from weft.ir.dtype import bool_, float32, int32
from weft.ir.function import functions
from weft.ir.graph import Graph
from weft.ir.node import TensorType
from weft.ir.parser import parse_graph
from weft.ir.printer import format_graph
from weft.ir.verify import verify
from weft.ops.call import trace
from weft.passes.pipeline import optimize
from weft.passes.specialize import specialize
from weft.passes.step import Request
from weft.runtime.engine import Function, State
from weft.transform.interpreter import evaluate


@pytest.fixture
def graph() -> Iterator[Graph]:
    graph = Graph()
    with graph.as_default():
        yield graph


ROW = TensorType(float32, (3,))
NUMBER = TensorType(int32, ())
X = np.array([0.5, -1.0, 2.0], np.float32)


def counting(limit: int):
    return trace(lambda i, x: ops.less(i, limit), [NUMBER, ROW])


def nested(graph: Graph):
    """A loop in a branch in a loop."""

    def outer(i, x):
        step = trace(lambda x: ops.softmax(x * 2), [ROW])
        turn = trace(lambda j, x: (j + 1, ops.switch(j, x, branches=(step, step))), [NUMBER, ROW])
        _, x = ops.while_loop.all(
            ops.constant(0, "int32"), x, condition=counting(2), body=turn, carried=2
        )
        return i + 1, x

    x = ops.placeholder(dtype="float32", shape=(3,), name="x")
    body = trace(outer, [NUMBER, ROW])
    n, y = ops.scan.all(ops.constant(0, "int32"), x, body=body, length=3, carried=2, mapped=0)
    return x, n, y


def test_nested_loops_are_interpreted_and_run_in_programs(graph: Graph) -> None:
    x, n, y = nested(graph)
    expected = X.astype(np.float64)
    for _ in range(6):
        expected = np.exp(2 * expected) / np.exp(2 * expected).sum()
    for count, row in (
        evaluate(graph, [n, y], {x: X}),
        Function(graph, [n, y], feeds=[x])([X], State()),
    ):
        assert count == 3
        np.testing.assert_allclose(row, expected, rtol=1e-5)


def test_what_is_printed_parses_back(graph: Graph) -> None:
    _, n, y = nested(graph)
    graph.outputs = (n, y)
    text = format_graph(graph)
    again = parse_graph(text)
    verify(again)
    assert format_graph(again) == text
    assert functions(again.nodes[-1]) == functions(graph.nodes[-1])
    assert evaluate(again, again.outputs, {again.nodes[0].outputs[0]: X})[0] == 3


def test_equal_bodies_are_one_node(graph: Graph) -> None:
    x = ops.placeholder(dtype="float32", shape=(3,))
    ys = [
        ops.scan(x, body=trace(lambda x: ops.sin(x), [ROW]), length=4, carried=1, mapped=0)
        for _ in range(2)
    ]
    step = optimize(specialize(Request(graph, tuple(ys), (), (x,)), [ROW], {}, {}))
    assert [n.op for n in step.graph.nodes].count("scan") == 1


def test_a_specialized_body_has_known_shapes_and_no_composites(graph: Graph) -> None:
    some = TensorType(float32, (None,))
    x = ops.placeholder(dtype="float32", shape=(None, None))
    n = ops.slice(ops.shape_of(x), begin=(0,), end=(1,))
    body = trace(lambda row: ops.softmax(row), [some])
    y = ops.scan(x, body=body, length=ops.reshape(n, shape=()), carried=0, mapped=1)
    assert y.shape == (None, None)
    step = specialize(Request(graph, (y,), (), (x,)), [TensorType(float32, (4, 3))], {}, {})
    node = step.graph.outputs[0].node
    (inner,) = functions(node)
    assert node.types == (TensorType(float32, (4, 3)),)
    assert inner.input_types == (ROW,)
    assert "softmax" not in {n.op for n in inner.nodes}


def test_disagreements_show_both_sides(graph: Graph) -> None:
    x = ops.placeholder(dtype="float32", shape=(3,))
    wrong = trace(lambda x: ops.cast(x, dtype="int32"), [ROW])
    right = trace(lambda x: x, [ROW])
    with pytest.raises(DTypeError) as error:
        ops.switch(ops.constant(0, "int32"), x, branches=(right, wrong))
    assert "(branch 0 | branch 1):\n  0: float32 | int32  <- differs" in str(error.value)
    assert "test_regions.py" in str(error.value)
    longer = trace(lambda x: ops.concatenate(x, x, axis=0), [ROW])
    with pytest.raises(ShapeError, match=r"before \| after\):\n  0: \(3,\) \| \(6,\)  <- differs"):
        ops.scan(x, body=longer, length=2, carried=1, mapped=0)
    with pytest.raises(ShapeError, match="expected mapped inputs of 2 slices, got"):
        body = trace(lambda x: x, [TensorType(float32, ())])
        ops.scan(x, body=body, length=2, carried=0, mapped=1)
    with pytest.raises(DTypeError, match="a condition that gives one bool, got float32"):
        ops.while_loop(x, condition=right, body=right, carried=1)
    with pytest.raises(ShapeError, match="at least one branch"):
        ops.switch(ops.constant(0, "int32"), x, branches=())


def test_ctrl_c_ends_an_endless_loop(graph: Graph) -> None:
    always = trace(lambda x: ops.constant(np.array(True)), [ROW])
    x = ops.placeholder(dtype="float32", shape=(3,))
    kept = ops.variable(key="v", dtype="float32", shape=(3,))
    y = ops.while_loop(x, condition=always, body=trace(lambda x: x + 1, [ROW]), carried=1)
    state = State()
    state["v"] = X
    function = Function(graph, [y], targets=[ops.assign(kept, y).node], feeds=[x])
    assert always.output_types[0].dtype is bool_
    turns = itertools.count()

    def handler(*_: object) -> None:
        next(turns)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            function([X], state)
    finally:
        signal.signal(signal.SIGALRM, before)
    np.testing.assert_array_equal(state["v"], X)

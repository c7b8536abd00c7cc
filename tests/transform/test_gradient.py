"""Reverse mode: sums, orders, stops, sparse rows, unknown shapes, depth."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft import ops
from weft.errors import DTypeError, GraphError, NotDifferentiableError, ShapeError
from weft.ir.graph import Graph, toposort
from weft.ir.node import Node, Value
from weft.ops.declaration import REGISTRY, Op, defop
from weft.ops.indexing.row_sparse import RowSparse
from weft.transform.gradient import dense, gradients
from weft.transform.interpreter import evaluate


@pytest.fixture(autouse=True)
def graph() -> Iterator[Graph]:
    with Graph().as_default() as graph:
        yield graph


def placeholder(*shape: int | None, dtype: str = "float64") -> Value:
    return ops.placeholder(dtype=dtype, shape=shape)


def used(graph: Graph, *values: Value) -> list[Node]:
    return toposort(graph, [v.node for v in values])


def test_several_uses_are_summed_once(graph: Graph) -> None:
    x = placeholder()
    y = ops.exp(x) + ops.sin(x) * x + x
    (g,) = gradients([y], [x])
    sums = [n for n in used(graph, g) if n.op == "add_n"]
    assert [len(n.inputs) for n in sums] == [4]
    expected = np.exp(0.5) + np.cos(0.5) * 0.5 + np.sin(0.5) + 1
    np.testing.assert_allclose(evaluate(graph, [g], {x: 0.5})[0], expected)


def test_any_order(graph: Graph) -> None:
    x = placeholder()
    y = ops.sin(x) * 2.0
    found = [y]
    for _ in range(5):
        found.extend(gradients([found[-1]], [x]))
    values = evaluate(graph, found, {x: 0.3})
    s, c = 2 * np.sin(0.3), 2 * np.cos(0.3)
    np.testing.assert_allclose(values, [s, c, -s, -c, s, c], rtol=1e-12)


def test_unconnected_and_integers_give_none(graph: Graph) -> None:
    x, other, n = placeholder(2), placeholder(2), placeholder(2, dtype="int32")
    y = ops.sum(x * ops.cast(n, dtype="float64"))
    g, none, integers = gradients([y], [x, other, n])
    assert none is None
    assert integers is None
    assert g is not None
    assert gradients([n], [x]) == [None]
    assert gradients([ops.argmax(x, axis=0)], [x]) == [None]
    assert gradients([ops.stop_gradient(x) * 2.0], [x]) == [None]


def test_a_y_that_is_an_x_and_one_asked_for_twice(graph: Graph) -> None:
    x = placeholder()
    y = x * x
    found = gradients([y, x], [y, x, x])
    values = evaluate(graph, found, {x: 3.0})
    assert values == [1, 7, 7]
    assert found[1] is found[2]


def test_grad_ys_and_their_checks(graph: Graph) -> None:
    x, start = placeholder(3), placeholder(3)
    y = x * x
    (g,) = gradients([y, y], [x], [start, None])
    found = evaluate(graph, [g], {x: [1.0, 2.0, 3.0], start: [1.0, 0.0, -1.0]})[0]
    assert found.tolist() == [4, 4, 0]
    with pytest.raises(ShapeError, match=r"expected a grad_y of shape \(3,\), got \(2,\)"):
        gradients([y], [x], [placeholder(2)])
    with pytest.raises(DTypeError, match="expected a grad_y of float64, got float32"):
        gradients([y], [x], [placeholder(3, dtype="float32")])
    with pytest.raises(GraphError, match="expected 1 grad_ys, got 2"):
        gradients([y], [x], [start, start])


def test_stops_and_intermediate_values(graph: Graph) -> None:
    x = placeholder()
    middle = x * x
    y = middle * middle * x
    at_middle, whole = gradients([y], [middle, x])
    (partial,) = gradients([y], [x], stop=[middle])
    feeds = {x: 2.0}
    assert evaluate(graph, [at_middle, whole, partial], feeds) == [16, 80, 16]
    inner, outer = gradients([y], [middle, x], stop=[middle])
    assert evaluate(graph, [inner, outer], feeds) == [16, 16]


def test_variables_are_asked_for_by_their_handle(graph: Graph) -> None:
    v = ops.variable(key="v", dtype="float64", shape=())
    y = ops.read(v) * ops.read(v)
    (g,) = gradients([y], [v])
    assert evaluate(graph, [g], {v: 3.0}) == [6]


def test_outputs_that_are_not_used_count_as_zero(graph: Graph) -> None:
    x = placeholder(5)
    first, _, last = ops.split.all(x, sizes=(2, 1, 2))
    (g,) = gradients([ops.sum(first * 3.0) + ops.sum(last)], [x])
    assert evaluate(graph, [g], {x: np.ones(5)})[0].tolist() == [3, 3, 0, 1, 1]
    values, _ = ops.top_k.all(x, k=2)
    (g,) = gradients([ops.sum(values * [1.0, 2.0])], [x])
    assert evaluate(graph, [g], {x: [1.0, 5.0, 2.0, 7.0, 0.0]})[0].tolist() == [0, 2, 0, 1, 0]


# Row-sparse gradients


def lookup(graph: Graph) -> tuple[Value, Value, Value]:
    table = ops.variable(key="table", dtype="float64", shape=(5, 2))
    rows = placeholder(None, dtype="int32")
    return table, rows, ops.gather(ops.read(table), rows)


def test_a_lookup_gives_rows(graph: Graph) -> None:
    table, rows, found = lookup(graph)
    again = ops.gather(ops.identity(ops.read(table)), [[0, 1]])
    (g,) = gradients([ops.sum(found * found) + ops.sum(again)], [table])
    assert isinstance(g, RowSparse)
    assert g.shape == (5, 2)
    assert g.values.shape == (None, 2)
    feeds = {table: np.arange(10.0).reshape(5, 2), rows: [4, 1, 4]}
    indices, values, whole = evaluate(graph, [g.indices, g.values, g.dense()], feeds)
    assert sorted(indices.tolist()) == [0, 1, 1, 4, 4]
    expected = np.zeros((5, 2))
    np.add.at(expected, indices, values)
    np.testing.assert_array_equal(whole, expected)
    np.testing.assert_array_equal(whole, [[1, 1], [5, 7], [0, 0], [0, 0], [32, 36]])


def test_rows_meet_a_dense_gradient(graph: Graph) -> None:
    table, rows, found = lookup(graph)
    (g,) = gradients([ops.sum(found) + ops.sum(ops.read(table) * 2.0)], [table])
    assert isinstance(g, Value)
    feeds = {table: np.zeros((5, 2)), rows: [0, 0]}
    assert evaluate(graph, [g], feeds)[0][:, 0].tolist() == [4, 2, 2, 2, 2]


def test_rows_of_different_index_types_and_through_other_operations(graph: Graph) -> None:
    table, rows, found = lookup(graph)
    wide = ops.gather(ops.read(table), ops.cast(rows, dtype="int64"))
    scaled = ops.gather(ops.read(table) * 3.0, rows)  # becomes dense at the product
    (g,) = gradients([ops.sum(found) + ops.sum(wide)], [table])
    assert isinstance(g, RowSparse)
    assert g.indices.dtype.name == "int64"
    (h,) = gradients([ops.sum(scaled)], [table])
    assert isinstance(h, Value)
    feeds = {table: np.zeros((5, 2)), rows: [3]}
    found_g, found_h = evaluate(graph, [dense(g), h], feeds)
    assert found_g[:, 0].tolist() == [0, 0, 0, 2, 0]
    assert found_h[:, 1].tolist() == [0, 0, 0, 3, 0]


def test_the_gradient_of_a_row_sparse_gradient(graph: Graph) -> None:
    table, rows, found = lookup(graph)
    (g,) = gradients([ops.sum(found * found * found)], [table])
    assert g is not None
    (h,) = gradients([ops.sum(dense(g))], [table])
    assert h is not None
    feeds = {table: np.full((5, 2), 2.0), rows: [1, 1]}
    assert evaluate(graph, [dense(h)], feeds)[0][:, 0].tolist() == [0, 24, 0, 0, 0]


# Shapes and attributes that only the run tells


@pytest.mark.parametrize(
    "f",
    [
        lambda x, n: x + ops.sum(x, axes=0),
        lambda x, n: ops.tile(x, reps=(2, 1)),
        lambda x, n: ops.tile(x, reps=[n, 2]),
        lambda x, n: ops.sum(x, axes=n - 1),
        lambda x, n: ops.mean(x, axes=[n - 1], keepdims=True),
        lambda x, n: ops.max(x, axes=n - 2),
        lambda x, n: ops.concatenate(x, x * 2.0, axis=n - 1),
        lambda x, n: x[: n - 1, ::-1],
        lambda x, n: ops.pad(x, paddings=[[n, 0], [0, 1]]),
        lambda x, n: ops.transpose(x, perm=[n - 1, 0]),
        lambda x, n: ops.reshape(x, shape=[-1]),
        lambda x, n: ops.broadcast_to(x, shape=[n, n, 3]),
        lambda x, n: ops.gather(x, [[2, 0]], axis=1),
        lambda x, n: ops.take_along_axis(x, ops.argsort(x), axis=1),
        lambda x, n: ops.cumprod(x, axis=1),
        lambda x, n: ops.mirror_pad(x, paddings=((1, 1), (2, 0))),
        lambda x, n: ops.stack(x, x, axis=1),
        lambda x, n: ops.split.all(x, sizes=[n, 1], axis=1)[0],
        lambda x, n: ops.unstack.all(x, count=3, axis=1)[1],
        lambda x, n: ops.tril(x),
        lambda x, n: ops.sort(x),
        lambda x, n: ops.sum_to(x, shape=[1, 3]),
        lambda x, n: ops.logsumexp(x, axes=n - 1),
    ],
)
@pytest.mark.parametrize("shape", [(2, 3), (None, 3), (None, None)])
def test_unknown_shapes_and_computed_attributes(
    graph: Graph, f: Callable[[Value, Value], Value], shape: tuple[int | None, ...]
) -> None:
    """Gradients to second order equal central differences, for any static shape."""
    x, n = placeholder(*shape), placeholder(dtype="int32")
    y = f(x, n)
    loss = ops.sum(ops.sin(y) * y)
    feeds: dict[Value, Any] = {x: np.array([[0.3, -1.1, 2.0], [0.7, 1.3, -0.4]]), n: 2}
    for _ in range(2):
        (found,) = gradients([loss], [x])
        assert found is not None
        g = dense(found)
        value = evaluate(graph, [g], feeds)[0]
        direction = np.array([[1.0, 0.5, -0.3], [0.2, -0.8, 0.6]])

        def along(step: float, loss: Value = loss) -> Any:
            moved = {**feeds, x: feeds[x] + step * direction}  # noqa: B023
            return evaluate(graph, [loss], moved)[0]

        slope = (along(1e-5) - along(-1e-5)) / 2e-5
        np.testing.assert_allclose((value * direction).sum(), slope, rtol=1e-6, atol=1e-7)
        loss = ops.sum(ops.sin(g))


# Errors


def with_gradient(vjp: Any, name: str = "odd") -> Op:
    like = REGISTRY["exp"]
    return defop(
        name, inputs="x", dtype=like.dtype, shape=like.shape, reference=like.reference, vjp=vjp,
        lower=like.lower, cases=lambda: (),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("vjp", "message"),
    [
        (lambda g, y, x: (ops.cast(g, dtype="float32"),), "expected its gradient rule to give"),
        (lambda g, y, x: (ops.sum(g),), "expected its gradient rule to give"),
        (lambda g, y, x: (g, g), "expected 1 cotangents of its gradient rule, got 2"),
    ],
)
def test_a_wrong_rule_is_caught(vjp: Any, message: str) -> None:
    op = with_gradient(vjp)
    try:
        x = placeholder(3)
        with pytest.raises(GraphError, match=message):
            gradients([op(x)], [x])
    finally:
        del REGISTRY["odd"]


def test_not_differentiable_names_the_operation_and_the_line() -> None:
    x = placeholder(2)
    v = ops.variable(key="v", dtype="float64", shape=(2,))
    y = ops.assign(v, x, name="update") * 2.0
    text = r"assign: has no gradient \(node update, created at test_gradient.py:\d+\)"
    with pytest.raises(NotDifferentiableError, match=text):
        gradients([y], [x])
    assert gradients([y], [placeholder(2)]) == [None]  # no path, no error


def test_names_devices_and_lines_of_backward_nodes(graph: Graph) -> None:
    x = placeholder(2)
    with graph.name_scope("model"), graph.device("cpu:1"):
        y = ops.tanh(x, name="act")
    (g,) = gradients([y], [x])
    backward = [n for n in used(graph, g) if n.name.startswith("gradients/model/act_grad/")]
    assert backward
    assert {n.device for n in backward} == {"cpu:1"}
    assert {n.source for n in backward} == {y.node.source}


# Depth and time


def chain(length: int) -> tuple[Value, Value]:
    x = placeholder(2)
    y = x
    for i in range(length):
        y = ops.sin(y) if i % 2 else y * y
    return x, y


def test_a_long_chain_needs_no_recursion(graph: Graph) -> None:
    x, y = chain(20000)
    (g,) = gradients([y], [x])
    assert evaluate(graph, [g], {x: [0.0, 1.0]})[0].shape == (2,)


def test_time_is_linear() -> None:
    def seconds(length: int) -> float:
        with Graph().as_default():
            x, y = chain(length)
            start = time.process_time()
            gradients([y], [x])
            return time.process_time() - start

    assert any(seconds(8000) < 8 * seconds(1000) * 3 for _ in range(9))  # a square would be 64


@given(st.lists(st.sampled_from("sem+-*"), max_size=12), st.floats(-1, 1))
def test_random_programs_against_complex_steps(steps: list[str], at: float) -> None:
    """The derivative by a complex step is exact to rounding: imag(f(x + ih)) / h."""
    table: dict[str, Callable[[Any, Any], Any]] = {
        "s": lambda a, b: ops.sin(b) if isinstance(b, Value) else np.sin(b),
        "e": lambda a, b: ops.exp(b * 0.1) if isinstance(b, Value) else np.exp(b * 0.1),
        "m": lambda a, b: -b,
        "+": lambda a, b: a + b,
        "-": lambda a, b: a - b * 0.5,
        "*": lambda a, b: a * b * 0.5,
    }

    def f(x: Any) -> Any:
        a, b = x, x * 1.5
        for step in steps:
            a, b = b, table[step](a, b)
        return a * b

    with Graph().as_default() as graph:
        x = placeholder()
        (g,) = gradients([f(x)], [x])
        found = evaluate(graph, [g], {x: at})[0]
    expected = f(at + 1e-30j).imag / 1e-30
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)

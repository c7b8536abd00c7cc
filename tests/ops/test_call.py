"""Traced functions: structure, captured values, custom gradients, rematerialization."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from weft import ops
from weft.errors import DTypeError, GraphError, OutOfRangeError, ShapeError
from weft.ir.dtype import float32, float64
from weft.ir.graph import Graph
from weft.ir.node import TensorType, Value
from weft.ops.call import Subgraph, inline, trace, trace_backward, trace_closure
from weft.ops.declaration.rule import concrete
from weft.passes.pipeline import optimize
from weft.passes.specialize import specialize
from weft.passes.step import Request
from weft.runtime.engine import Function, State
from weft.transform.check import check_gradients
from weft.transform.gradient import dense, gradients
from weft.transform.interpreter import evaluate

ROW = TensorType(float64, (3,))


@pytest.fixture(autouse=True)
def graph() -> Iterator[Graph]:
    with Graph().as_default() as graph:
        yield graph


def placeholder(*shape: int | None, dtype: str = "float64") -> Value:
    return ops.placeholder(dtype=dtype, shape=shape)


def smooth(x: Value, w: Value) -> Value:
    return ops.tanh(x * w) + x


# Structure


def test_functions_of_one_structure_are_equal() -> None:
    def renamed(x: Value, w: Value) -> Value:
        product = ops.multiply(x, w, name="product")
        ops.exp(product)  # is not needed
        return ops.tanh(product) + x

    first = trace(smooth, [ROW, ROW])
    assert first == trace(renamed, [ROW, ROW])
    assert hash(first) == hash(trace(renamed, [ROW, ROW]))
    assert first != first.with_gradient(rematerialize=True)


def test_gradients_count_in_comparisons() -> None:
    """A program holds the gradients, so functions of one structure may not stand for each other."""

    def backward(scale: float) -> Any:
        return lambda gs, ys, xs: [gs[0] * scale * xs[1], None]

    first = trace(smooth, [ROW, ROW])
    assert first != first.with_gradient(backward(2.0))
    assert first.with_gradient(backward(2.0)) != first.with_gradient(backward(2.0))
    traced = [first.with_gradient(trace_backward(backward(s), first)) for s in (2.0, 2.0, 3.0)]
    assert traced[0] == traced[1]
    assert traced[0] != traced[2]


def test_a_traced_gradient(graph: Graph) -> None:
    pair = trace(lambda x: (x * 2.0, ops.argmax(x, axis=0)), [ROW])
    function = pair.with_gradient(trace_backward(lambda gs, ys, xs: [gs[0] * xs[0]], pair))
    x = placeholder(3)
    (g,) = gradients([ops.call(x, function=function)], [x])
    assert g is not None
    np.testing.assert_array_equal(evaluate(graph, [dense(g)], {x: [1.0, 2, 3]})[0], [1, 2, 3])
    with pytest.raises(GraphError, match="trace: expected a function of its arguments only"):
        trace_backward(lambda gs, ys, xs: [gs[0] * x], pair)


@pytest.mark.parametrize(
    "other",
    [
        lambda x, w: ops.tanh(w * x) + x,
        lambda x, w: ops.tanh(x * w) + w,
        lambda x, w: ops.tanh(x * w) + x + 1.0,
        lambda x, w: (ops.tanh(x * w) + x, x),
    ],
)
def test_functions_that_differ_are_not(other: Any) -> None:
    assert trace(smooth, [ROW, ROW]) != trace(other, [ROW, ROW])
    assert trace(smooth, [ROW, ROW]) != trace(smooth, [ROW, TensorType(float64, ())])
    assert trace(smooth, [ROW, ROW]) != 3


def test_what_is_returned_is_checked() -> None:
    assert trace(lambda x: (x, 2.0), [ROW]).output_types[1] == TensorType(float32, ())
    with pytest.raises(GraphError, match=r"trace: expected the function to return values, got N"):
        trace(lambda x: None, [ROW])


# Calls


def test_a_call_is_what_it_calls(graph: Graph) -> None:
    x, w = placeholder(3), placeholder(3)
    y = ops.call(x, w, function=trace(smooth, [ROW, ROW]))
    assert y.shape == (3,)
    direct = smooth(x, w)
    a, b = evaluate(graph, [y, direct], {x: [1.0, 2, 3], w: [0.5, 1, 2]})
    np.testing.assert_array_equal(a, b)


def test_a_call_costs_nothing(graph: Graph) -> None:
    x, w = placeholder(3), placeholder(3)

    def step(call: bool) -> Any:
        y = ops.call(x, w, function=trace(smooth, [ROW, ROW])) if call else smooth(x, w)
        fetches = (y, *map(dense, gradients([y], [x, w])))  # pyright: ignore
        return optimize(specialize(Request(graph, fetches, (), (x, w)), [ROW, ROW], {}, {}))

    called, direct = (sorted(n.op for n in step(c).graph.nodes) for c in (True, False))
    assert called == direct


def test_inputs_that_do_not_fit() -> None:
    function = trace(smooth, [ROW, ROW])
    with pytest.raises(ShapeError, match=r"call: expected input 1 of shape \(3,\), got \(2,\)"):
        ops.call(placeholder(3), placeholder(2), function=function)
    with pytest.raises(DTypeError, match=r"call: expected inputs of float64, float64, .* float32"):
        ops.call(placeholder(3), placeholder(3, dtype="float32"), function=function)
    with pytest.raises(DTypeError, match="call: expected inputs of"):
        ops.call(placeholder(3), function=function)


def test_unknown_shapes_are_told_by_the_call() -> None:
    def flat(x: Value) -> Value:
        return ops.reshape(x, shape=[ops.shape_of(x)[0] * 2, -1])

    function = trace(flat, [TensorType(float64, (None, 4))])
    assert function.output_types[0].shape == (None, None)
    x = placeholder(3, 4)
    assert ops.call(x, function=function).shape == (6, 2)
    (y,) = inline(function, [x])
    assert y.shape == (6, 2)


def test_unknown_shapes_compiled_with_gradients(graph: Graph) -> None:
    kind = TensorType(float64, (None, 4))
    for remat in (False, True):
        function = trace(lambda x: ops.softmax(x) * x, [kind], rematerialize=remat)
        x = placeholder(None, 4)
        (y,) = ops.call.all(x, function=function)
        (g,) = gradients([y], [x])
        assert g is not None
        array = np.linspace(-1, 2, 12).reshape(3, 4)
        found = Function(graph, [y, dense(g)], feeds=[x])([array], State())
        for a, b in zip(found, evaluate(graph, [y, dense(g)], {x: array}), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_errors_inside_name_the_line(graph: Graph) -> None:
    function = trace(lambda x: ops.gather(x, ops.constant([7])), [ROW])
    x = placeholder(3)
    y = ops.call(x, function=function)
    with pytest.raises(OutOfRangeError, match=r"call: gather: .*got 7.*test_call.py"):
        evaluate(graph, [y], {x: np.zeros(3)})


# Captured values


def test_a_function_of_its_arguments_only() -> None:
    x = placeholder(3)
    with pytest.raises(GraphError, match=r"trace: expected a function of its arguments only.*"):
        trace(lambda y: x * y, [ROW])
    variable = ops.variable(key="v", dtype="float64", shape=(3,))
    with pytest.raises(GraphError, match="trace: expected a function without effects, got read"):
        trace(lambda y: ops.read(variable) * y, [ROW])
    with pytest.raises(GraphError, match="trace: expected a function without effects, got assign"):
        trace_closure(lambda y: ops.assign(variable, y), [ROW])


def test_small_constants_are_copied_and_others_captured() -> None:
    small, large = ops.constant(2.0, "float64"), ops.constant(np.ones(100))
    function, captured = trace_closure(lambda x: x * small + ops.sum(large), [ROW])
    assert captured == (large,)
    assert (function.captured, len(function.inputs)) == (1, 2)


def test_nested_closures_and_variables(graph: Graph) -> None:
    x, w = placeholder(3), placeholder(3)
    variable = ops.variable(key="v", dtype="float64", shape=(3,))

    def outer(x: Value) -> Value:
        function, captured = trace_closure(
            lambda y: ops.tanh(y * w) * ops.read(variable) * x, [x.type], rematerialize=True
        )
        return ops.call(x * 2.0, *captured, function=function)

    function, captured = trace_closure(outer, [x.type], rematerialize=True)
    y = ops.call(x, *captured, function=function)
    assert [v.node.op for v in captured] == ["placeholder", "read"]
    loss = ops.sum(y)
    found = gradients([loss], [x, w])
    feeds = {x: np.array([0.1, 0.2, 0.3]), w: np.array([1.0, 2, 3])}
    state = State()
    state["v"] = np.array([3.0, 4, 5])
    fetches = [loss, *map(dense, found)]  # pyright: ignore
    results = Function(graph, fetches, feeds=[x, w])(list(feeds.values()), state)
    t = np.tanh(2 * feeds[x] * feeds[w])
    np.testing.assert_allclose(results[0], (t * state["v"] * feeds[x]).sum())
    slope = (1 - t * t) * 2 * feeds[x] ** 2 * state["v"]
    np.testing.assert_allclose(results[2], slope)


def test_a_counter_is_counted_once(graph: Graph) -> None:
    x = placeholder(64)

    def dropped(x: Value) -> Value:
        counter = ops.counter(key="steps")
        mask = ops.bernoulli(counter, (1, 2), (64,), 0.5)
        return ops.dropout(ops.exp(x), mask, rate=0.5)

    function, captured = trace_closure(dropped, [x.type], rematerialize=True)
    y = ops.call(x, *captured, function=function)
    (g,) = gradients([y], [x])
    assert g is not None
    call, state = Function(graph, [y, dense(g)], feeds=[x]), State()
    first = call([np.zeros(64)], state)
    second = call([np.zeros(64)], state)
    np.testing.assert_array_equal(first[0], first[1])  # the same mask both times
    assert (first[0] != second[0]).any()


# custom gradients


def test_a_custom_gradient(graph: Graph) -> None:
    def backward(gs: Any, ys: Any, xs: Any) -> Any:
        return [gs[0] * 10.0, gs[0] * ys[1] + gs[1]]

    function = trace(lambda x, w: (x * w, ops.exp(w)), [ROW, ROW], backward)
    x, w = placeholder(3), placeholder(3)
    y, residual = ops.call.all(x, w, function=function)
    gx, gw = gradients([y], [x, w])
    feeds = {x: np.arange(3.0), w: np.arange(3.0)}
    assert gx is not None and gw is not None
    found = evaluate(graph, [dense(gx), dense(gw)], feeds)
    np.testing.assert_array_equal(found[0], [10, 10, 10])
    np.testing.assert_allclose(found[1], np.exp(np.arange(3.0)))
    assert gradients([residual], [x])[0] is not None


def test_a_custom_gradient_of_a_closure() -> None:
    w, x = placeholder(3), placeholder(3)
    function, captured = trace_closure(lambda x: x * w, [ROW], lambda gs, ys, xs: [gs[0]])
    y = ops.call(x, *captured, function=function)
    assert gradients([y], [x, w])[1] is None
    short = function.with_gradient(lambda gs, ys, xs: [])
    with pytest.raises(GraphError, match="call: expected 1 cotangents of the backward function"):
        gradients([ops.call(x, *captured, function=short)], [x])


def test_custom_gradients_that_are_put_off_stay_apart(graph: Graph) -> None:
    x = ops.placeholder(dtype="float64", shape=None)
    found: list[Value] = []
    for scale in (3.0, 5.0):

        def backward(gs: Any, ys: Any, xs: Any, scale: float = scale) -> Any:
            return [gs[0] * (scale * concrete(xs[0])[0])]

        function = trace(ops.sin, [TensorType(float64, None)], backward)
        (g,) = gradients([ops.call(x, function=function)], [x])
        assert g is not None
        found.append(dense(g))
    assert {v.node.op for v in found} == {"vjp"}
    results = Function(graph, found, feeds=[x])([np.zeros(2)], State())
    np.testing.assert_array_equal(results, [[6, 6], [10, 10]])


@pytest.mark.parametrize("remat", [False, True])
def test_gradients_to_second_order(remat: bool) -> None:
    function = trace(lambda x, w: (smooth(x, w), ops.sum(x)), [ROW, ROW], None, remat)

    def model(x: Value, w: Value) -> tuple[Value, ...]:
        return ops.call.all(x, ops.call(x, w, function=function) * w, function=function)

    check_gradients(model, [np.array([0.1, -0.4, 0.9]), np.array([1.0, 0.5, -1])], order=2)


# Rematerialization


def chain(depth: int, kind: str) -> tuple[Function, list[Any]]:
    """A deep chain of layers that keep much: the loss and all gradients."""
    graph = Graph()
    with graph.as_default():
        x = placeholder(128, 16, dtype="float32")
        ws = [placeholder(16, 16, dtype="float32") for _ in range(depth)]
        h = x
        for w in ws:
            if kind == "plain":
                h = layer(h, w)
            else:
                function = trace(layer, [h.type, w.type], rematerialize=kind == "again")
                h = ops.call(h, w, function=function)
        loss = ops.sum(h * h)
        found = [loss, *map(dense, gradients([loss], [x, *ws]))]  # pyright: ignore
    rng = np.random.default_rng(0)
    arrays = [rng.normal(0, 0.3, v.shape).astype(np.float32) for v in (x, *ws)]
    return Function(graph, found, feeds=[x, *ws]), arrays


def layer(h: Value, w: Value) -> Value:
    for _ in range(4):
        h = ops.tanh(h @ w) * ops.sigmoid(h)
    return h


def test_rematerialization_takes_less_memory_for_the_same_values() -> None:
    results: dict[str, list[Any]] = {}
    arena: dict[str, int] = {}
    for kind in ("plain", "call", "again"):
        function, arrays = chain(8, kind)
        results[kind] = function(arrays, State())
        arena[kind] = function.program(arrays, State()).blueprint.arena.total
    assert arena["call"] == arena["plain"]
    assert arena["again"] < 0.3 * arena["plain"]
    for kind in ("call", "again"):
        for a, b in zip(results["plain"], results[kind], strict=True):
            assert a.tobytes() == b.tobytes()


def test_what_nobody_reads_behind_a_barrier_is_not_computed(graph: Graph) -> None:
    """The gradient by `x` is not wanted, nor are the values that only it takes."""
    x, w = placeholder(4, 4), placeholder(4, 4)
    function = trace(lambda x, w: ops.tanh(x @ w), [x.type, w.type], None, True)
    once = ops.call(x, w, function=function)
    (g,) = gradients([ops.call(once, w, function=function)], [w])
    assert g is not None
    request = Request(graph, (dense(g),), (), (x, w))
    step = optimize(specialize(request, [x.type, w.type], {}, {}))
    # The inner product, both of them again, two by w, one by the inner result.
    assert [n.op for n in step.graph.nodes].count("matmul") == 6
    array = np.linspace(-1, 1, 16).reshape(4, 4)
    (found,) = Function(graph, [dense(g)], feeds=[x, w])([array, array], State())
    (expected,) = evaluate(graph, [dense(g)], {x: array, w: array})
    np.testing.assert_allclose(found, expected, 1e-12)


def test_lookups_stay_rows() -> None:
    table = placeholder(50, 4)
    indices = ops.constant(np.array([3, 3, 7], np.int32))
    function, captured = trace_closure(
        lambda t: ops.exp(ops.gather(t, indices)), [table.type], rematerialize=True
    )
    (g,) = gradients([ops.call(table, *captured, function=function)], [table])
    assert type(g).__name__ == "RowSparse"


def test_equal_functions_are_one_program_key() -> None:
    keys = {trace(smooth, [ROW, ROW]): 1}
    assert keys[trace(smooth, [ROW, ROW])] == 1
    assert "Subgraph of 3 nodes" in repr(next(iter(keys)))
    assert isinstance(next(iter(keys)), Subgraph)


def test_the_catalogue_holds_no_words_of_declarations():
    assert not set(dir(ops)) & set(ops.declaration.__all__)

"""Forward mode: every operation against central differences, and against reverse mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from catalogue import differentiable, distinct

from weft import ops
from weft.errors import DTypeError, GraphError, NotDifferentiableError, ShapeError
from weft.ir.dtype import as_dtype, float64
from weft.ir.graph import Graph
from weft.ir.node import TensorType, Value
from weft.ops.call import trace
from weft.ops.declaration import NO_GRADIENT, REGISTRY, Op
from weft.passes.pipeline import optimize
from weft.passes.specialize import specialize
from weft.passes.step import Request
from weft.runtime.engine import Function, State
from weft.transform.forward import pushforward
from weft.transform.gradient import dense, gradients
from weft.transform.interpreter import evaluate
from weft.transform.vmap import vmap


@pytest.fixture(autouse=True)
def graph() -> Iterator[Graph]:
    with Graph().as_default() as graph:
        yield graph


def placeholder(*shape: int | None, dtype: str = "float64") -> Value:
    return ops.placeholder(dtype=dtype, shape=shape)


def wide(x: Any) -> Any:
    return x.astype(np.float64) if as_dtype(x.dtype).is_floating else x


# Every operation

OPS = [pytest.param(op, id=name) for name, op in REGISTRY.items() if op.vjp is not NO_GRADIENT]


@pytest.mark.parametrize("op", OPS)
def test_tangents_equal_central_differences(op: Op) -> None:
    for case in distinct(op):
        if differentiable(op, case):
            check(lambda *xs, case=case: op.all(*xs, **case.attrs), list(map(wide, case.inputs)))


def check(function: Callable[..., Any], arrays: list[Any], step: float = 1e-6) -> None:
    """Along a random direction, first with all inputs moving, then only the first that may."""
    rng = np.random.default_rng(1)
    floating = [i for i, a in enumerate(arrays) if a.dtype == np.float64]
    for which in (floating, floating[:1]):
        ts = {i: rng.uniform(0.5, 1, arrays[i].shape) for i in which}
        graph = Graph()
        with graph.as_default():
            xs = [ops.placeholder(dtype=a.dtype, shape=a.shape) for a in arrays]
            ys = [y for y in function(*xs) if y.dtype is float64]
            moving = {i: ops.placeholder(dtype="float64", shape=t.shape) for i, t in ts.items()}
            found = pushforward(ys, xs, [moving.get(i) for i in range(len(xs))])
            tangents = [
                ops.zeros_like(y) if t is None else t for t, y in zip(found, ys, strict=True)
            ]
        feeds = dict(zip(xs, arrays, strict=True))
        got = evaluate(graph, tangents, {**feeds, **{moving[i]: t for i, t in ts.items()}})
        ends: list[list[Any]] = []
        for sign in (1, -1):
            moved = {xs[i]: arrays[i] + sign * step * t for i, t in ts.items()}
            ends.append(evaluate(graph, ys, {**feeds, **moved}))
        for a, b, t in zip(*ends, got, strict=True):
            np.testing.assert_allclose(t, (a - b) / (2 * step), 2e-5, 2e-5)


def test_a_wrong_tangent_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    linear = replace(ops.square.facts, linear=True)
    monkeypatch.setitem(REGISTRY, "square", replace(ops.square, facts=linear))
    with pytest.raises(AssertionError):
        check(lambda x: [ops.square(x)], [np.array([2.0])])


# Programs


def test_some_results_do_not_move() -> None:
    x, n = placeholder(3), placeholder(3, dtype="int32")
    t = placeholder(3)
    still = ops.cast(n, dtype="float64")
    ys = [x * 2.0, still, ops.argmax(x, axis=0), ops.stop_gradient(x), x]
    found = pushforward(ys, [x, n], [t, None])
    assert [v is None for v in found] == [False, True, True, True, False]
    assert found[4] is t
    assert pushforward(ys, [x], [None]) == [None] * 5


def test_an_intermediate_value_may_move(graph: Graph) -> None:
    x = placeholder()
    inner = ops.exp(x)
    y = inner * inner * x
    (t,) = pushforward([y], [inner], [ops.constant(1.0, "float64")])
    assert t is not None
    np.testing.assert_allclose(evaluate(graph, [t], {x: 2.0})[0], 4 * np.exp(2.0))


def test_refusals() -> None:
    x, n = placeholder(3), placeholder(3, dtype="int32")
    with pytest.raises(GraphError, match="pushforward: expected 1 tangents, got 0"):
        pushforward([x], [x], [])
    with pytest.raises(ShapeError, match=r"pushforward: expected a tangent of shape \(3,\)"):
        pushforward([x], [x], [placeholder(2)])
    with pytest.raises(DTypeError, match="pushforward: expected a tangent of int32"):
        pushforward([x], [n], [n])
    bits = ops.bitcast(x, dtype="float64")
    with pytest.raises(NotDifferentiableError, match="bitcast: has no gradient"):
        pushforward([bits], [x], [x])


def test_unknown_shapes(graph: Graph) -> None:
    x, t = placeholder(None, None), placeholder(None, None)
    y = ops.softmax(ops.reshape(x, shape=[ops.shape_of(x)[0] * 2, -1]))
    (found,) = pushforward([ops.sum(y * y)], [x], [t])
    assert found is not None
    a, b = np.arange(12.0).reshape(3, 4), np.linspace(0, 1, 12).reshape(3, 4)
    (result,) = Function(graph, [found], feeds=[x, t])([a, b], State())
    (slope,) = gradients([ops.sum(y * y)], [x])
    assert slope is not None
    np.testing.assert_allclose(result, (evaluate(graph, [dense(slope)], {x: a})[0] * b).sum())


def test_calls_and_custom_gradients(graph: Graph) -> None:
    row = TensorType(float64, (3,))
    plain = trace(lambda x: ops.exp(x) * x, [row], None, True)
    own = plain.with_gradient(lambda gs, ys, xs: [gs[0] * ys[0] * 5.0])
    x, t = placeholder(3), placeholder(3)
    ys = [ops.call(x, function=f) for f in (plain, own)]
    a, b = pushforward(ys, [x], [t])
    assert a is not None and b is not None
    v, w = np.array([0.1, 0.2, 0.3]), np.array([1.0, 2, 3])
    found = evaluate(graph, [a, b], {x: v, t: w})
    np.testing.assert_allclose(found[0], np.exp(v) * (1 + v) * w)
    np.testing.assert_allclose(found[1], np.exp(v) * v * 5 * w)
    assert not any(n.op == "barrier" for n in graph.nodes)


def test_complex_numbers(graph: Graph) -> None:
    """Holomorphic or not: the change of the result when the argument moves along the tangent."""

    def f(z: Value) -> list[Value]:
        return [ops.exp(z) * ops.conj(z) + ops.sqrt(z), ops.abs(z) * ops.imag(z), ops.sum(z @ z)]

    z, t = placeholder(2, 2, dtype="complex128"), placeholder(2, 2, dtype="complex128")
    at = np.array([[1 + 2j, 0.5 - 1j], [2 + 0.25j, -1 + 1j]])
    along = np.array([[0.3 - 1j, 1j], [2.0, -0.5 + 0.5j]])
    ys = f(z)
    tangents = [y for y in pushforward(ys, [z], [t]) if y is not None]
    found = evaluate(graph, tangents, {z: at, t: along})
    ends = [evaluate(graph, ys, {z: at + h * along}) for h in (1e-6, -1e-6)]
    for a, b, got in zip(*ends, found, strict=True):
        np.testing.assert_allclose(got, (a - b) / 2e-6, 1e-8, 1e-8)


def model(x: Value, w: Value, b: Value) -> Value:
    h = ops.tanh(x @ w + b)
    return ops.mean(ops.log_softmax(ops.relu(h) * ops.sigmoid(h)))


def arrays_of_model() -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=s) for s in ((5, 4), (4, 3), (3,))]


def test_forward_and_reverse_agree_in_any_order(graph: Graph) -> None:
    arrays = arrays_of_model()
    xs = [placeholder(*a.shape) for a in arrays]
    ts = [placeholder(*a.shape) for a in arrays]
    loss = model(*xs)
    (tangent,) = pushforward([loss], xs, ts)
    slopes = [dense(g) for g in gradients([loss], xs) if g is not None]
    products = pushforward(slopes, xs, ts)  # forward over reverse
    assert tangent is not None
    (again,) = pushforward([tangent], xs, ts)  # forward over forward
    backwards = gradients([tangent], xs)  # reverse over forward
    rng = np.random.default_rng(1)
    feeds = {**dict(zip(xs, arrays, strict=True)), **{t: rng.normal(size=t.shape) for t in ts}}
    fetches = [tangent, again, *slopes, *products, *map(dense, backwards)]  # pyright: ignore
    found = evaluate(graph, fetches, feeds)
    np.testing.assert_allclose(
        found[0], sum((s * feeds[t]).sum() for s, t in zip(found[2:5], ts, strict=True))
    )
    for a, b in zip(found[5:8], found[8:11], strict=True):
        np.testing.assert_allclose(a, b, 1e-9, 1e-12)
    np.testing.assert_allclose(
        found[1], sum((s * feeds[t]).sum() for s, t in zip(found[5:8], ts, strict=True))
    )
    compiled = Function(graph, fetches, feeds=list(feeds))(list(feeds.values()), State())
    for a, b in zip(compiled, found, strict=True):
        np.testing.assert_allclose(a, b, 1e-9, 1e-12)


def test_a_jacobian_by_columns() -> None:
    def column(x: Value, t: Value) -> Value:
        (found,) = pushforward([ops.cumprod(x)], [x], [t])
        assert found is not None
        return found

    with Graph().as_default() as graph:
        x, basis = placeholder(3), ops.constant(np.eye(3))
        jacobian = vmap(column, (None, 0), 1)(x, basis)
        (found,) = evaluate(graph, [jacobian], {x: [2.0, 3.0, 5.0]})
    np.testing.assert_allclose(found, [[1, 0, 0], [3, 2, 0], [15, 10, 6]])


def operations(function: Callable[..., Any], arrays: list[Any]) -> list[str]:
    """What is left of a function after simplification."""
    graph = Graph()
    with graph.as_default():
        xs = [placeholder(*a.shape) for a in arrays]
        fetches = tuple(function(*xs))
        types = [v.type for v in xs]
        step = optimize(specialize(Request(graph, fetches, (), tuple(xs)), types, {}, {}))
    return sorted(n.op for n in step.graph.nodes if n.op not in ("placeholder", "constant"))


def test_nothing_dead_is_left() -> None:
    """As many operations as a tangent written by hand takes."""

    def by_rule(x: Value, w: Value, t: Value, u: Value) -> list[Any]:
        y = ops.tanh(x @ w) * ops.sin(x @ w)
        return [y, *pushforward([y], [x, w], [t, u])]

    def by_hand(x: Value, w: Value, t: Value, u: Value) -> list[Value]:
        z = x @ w
        moved = t @ w + x @ u
        a, b = ops.tanh(z), ops.sin(z)
        return [a * b, moved * (1 - a * a) * b + moved * ops.cos(z) * a]

    arrays = [np.ones((3, 4)), np.ones((4, 5))] * 2
    assert len(operations(by_rule, arrays)) <= len(operations(by_hand, arrays))
    assert operations(by_rule, arrays).count("matmul") == 3

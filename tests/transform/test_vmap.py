"""Batching: every operation against a loop, nesting, gradients, calls, axes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from catalogue import assert_close, differentiable, distinct, reference, types_of
from hypothesis import given
from hypothesis import strategies as st

from weft import ops
from weft.errors import GraphError, OutOfRangeError, ShapeError, UserOpError
from weft.ir.dtype import as_dtype, float64
from weft.ir.graph import Graph
from weft.ir.node import TensorType, Value
from weft.ops.call import Subgraph, inline, trace, trace_closure
from weft.ops.declaration import NO_GRADIENT, REGISTRY, Boundary, Case, Op
from weft.runtime.engine import Function, State
from weft.transform.forward import pushforward
from weft.transform.gradient import dense, gradients
from weft.transform.interpreter import evaluate
from weft.transform.vmap import batch, vmap

LANES = 3
OPS = [
    pytest.param(op, id=name)
    for name, op in REGISTRY.items()
    if op.inputs and not isinstance(op.lower, Boundary)
]
LARGEST = 3000  # elements of an example; larger ones try nothing that small ones do not


@pytest.fixture(autouse=True)
def graph() -> Iterator[Graph]:
    with Graph().as_default() as graph:
        yield graph


def placeholder(*shape: int, dtype: str = "float64") -> Value:
    return ops.placeholder(dtype=dtype, shape=shape)


# Every operation


def examples(x: Any) -> Any:
    """A batch of arrays that are as good an input as `x`: indices inside, sorted rows sorted."""
    if as_dtype(x.dtype).is_floating:
        with np.errstate(all="ignore"):
            rows = [x, (x * x.dtype.type(0.875)).astype(x.dtype), (x * 0.75).astype(x.dtype)]
        return np.stack(rows)
    if x.ndim == 0 or (x.ndim == 1 and bool((x[1:] >= x[:-1]).all())):
        return np.stack([x] * LANES)
    return np.stack([np.roll(x, i, axis=0) for i in range(LANES)])


def patterns(count: int) -> Iterator[tuple[bool, ...]]:
    """All inputs mapped, and each of them alone."""
    yield (True,) * count
    if count > 1:
        yield from (tuple(i == j for j in range(count)) for i in range(count))


def one_node(op: Op, case: Case) -> Subgraph:
    return trace(lambda *xs: op.all(*xs, **case.attrs), types_of(case.inputs))


def batched_cases(op: Op) -> Iterator[tuple[Case, tuple[bool, ...], list[Any]]]:
    for case in distinct(op):
        if sum(x.size for x in case.inputs) <= LARGEST:
            for mapped in patterns(len(case.inputs)):
                if op is ops.gather_examples and mapped[1]:  # its own batch, which it gathers
                    continue
                pairs = zip(case.inputs, mapped, strict=True)
                yield case, mapped, [examples(x) if m else x for x, m in pairs]


@pytest.mark.parametrize("op", OPS)
def test_every_operation_equals_a_loop(op: Op) -> None:
    for case, mapped, arrays in batched_cases(op):
        inner = batch(one_node(op, case), mapped, LANES)
        found = run(inner, arrays)
        for i in range(LANES):
            lane = Case(
                tuple(a[i] if m else a for a, m in zip(arrays, mapped, strict=True)),
                case.attrs, max(case.rtol, 1e-5), max(case.atol, 1e-5),
            )  # fmt: skip
            ys = tuple(y[i] if m else y for y, m in zip(found, inner.mapped, strict=True))
            assert_close(op, lane, ys, reference(op, lane))


def run(function: Subgraph, arrays: list[Any]) -> list[Any]:
    with Graph().as_default() as graph:
        xs = [ops.placeholder(dtype=a.dtype, shape=a.shape) for a in arrays]
        ys = inline(function, xs)
        return evaluate(graph, ys, dict(zip(xs, arrays, strict=True)))


def wide(arrays: list[Any]) -> list[Any]:
    return [a.astype(np.float64) if as_dtype(a.dtype).is_floating else a for a in arrays]


def gradient_of(function: Any, weights: list[Any]) -> Any:
    """The gradient of a weighted sum of results by the floating arguments, zeros for none."""

    def slope(*xs: Value) -> list[Value]:
        ys = [y for y in function(*xs) if y.dtype is float64]
        total = ops.add_n(*[ops.sum(y * w) for y, w in zip(ys, weights, strict=True)])
        floating = [x for x in xs if x.dtype is float64]
        found = zip(gradients([total], floating), floating, strict=True)
        return [ops.zeros_like(x) if g is None else dense(g) for g, x in found]

    return slope


@pytest.mark.parametrize("op", [p for p in OPS if p.values[0].vjp is not NO_GRADIENT])
def test_gradient_of_a_batch_equals_a_batch_of_gradients(op: Op) -> None:
    for case in distinct(op):
        if differentiable(op, case):
            arrays = wide([examples(x) for x in case.inputs])
            mapped = (True,) * len(arrays)
            types = types_of(tuple(a[0] for a in arrays))
            single = trace(lambda *xs, case=case: op.all(*xs, **case.attrs), types)
            rng = np.random.default_rng(0)
            kinds = [t for t in single.output_types if t.dtype is float64]
            weights = [rng.uniform(0.5, 1.5, t.shape) for t in kinds]  # pyright: ignore
            slopes = gradient_of(lambda *xs, f=single: inline(f, xs), weights)
            first = run(batch(trace(slopes, types), mapped, LANES), arrays)
            several = batch(single, mapped, LANES)
            full = [np.broadcast_to(w, (LANES, *w.shape)) for w in weights]
            slopes = gradient_of(lambda *xs, f=several: inline(f, xs), full)
            second = run(trace(slopes, types_of(tuple(arrays))), arrays)
            for a, b in zip(first, second, strict=True):
                np.testing.assert_allclose(np.broadcast_to(a, b.shape), b, 1e-8, 1e-8)


# Compiled


def compiled(function: Any, *arrays: Any) -> list[Any]:
    """A function of values, compiled; it must agree with the interpreter."""
    with Graph().as_default() as graph:
        xs = [ops.placeholder(dtype=a.dtype, shape=a.shape) for a in arrays]
        found = function(*xs)
        ys = list(found) if isinstance(found, tuple | list) else [found]
        expected = evaluate(graph, ys, dict(zip(xs, arrays, strict=True)))
        results = Function(graph, ys, feeds=xs)(list(arrays), State())
    for a, b in zip(results, expected, strict=True):
        np.testing.assert_allclose(a, b, 2e-5, 2e-5)
    return results


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def test_compiled_equals_interpreted() -> None:
    """Programs of many batched operations at once."""
    for name in ("conv", "conv_grad_weight", "conv_grad_input", "max_pool_grad", "batch_norm",
                 "dynamic_slice", "dynamic_update_slice", "scatter_add", "gather"):  # fmt: skip
        op = REGISTRY[name]
        cases = [c for c in batched_cases(op) if c[2][0].dtype == np.float32][:9]
        fetches: list[Value] = []
        feeds: dict[Value, Any] = {}
        with Graph().as_default() as graph:
            for case, mapped, arrays in cases:
                xs = [ops.placeholder(dtype=a.dtype, shape=a.shape) for a in arrays]
                fetches += inline(batch(one_node(op, case), mapped, LANES), xs)
                feeds.update(zip(xs, arrays, strict=True))
        found = Function(graph, fetches, feeds=list(feeds))(list(feeds.values()), State())
        for a, b in zip(found, evaluate(graph, fetches, feeds), strict=True):
            np.testing.assert_allclose(a, b, 2e-4, 2e-4)


# Axes


def test_axes() -> None:
    x, w = normal(2, 5, 3), normal(5)
    (y,) = compiled(vmap(lambda x, w: x * w, (2, None), 1), x, w)
    np.testing.assert_allclose(y, np.stack([x[:, :, i] * w for i in range(3)], 1))
    (y,) = compiled(vmap(lambda x, w: x * w, (-1, None), -1), x, w)
    np.testing.assert_allclose(y, x * w[:, None])
    a, b, c = compiled(vmap(lambda x, w: (ops.sum(x), w, w), (1, None), (0, None, 1)), x, w)
    np.testing.assert_allclose(a, x.sum((0, 2)), 1e-6)
    np.testing.assert_array_equal(b, w)
    np.testing.assert_array_equal(c, np.stack([w] * 5, 1))


@given(st.data())
def test_axes_of_any_shape(data: st.DataObject) -> None:
    """Against a loop over NumPy: two arguments, batch axes anywhere, also in the result."""
    size = data.draw(st.integers(1, 4))
    inner = data.draw(st.lists(st.integers(1, 3), max_size=3))
    axes: list[int | None] = []
    arrays: list[Any] = []
    for i in range(2):
        shape = inner[data.draw(st.integers(0, len(inner))) :]
        axis = data.draw(st.none() | st.integers(0, len(shape))) if i else len(shape)
        if axis is not None:
            shape = [*shape[:axis], size, *shape[axis:]]
        axes.append(axis)
        arrays.append(np.random.default_rng(i).normal(size=shape))
    lanes = [
        [a if axis is None else np.take(a, i, axis) for a, axis in zip(arrays, axes, strict=True)]
        for i in range(size)
    ]
    rows = [np.exp(a) * b for a, b in lanes]
    out = data.draw(st.integers(-rows[0].ndim - 1, rows[0].ndim))
    with Graph().as_default() as graph:
        xs = [placeholder(*a.shape) for a in arrays]
        y = vmap(lambda a, b: ops.exp(a) * b, axes, out)(*xs)
        (found,) = evaluate(graph, [y], dict(zip(xs, arrays, strict=True)))
    np.testing.assert_allclose(found, np.stack(rows, out))


def test_axes_that_do_not_fit() -> None:
    x, w = placeholder(2, 3), placeholder(3)
    with pytest.raises(ShapeError, match=r"vmap: expected batch axes of one size, got \[2, 3\]"):
        vmap(lambda x, w: x + w)(x, w)
    with pytest.raises(ShapeError, match=r"vmap: expected batch axes of one size, got \[\]"):
        vmap(lambda x: x, None)(x)
    with pytest.raises(GraphError, match="vmap: expected in_axes for 1 values, got 2"):
        vmap(lambda x: x, (0, 0))(x)
    with pytest.raises(GraphError, match="vmap: expected an out_axes of None only where"):
        vmap(lambda x: x, 0, None)(x)
    with pytest.raises(ShapeError, match=r"axis: expected -2 <= axis < 2, got 2"):
        vmap(lambda x: x, 2)(x)
    with pytest.raises(ShapeError, match="vmap: expected a flag for each of 1 inputs"):
        batch(trace(lambda x: x, [w.type]), [], 3)


def test_unknown_shapes_raise() -> None:
    function = trace(lambda x: ops.exp(x), [TensorType(float64, (None,))])
    with pytest.raises(ShapeError, match="expected known dimensions"):
        batch(function, [True], 3)


# Nesting, closures, gradients


def test_nested() -> None:
    x, y = normal(4, 3), normal(5, 3, seed=1)
    outer = vmap(lambda a, ys: vmap(lambda b: ops.sum(a * b))(ys), (0, None))
    (z,) = compiled(outer, x, y)
    np.testing.assert_allclose(z, x @ y.T, 1e-5)
    twice = vmap(vmap(ops.sort.all), 1, 1)
    found = compiled(lambda x: twice(x), normal(2, 3, 4))
    np.testing.assert_array_equal(found[0], np.sort(normal(2, 3, 4), -1))


def test_matrix_products_become_one() -> None:
    """Vectors against one matrix: neither side may become a product an example."""
    x, w = normal(6, 4), normal(4, 7)

    def columns(w: Value, x: Value) -> Value:
        return ops.squeeze(ops.matmul(w, ops.expand_dims(x, axis=1), transpose_x=True), axes=(1,))

    with Graph().as_default() as graph:
        xs = [placeholder(6, 4, dtype="float32"), placeholder(4, 7, dtype="float32")]
        vmap(columns, (None, 0))(xs[1], xs[0])
        (node,) = [n for n in graph.nodes if n.op == "matmul"]
        assert [v.shape for v in node.inputs] == [(6, 1, 4), (4, 7)]
    (y,) = compiled(lambda x, w: vmap(columns, (None, 0))(w, x), x, w)
    np.testing.assert_allclose(y, x @ w, 1e-5)


def model(w: Value, x: Value) -> Value:
    return ops.sum(ops.tanh(ops.reshape(x, shape=(1, 3)) @ w))


def test_gradients_of_each_example() -> None:
    """A batch of gradients, and the gradient of a batch."""
    w, x = normal(3, 2), normal(5, 3, seed=1)

    def slope(w: Value, x: Value) -> Value:
        (g,) = gradients([model(w, x)], [w])
        assert g is not None
        return dense(g)

    (each,) = compiled(vmap(slope, (None, 0)), w, x)
    expected = x[:, :, None] * (1 - np.tanh(x @ w)[:, None] ** 2)
    np.testing.assert_allclose(each, expected, 1e-5)

    def whole(w: Value, x: Value) -> Value:
        (g,) = gradients([ops.sum(vmap(model, (None, 0))(w, x))], [w])
        assert g is not None
        return dense(g)

    np.testing.assert_allclose(compiled(whole, w, x)[0], expected.sum(0), 1e-5)


def test_hessian_by_a_batch_of_basis_vectors() -> None:
    x = normal(3)

    def slope(x: Value, v: Value) -> Value:
        (g,) = gradients([ops.sum(ops.sin(x) * x)], [x])
        assert g is not None
        (h,) = gradients([dense(g)], [x], [v])
        assert h is not None
        return dense(h)

    (h,) = compiled(vmap(slope, (None, 0)), x, np.eye(3, dtype=np.float32))
    np.testing.assert_allclose(h, np.diag(2 * np.cos(x) - x * np.sin(x)), 1e-5, 1e-6)


# Calls


@pytest.mark.parametrize("mapped", [(True, True), (True, False), (False, True)])
def test_a_custom_gradient_is_batched(mapped: tuple[bool, bool]) -> None:
    """It is not the gradient of the function, so that the test sees which is used."""
    calls: list[int] = []

    def backward(gs: Any, ys: Any, xs: Any) -> Any:
        calls.append(1)
        assert [v.shape for v in xs] == [(3,), (3,)]
        return [gs[0] * xs[1] * 10.0, None if mapped == (True, True) else gs[0] * ys[0]]

    row = TensorType(float64, (3,))
    single = trace(lambda x, w: (x * w, ops.argmax(x, axis=0)), [row, row], backward)
    function = trace(lambda x, w: ops.call(x, w, function=single), [row, row])
    axes = tuple(0 if m else None for m in mapped)
    x, w = np.arange(12.0).reshape(4, 3), np.arange(12.0).reshape(4, 3) + 1
    x, w = x if mapped[0] else x[0], w if mapped[1] else w[0]

    def slopes(x: Value, w: Value) -> list[Value]:
        y = vmap(lambda x, w: ops.call(x, w, function=function), axes)(x, w)
        return [dense(g) for g in gradients([y], [x, w]) if g is not None]

    found = compiled(slopes, x, w)
    gx = np.broadcast_to(w * 10, (4, 3))
    gw = np.broadcast_to(x * w, (4, 3))
    np.testing.assert_allclose(found[0], gx if mapped[0] else gx.sum(0))
    assert len(found) == (1 if mapped == (True, True) else 2)
    if len(found) == 2:
        np.testing.assert_allclose(found[1], gw if mapped[1] else gw.sum(0))
    assert calls


def test_rematerialization_is_kept() -> None:
    function = trace(lambda x: ops.exp(ops.sin(x)), [TensorType(float64, ())], None, True)
    inner = batch(function, [True], 4)
    assert inner.rematerialize and inner.mapped == (True,)
    x = placeholder(4)
    with Graph().as_default() as graph:
        x = placeholder(4)
        gradients([vmap(lambda x: ops.call(x, function=function))(x)], [x])
        assert any(n.op == "barrier" for n in graph.nodes)


def test_closures_and_nested_calls() -> None:
    x, w = normal(4, 3), normal(3)

    def outer(x: Value, w: Value) -> Value:
        def row(x: Value) -> Value:
            function, captured = trace_closure(lambda y: ops.exp(y) * w, [x.type])
            return ops.call(x, *captured, function=function)

        return vmap(row)(x)

    np.testing.assert_allclose(compiled(outer, x, w)[0], np.exp(x) * w, 1e-5)


def test_derivatives_by_captured_values() -> None:
    """Inside a function being traced, a value of outside is known by what stands for it."""
    x, w = normal(4, 3), normal(3)

    def outer(x: Value, w: Value) -> tuple[Value, ...]:
        def row(x: Value) -> tuple[Value, ...]:
            y = ops.sum(ops.sin(x * w))
            (g,) = gradients([y], [w])
            (t,) = pushforward([y], [w], [w])
            assert g is not None and t is not None
            return dense(g), t

        return vmap(row)(x)

    g, t = compiled(outer, x, w)
    np.testing.assert_allclose(g, np.cos(x * w) * x, 1e-5)
    np.testing.assert_allclose(t, (np.cos(x * w) * x * w).sum(1), 1e-5, 1e-6)


def test_calls_into_python(graph: Graph) -> None:
    def double(x: Any, s: Any) -> Any:
        assert x.shape == (3,)
        return 2 * x * s, float(x.sum())

    def host(x: Value, s: Value) -> tuple[Value, ...]:
        return ops.host_call.all(
            x, s, function=double, dtypes=("float32", "float32"), shapes=((3,), ()),
            gradient=lambda g, y, x, s: (2 * g[0] * s + g[1], None),
        )  # fmt: skip

    x, s = normal(4, 3), np.float32(3)
    y, total = compiled(vmap(host, (0, None)), x, np.asarray(s))
    np.testing.assert_allclose(y, 6 * x, 1e-6)
    np.testing.assert_allclose(total, x.sum(1), 1e-5)

    def slope(x: Value, s: Value) -> Value:
        (g,) = gradients(vmap(host, (0, None))(x, s), [x])
        assert g is not None
        return dense(g)

    np.testing.assert_allclose(compiled(slope, x, np.asarray(s))[0], np.full((4, 3), 7.0))
    bad = vmap(
        lambda x: ops.host_call(x, function=lambda x: 1 // 0, dtypes=("float32",), shapes=((),))
    )
    feed = placeholder(4, 3, dtype="float32")
    with pytest.raises(UserOpError, match="ZeroDivisionError"):
        evaluate(graph, [bad(feed)], {feed: x})


# Random bits and fallbacks


def test_random_bits() -> None:
    counters = np.arange(3, dtype=np.uint64)

    def bits(counter: Value) -> Value:
        return ops.random_bits(counter, seed=(1, 2), shape=(70,))

    (each,) = compiled(vmap(bits), counters)
    for i in range(3):
        np.testing.assert_array_equal(each[i], compiled(bits, counters[i : i + 1].reshape(()))[0])

    def noisy(x: Value, counter: Value) -> Value:
        return x + ops.cast(bits(counter)[0], dtype="float32")

    x, one = np.zeros(3, np.float32), np.array(7, np.uint64)
    (same,) = compiled(vmap(noisy, (0, None)), x, one)
    (fresh,) = compiled(vmap(noisy, (0, None), fresh_bits=True), x, one)
    assert len(set(same.tolist())) == 1
    assert len(set(fresh.tolist())) == 3


def test_what_has_no_rule_runs_once_an_example(graph: Graph) -> None:
    x = placeholder(3, dtype="uint64")
    vmap(lambda c: ops.random_bits(c, seed=(1, 2), shape=(2,)))(x)
    assert sum(n.op == "random_bits" for n in graph.nodes) == 3


def test_shapes_inside_are_those_of_one_example() -> None:
    def half(x: Value) -> Value:
        return x / ops.cast(ops.size_of(x), dtype="float32") + ops.zeros_like(x)

    (y,) = compiled(vmap(half), normal(4, 2))
    np.testing.assert_allclose(y, normal(4, 2) / 2, 1e-6)


def test_every_pair_of_lanes_is_distinguished() -> None:
    """Indices outside one example's rows are outside, even where the next example has rows."""
    from_rows = vmap(lambda x, i: ops.gather(x, i))
    add_rows = vmap(lambda x, i, u: ops.scatter_add(x, i, u))
    x, i, u = normal(2, 3), np.array([[3], [0]], np.int32), normal(2, 1)
    for function, arrays in ((from_rows, (x, i)), (add_rows, (x, i, u))):
        with Graph().as_default() as graph:
            xs = [ops.placeholder(dtype=a.dtype, shape=a.shape) for a in arrays]
            y = function(*xs)
            with pytest.raises(OutOfRangeError, match=r"expected 0 <= index"):
                evaluate(graph, [y], dict(zip(xs, arrays, strict=True)))

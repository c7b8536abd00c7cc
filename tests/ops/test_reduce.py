"""Reductions and statistics: NumPy's values, gradients at ties and zeros, errors, stability."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slope import cotangents, interpreted, slopes
from strategies import arrays, at_most, axes, dtypes, shapes

from weft import ops
from weft.errors import DTypeError, ShapeError
from weft.ir.dtype import as_dtype
from weft.ir.graph import Graph
from weft.ops.declaration import REGISTRY
from weft.runtime.engine import Function, State
from weft.transform.interpreter import evaluate

NUMPY = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "mean": np.mean}


@pytest.mark.parametrize("name", NUMPY)
@at_most(25)
@given(data=st.data())
def test_references_equal_numpy(name: str, data: st.DataObject) -> None:
    shape = data.draw(shapes(max_rank=3, low=1, high=9))
    x = data.draw(arrays(as_dtype("float64"), shape))
    chosen, keepdims = data.draw(axes(len(shape))), data.draw(st.booleans())
    found = interpreted(lambda v: REGISTRY[name](v, axes=chosen, keepdims=keepdims), x)
    expected = NUMPY[name](x, axis=chosen, keepdims=keepdims)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@st.composite
def _problem(draw: st.DrawFn) -> tuple[str, Any, Any, bool]:
    name = draw(st.sampled_from(["sum", "max", "min", "any", "all"]))
    dtype = draw(dtypes("b") if name in ("any", "all") else dtypes("iuf"))
    shape = draw(shapes(max_rank=3, low=1, high=40, max_size=2000))
    x = draw(arrays(dtype, shape, specials=name in ("max", "min")))
    return name, x, draw(axes(len(shape))), draw(st.booleans())


@at_most(30)
@given(problem=_problem())
def test_compiled_reductions(problem: tuple[str, Any, Any, bool]) -> None:
    name, x, chosen, keepdims = problem
    graph = Graph()
    with graph.as_default():
        v = ops.placeholder(dtype=as_dtype(x.dtype), shape=x.shape)
        y = REGISTRY[name](v, axes=chosen, keepdims=keepdims)
    found = Function(graph, [y], feeds=[v])([x], State())[0]
    expected = evaluate(graph, [y], {v: x})[0]
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    if name == "sum" and as_dtype(x.dtype).is_floating:
        # Any order of summation in float32 is within n * eps / 2 * sum(|x|); halves round once.
        unit = max(2.0**-24, {"float16": 2.0**-10, "bfloat16": 2.0**-7}.get(str(x.dtype), 0))
        wide = np.abs(x.astype(np.float64)).sum()
        bound = 1e-12 * wide if x.dtype == np.float64 else (x.size * 2.0**-24 * wide + unit * wide)
        np.testing.assert_allclose(found.astype(float), expected.astype(float), atol=bound, rtol=0)
    else:
        np.testing.assert_array_equal(found.astype(float), expected.astype(float))


def test_nan_wins_an_extreme() -> None:
    x = np.array([1.0, np.nan, 3.0])
    assert np.isnan(interpreted(ops.max, x))
    assert np.isnan(interpreted(ops.min, x))


def test_empty_reductions() -> None:
    empty = np.zeros((0, 3))
    assert interpreted(lambda v: ops.sum(v, axes=(0,)), empty).tolist() == [0.0] * 3
    assert interpreted(lambda v: ops.prod(v, axes=(0,)), empty).tolist() == [1.0] * 3
    assert np.isnan(interpreted(ops.mean, empty))
    assert interpreted(ops.logsumexp, empty) == -np.inf
    assert interpreted(lambda v: ops.max(v, axes=(1,)), empty).shape == (0,)
    for extreme in (ops.max, ops.min):  # an empty axis is no harm where there are no results
        assert interpreted(
            lambda v, extreme=extreme: extreme(v, axes=(0,)), empty[:, :0]
        ).shape == (0,)
    assert not interpreted(ops.any, empty.astype(bool))
    assert interpreted(ops.all, empty.astype(bool))


def test_half_precision_accumulates_in_float32() -> None:
    x = np.full(4096, 1.0, np.float16)
    assert interpreted(ops.sum, x) == 4096.0
    assert interpreted(ops.mean, np.full(4096, 60000.0, np.float16)) == np.float16(60000.0)


@pytest.mark.parametrize(
    ("build", "error", "text"),
    [
        (
            lambda x: ops.max(x, axes=(0,)), ShapeError,
            r"max: expected at least one element to reduce, got shape \(0, 3\)",
        ),
        (
            lambda x: ops.sum(x, axes=(2,)), ShapeError,
            r"sum: axis: expected -2 <= axis < 2, got 2",
        ),
        (
            lambda x: ops.sum(x, axes=(0, -2)), ShapeError,
            r"sum: axes: expected distinct axes, got \(0, -2\)",
        ),
        (
            lambda x: ops.any(x), DTypeError,
            r"any: expected a bool dtype, got float32",
        ),
        (
            lambda x: ops.norm(x, ord=3), ShapeError,
            r"norm: ord: expected 1, 2 or inf, got 3",
        ),
    ],
)  # fmt: skip
def test_errors_say_what_was_expected(build: Any, error: Any, text: str) -> None:
    with Graph().as_default():
        x = ops.placeholder(dtype="float32", shape=(0, 3))
        with pytest.raises(error, match=text + r" \(created at test_reduce\.py:\d+\)$"):
            build(x)


# Gradients
def test_winners_of_an_extreme_share() -> None:
    assert slopes(ops.max, [1.0, 3.0, 3.0]) == [[0.0, 0.5, 0.5]]
    assert slopes(ops.min, [1.0, 3.0, 1.0]) == [[0.5, 0.0, 0.5]]


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ([2.0, 3.0, 4.0], [12.0, 8.0, 6.0]),
        ([2.0, 0.0, 4.0], [0.0, 8.0, 0.0]),
        ([0.0, 0.0, 4.0], [0.0, 0.0, 0.0]),
    ],
)
def test_slope_of_a_product_with_zeros(x: list[float], expected: list[float]) -> None:
    assert slopes(ops.prod, x) == [expected]


def test_slopes_where_there_is_no_spread() -> None:
    assert slopes(ops.std, [2.0, 2.0]) == [[0.0, 0.0]]
    assert slopes(ops.norm, [0.0, 0.0]) == [[0.0, 0.0]]


@pytest.mark.parametrize("name", ["sum", "mean", "max", "prod", "variance", "std", "logsumexp"])
@pytest.mark.parametrize("keepdims", [True, False])
def test_gradients_with_unknown_sizes(name: str, keepdims: bool) -> None:
    x = np.array([[1.0, 2.0, 4.0], [0.5, -1.0, 3.0]])
    by_shape = [
        cotangents(lambda v: REGISTRY[name](v, axes=(1,), keepdims=keepdims), [x], [shape])[0]
        for shape in ((2, 3), (None, 3), (None, None), None)
    ]
    for found in by_shape[1:]:
        np.testing.assert_allclose(found, by_shape[0])


# Stability
def test_logsumexp_of_huge_and_infinite() -> None:
    x = np.array([[1e4, 1e4, -1e4], [-np.inf, -np.inf, -np.inf], [np.inf, 0.0, 1.0]], np.float32)
    found = interpreted(lambda v: ops.logsumexp(v, axes=(1,)), x)
    np.testing.assert_allclose(found, [1e4 + np.log(2.0), -np.inf, np.inf])


def test_variance_far_from_zero() -> None:
    x = (np.arange(1000) % 2 + 1e4).astype(np.float32)
    np.testing.assert_allclose(interpreted(ops.variance, x), 0.25)
    np.testing.assert_allclose(interpreted(lambda v: ops.moments(v)[1], x), 0.25)

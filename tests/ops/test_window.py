"""Pooling against loops over every window, ties, NaN, padding, and second-order gradients."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slope import cotangents, interpreted
from strategies import at_most

from weft import ops
from weft.errors import GraphError, ShapeError
from weft.ir.graph import Graph
from weft.transform.check import check_gradients

Array = np.ndarray[Any, Any]


def by_loops(x: Array, window: Any, strides: Any, padding: Any, reduce: Any) -> Array:
    """`reduce(values inside the image, window size)` of every window and channel."""
    rank = x.ndim - 2
    sizes = [(x.shape[i + 1] + sum(padding[i]) - window[i]) // strides[i] + 1 for i in range(rank)]
    y = np.zeros((x.shape[0], *sizes, x.shape[-1]))
    for n, *o, c in np.ndindex(y.shape):
        values: list[float] = []
        for t in itertools.product(*map(range, window)):
            at = [o[i] * strides[i] + t[i] - padding[i][0] for i in range(rank)]
            if all(0 <= at[i] < x.shape[i + 1] for i in range(rank)):
                values.append(x[(n, *at, c)])
        y[(n, *o, c)] = reduce(values, int(np.prod(window)))
    return y


@st.composite
def _problem(draw: st.DrawFn, beyond: bool = True) -> tuple[Array, dict[str, Any]]:
    """With `beyond`, some windows may lie in the padding altogether."""
    rank = draw(st.integers(1, 3))
    window = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    strides = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    most = [3 if beyond else k - 1 for k in window]
    padding = tuple((draw(st.integers(0, m)), draw(st.integers(0, m))) for m in most)
    image = [draw(st.integers(max(1, k - sum(p)), 5)) for k, p in zip(window, padding, strict=True)]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x = rng.permutation(np.arange(2.0 * np.prod(image) * 2)).reshape(2, *image, 2)
    return x, {"window": window, "strides": strides, "padding": padding}


@at_most(40)
@given(problem=_problem())
def test_maximum_equals_loops(problem: tuple[Array, dict[str, Any]]) -> None:
    x, attrs = problem
    expected = by_loops(x, **attrs, reduce=lambda v, n: max(v, default=-np.inf))
    np.testing.assert_array_equal(interpreted(lambda v: ops.max_pool(v, **attrs), x), expected)


@pytest.mark.parametrize("count_include_pad", [True, False])
@at_most(30)
@given(problem=_problem())
def test_mean_equals_loops(count_include_pad: bool, problem: tuple[Array, dict[str, Any]]) -> None:
    x, attrs = problem

    def reduce(values: list[float], size: int) -> float:
        return sum(values) / (size if count_include_pad else max(len(values), 1))

    found = interpreted(lambda v: ops.avg_pool(v, **attrs, count_include_pad=count_include_pad), x)
    np.testing.assert_allclose(found, by_loops(x, **attrs, reduce=reduce), atol=1e-12)


@at_most(25)
@given(problem=_problem(beyond=False))
def test_gradients(problem: tuple[Array, dict[str, Any]]) -> None:
    x, attrs = problem
    if x.size > 60:
        x = x[:1, ..., :1]
    check_gradients(lambda v: ops.max_pool(v, **attrs), [x * 0.1])
    check_gradients(lambda v: ops.avg_pool(v, **attrs, count_include_pad=False), [x * 0.1])


def test_second_order_gradient_gathers_at_the_winners() -> None:
    x = np.random.default_rng(0).permutation(36.0 * 0.1 * np.arange(1, 37) / 36).reshape(1, 6, 6, 1)
    check_gradients(
        lambda v: ops.square(ops.max_pool(v, window=(3, 2), strides=(2, 1))), [x], order=2
    )


def grad(x: Any, g: Any, **attrs: Any) -> Array:
    return interpreted(lambda a, b: ops.max_pool_grad(a, b, **attrs), x, g)


def test_the_first_of_equal_maxima_takes_the_gradient() -> None:
    x = np.array([[[1.0], [1.0], [0.0], [0.0]]])
    assert grad(x, np.ones((1, 2, 1)), window=(2,)).ravel().tolist() == [1, 0, 1, 0]


def test_nan_is_a_maximum() -> None:
    x = np.array([[[5.0], [np.nan], [np.nan], [7.0]]])
    found = interpreted(lambda v: ops.max_pool(v, window=(4,)), x)
    assert np.isnan(found).all()
    assert grad(x, np.ones((1, 1, 1)), window=(4,)).ravel().tolist() == [0, 1, 0, 0]


def test_padding_never_wins() -> None:
    x = np.full((1, 2, 1), -np.inf)
    attrs = {"window": (2,), "strides": (1,), "padding": ((1, 1),)}
    assert grad(x, np.ones((1, 3, 1)), **attrs).ravel().tolist() == [2, 1]
    x = np.full((1, 2, 1), -5.0)
    found = interpreted(lambda v: ops.max_pool(v, **attrs), x)
    assert found.ravel().tolist() == [-5, -5, -5]


def test_a_window_all_in_the_padding() -> None:
    x = np.ones((1, 1, 1))
    attrs = {"window": (1,), "padding": ((1, 0),)}
    assert interpreted(lambda v: ops.max_pool(v, **attrs), x).ravel().tolist() == [-np.inf, 1]
    assert grad(x, np.ones((1, 2, 1)), **attrs).ravel().tolist() == [1]
    mean = interpreted(lambda v: ops.avg_pool(v, count_include_pad=False, **attrs), x)
    assert mean.ravel().tolist() == [0, 1]


@pytest.mark.parametrize("name", ["max_pool", "avg_pool"])
@pytest.mark.parametrize("shape", [(None, 5, 5, 2), (None,) * 4, None])
def test_gradients_with_unknown_sizes(name: str, shape: Any) -> None:
    x = np.random.default_rng(0).standard_normal((2, 5, 5, 2))

    def model(v: Any) -> Any:
        return getattr(ops, name)(v, window=(3, 3), strides=(2, 2), padding="same")

    (expected,) = cotangents(model, [x])
    (found,) = cotangents(model, [x], [shape])
    np.testing.assert_allclose(found, expected)


def test_errors_say_what_was_expected() -> None:
    with Graph().as_default():
        x = ops.placeholder(dtype="float32", shape=(1, 4, 4, 2))
        with pytest.raises(ShapeError, match="1 to 3 spatial axes, got 2 and a window of 1"):
            ops.max_pool(x, window=(2,))
        with pytest.raises(ShapeError, match="a window of at most the padded size 4, got 5"):
            ops.avg_pool(x, window=(5, 2))
        with pytest.raises(GraphError, match="max_pool: attribute 'window' is missing"):
            ops.max_pool(x)
        with pytest.raises(
            ShapeError, match=r"expected g of shape \(1, 2, 2, 2\), got \(1, 4, 4, 2\)"
        ):
            ops.max_pool_grad(x, x, window=(2, 2))

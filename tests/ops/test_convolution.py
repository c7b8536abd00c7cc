"""Convolutions against loops over every output and tap, and against each other."""

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
from weft.errors import ShapeError
from weft.ir.graph import Graph
from weft.ops.convolution.convolution import conv_geometry

Array = np.ndarray[Any, Any]


def by_loops(x: Array, w: Array, strides: Any, padding: Any, dilation: Any, groups: int) -> Array:
    """y[n, o, k] = sum over t, c of x[n, o * stride + t * dilation - low, c] * w[t, c, k]."""
    rank = x.ndim - 2
    extents = [(w.shape[i] - 1) * dilation[i] + 1 for i in range(rank)]
    sizes = [(x.shape[i + 1] + sum(padding[i]) - extents[i]) // strides[i] + 1 for i in range(rank)]
    y = np.zeros((x.shape[0], *sizes, w.shape[-1]))
    inputs, outputs = x.shape[-1] // groups, w.shape[-1] // groups
    for o in itertools.product(*map(range, sizes)):
        for t in itertools.product(*map(range, w.shape[:rank])):
            at = [o[i] * strides[i] + t[i] * dilation[i] - padding[i][0] for i in range(rank)]
            if any(not 0 <= at[i] < x.shape[i + 1] for i in range(rank)):
                continue
            for group in range(groups):
                c = slice(group * inputs, (group + 1) * inputs)
                k = slice(group * outputs, (group + 1) * outputs)
                seen = x[(slice(None), *at, c)]
                y[(slice(None), *o, k)] += seen @ w[(*t, slice(None), k)]
    return y


@st.composite
def _problem(draw: st.DrawFn) -> tuple[Array, Array, dict[str, Any]]:
    """Any stride, padding (also uneven, also beyond the kernel), dilation and group count."""
    rank = draw(st.integers(1, 3))
    groups = draw(st.integers(1, 3))
    inputs, outputs = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    kernel = [draw(st.integers(1, 3)) for _ in range(rank)]
    dilation = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    padding = tuple((draw(st.integers(0, 4)), draw(st.integers(0, 4))) for _ in range(rank))
    strides = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    image: list[int] = []
    for k, d, pads in zip(kernel, dilation, padding, strict=True):
        least = max(1, (k - 1) * d + 1 - sum(pads))
        image.append(draw(st.integers(least, least + 4)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x = rng.standard_normal((draw(st.integers(0, 2)), *image, inputs * groups))
    w = rng.standard_normal((*kernel, inputs, outputs * groups))
    attrs = {"strides": strides, "padding": padding, "dilation": dilation, "groups": groups}
    return x, w, attrs


@at_most(60)
@given(problem=_problem())
def test_equals_loops(problem: tuple[Array, Array, dict[str, Any]]) -> None:
    x, w, attrs = problem
    found = interpreted(lambda a, b: ops.conv(a, b, **attrs), x, w)
    np.testing.assert_allclose(found, by_loops(x, w, **attrs), atol=1e-12)


@at_most(60)
@given(problem=_problem())
def test_gradients_are_the_transposes(problem: tuple[Array, Array, dict[str, Any]]) -> None:
    """<conv(x, w), g> = <x, grad_input(g, w)> = <w, grad_weight(x, g)>, for every x, w and g."""
    x, w, attrs = problem
    y = by_loops(x, w, **attrs)
    g = np.random.default_rng(1).standard_normal(y.shape)
    dx = interpreted(lambda a, b: ops.conv_grad_input(a, b, shape=x.shape, **attrs), g, w)
    dw = interpreted(lambda a, b: ops.conv_grad_weight(a, b, shape=w.shape, **attrs), x, g)
    scale = np.abs(y).max(initial=1.0) * max(y.size, 1)
    np.testing.assert_allclose((dx * x).sum(), (y * g).sum(), atol=1e-12 * scale)
    np.testing.assert_allclose((dw * w).sum(), (y * g).sum(), atol=1e-12 * scale)


@pytest.mark.parametrize("size", range(1, 12))
@pytest.mark.parametrize("kernel", [1, 2, 3, 5])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_same_padding_is_tensorflows(size: int, kernel: int, stride: int) -> None:
    geo = conv_geometry(
        (1, size, 1), (kernel, 1, 1), strides=(stride,), padding="same", dilation=None, groups=1
    )
    assert geo.output == (-(-size // stride),)
    ((low, high),) = geo.padding
    assert high - low in (0, 1)


@pytest.mark.parametrize(
    "shapes", [((None, 5, 5, 2), None), ((None,) * 4, (None,) * 4), (None, None)]
)
def test_gradients_with_unknown_sizes(shapes: Any) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((2, 5, 5, 2)), rng.standard_normal((3, 3, 2, 3))]

    def model(x: Any, w: Any) -> Any:
        return ops.conv(x, w, padding="same", strides=(2, 2))

    expected = cotangents(model, arrays)
    for found, want in zip(cotangents(model, arrays, shapes), expected, strict=True):
        np.testing.assert_allclose(found, want)


@pytest.mark.parametrize(
    ("x", "w", "attrs", "text"),
    [
        (
            (1, 8, 8, 3), (3, 3, 4, 5), {},
            r"channels differ: expected x\.shape\[3\] == w\.shape\[2\], got 3 and 4",
        ),
        (
            (1, 8, 8, 4), (3, 3, 4, 6), {"groups": 2},
            r"channels differ: expected x\.shape\[3\] == w\.shape\[2\] \* 2 groups, got 4 and 8",
        ),
        (
            (1, 8, 8, 4), (3, 3, 2, 5), {"groups": 2},
            r"groups: expected a divisor of w\.shape\[3\], got 2",
        ),
        (
            (1, 2, 8, 3), (3, 3, 3, 5), {},
            r"expected a window of at most the padded size 2, got 3",
        ),
        (
            (8, 3), (3, 3, 3, 5), {},
            r"expected x of rank 3, 4 or 5 and w of the same rank, got \(8, 3\) and",
        ),
        (
            (1, 8, 8, 3), (3, 3, 3, 5), {"strides": (0, 1)},
            r"strides: expected 2 positive integers, got \(0, 1\)",
        ),
        (
            (1, 8, 8, 3), (3, 3, 3, 5), {"padding": ((1, 1),)},
            r"padding: expected 2 pairs of sizes, 'same' or 'valid', got \(\(1, 1\),\)",
        ),
    ],
)  # fmt: skip
def test_errors_say_what_was_expected(x: Any, w: Any, attrs: Any, text: str) -> None:
    with Graph().as_default():
        a, b = (ops.placeholder(dtype="float32", shape=s) for s in (x, w))
        with pytest.raises(ShapeError, match=f"^conv: {text}"):
            ops.conv(a, b, **attrs)


def test_a_cotangent_that_does_not_fit() -> None:
    with Graph().as_default():
        g = ops.placeholder(dtype="float32", shape=(1, 5, 5, 4))
        w = ops.placeholder(dtype="float32", shape=(3, 3, 2, 4))
        with pytest.raises(ShapeError, match=r"expected g of shape \(1, 6, 6, 4\) for x"):
            ops.conv_grad_input(g, w, shape=(1, 8, 8, 2))

"""Pooling kernels against the references: any window, stride and padding, every floating type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from families import TARGETS, check, check_cases
from hypothesis import given
from hypothesis import strategies as st
from strategies import at_most

from weft.codegen.family.window import avg_pool, avg_pool_grad, max_pool, max_pool_grad
from weft.ir.dtype import as_dtype
from weft.ops.pooling.window import pool_geometry

FAMILIES = {
    "max_pool": max_pool, "max_pool_grad": max_pool_grad,
    "avg_pool": avg_pool, "avg_pool_grad": avg_pool_grad,
}  # fmt: skip
DTYPES = ("float16", "bfloat16", "float32", "float64")


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("op", FAMILIES)
def test_cases_of_the_catalogue(op: str, name: str) -> None:
    check_cases(FAMILIES[op], op, (name,))


@st.composite
def problems(draw: st.DrawFn) -> tuple[tuple[int, ...], dict[str, Any], str, int]:
    """An image's shape, attributes, element type and a seed."""
    rank = draw(st.integers(1, 3))
    window, strides, padding, image = [], [], [], []
    for _ in range(rank):
        size = draw(st.integers(1, 4))
        low, high = draw(st.integers(0, size)), draw(st.integers(0, size))
        least = max(1, size - low - high)
        window.append(size)
        strides.append(draw(st.integers(1, 4)))
        padding.append((low, high))
        image.append(draw(st.integers(least, least + 6)))
    channels = draw(st.sampled_from([1, 3, 4, 8, 16, 17, 31, 64, 70, 130]))
    attrs = {"window": tuple(window), "strides": tuple(strides), "padding": tuple(padding)}
    shape = (draw(st.integers(1, 3)), *image, channels)
    return shape, attrs, draw(st.sampled_from(DTYPES)), draw(st.integers(0, 99))


def arrays(op: str, shape: tuple[int, ...], attrs: dict[str, Any], dtype: str, seed: int) -> Any:
    """Few different values, so that maxima tie, and now and then a NaN or an infinity."""
    rng = np.random.default_rng(seed)
    kind = as_dtype(dtype).numpy
    x = rng.integers(-3, 4, shape).astype(kind)
    if seed % 3 == 0:
        x[rng.random(shape) < 0.05] = [np.nan, -np.inf, np.inf][seed % 9 // 3]
    if op in ("max_pool", "avg_pool"):
        return (x,)
    geo = pool_geometry(shape, attrs["window"], attrs["strides"], attrs["padding"])
    g = rng.integers(-8, 8, (shape[0], *geo.output, shape[-1])).astype(kind)
    return (g,) if op == "avg_pool_grad" else (x, g)


@pytest.mark.parametrize("op", FAMILIES)
@at_most(12)
@given(problem=problems(), pad=st.booleans())
def test_any_window(op: str, problem: Any, pad: bool) -> None:
    shape, attrs, dtype, seed = problem
    xs = arrays(op, shape, attrs, dtype, seed)
    if op.startswith("avg"):
        attrs = {**attrs, "count_include_pad": pad}
    if op == "avg_pool_grad":
        attrs = {**attrs, "shape": shape}
    check(FAMILIES[op], op, xs, attrs, rtol=1e-5, atol=1e-5)


def test_the_test_can_fail() -> None:
    x = np.arange(32, dtype=np.float32).reshape(1, 4, 4, 2)
    with pytest.raises(AssertionError):
        check(max_pool, "avg_pool", (x,), {"window": (2, 2), "count_include_pad": True})

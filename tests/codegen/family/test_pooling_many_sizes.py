"""Pooling kernels for many sizes: the bits of kernels for one size, close to the references."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from families import TARGETS, machine
from harness import Array
from many_sizes import Many

from weft.ir.dtype import as_dtype
from weft.ops.pooling.window import pool_geometry

SIZES = [(4, 14, 12, 64), (1, 7, 9, 3), (9, 5, 6, 70), (2, 31, 17, 130)]
WINDOWS: Sequence[Mapping[str, Any]] = (
    {"window": (3, 3), "strides": (2, 2), "padding": ((1, 1), (1, 1))},
    {"window": (2, 3), "strides": (2, 1), "padding": None},
    {"window": (5, 4), "strides": (3, 2), "padding": ((2, 2), (1, 2))},
)


def form(op: str, window: Mapping[str, Any], n: int, h: int, w: int, c: int) -> Any:
    """Shapes of the inputs, and attributes."""
    x = (n, h, w, c)
    geometry = pool_geometry(x, **window)
    y = (n, *geometry.output, c)
    more = {"count_include_pad": False} if op.startswith("avg") else {}
    if op == "avg_pool_grad":
        return (y,), {**window, **more, "shape": x}
    return ((x, y) if op.endswith("grad") else (x,)), {**window, **more}


def arrays(shapes: Sequence[tuple[int, ...]], dtype: str) -> list[Array]:
    """Few different values, so that maxima tie."""
    rng = np.random.default_rng(3)
    return [rng.integers(-9, 9, shape).astype(as_dtype(dtype).numpy) for shape in shapes]


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("op", ["max_pool", "max_pool_grad", "avg_pool", "avg_pool_grad"])
def test_one_kernel_pools_images_of_all_sizes(op: str, dtype: str, name: str) -> None:
    for window in WINDOWS:
        many = Many(op, lambda *n, window=window: form(op, window, *n), SIZES[0], machine(name),
                    dtype)  # fmt: skip
        for sizes in SIZES:
            shapes, _ = form(op, window, *sizes)
            many.check(sizes, arrays(shapes, dtype), 1e-5)

"""Helpers for tests of operations: build a graph, run it on the references."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft import ops
from weft.ir.graph import Graph
from weft.ir.node import Value
from weft.transform.interpreter import evaluate

Array = np.ndarray[Any, Any]


def run(f: Callable[..., Any], *arrays: Array, open_shapes: bool = False) -> Any:
    """`f` on placeholders for the arrays, evaluated; `open_shapes` hides their dimensions."""
    with Graph().as_default() as graph:
        xs = [
            ops.placeholder(dtype=a.dtype, shape=(None,) * a.ndim if open_shapes else a.shape)
            for a in arrays
        ]
        found = f(*xs)
        ys = found if isinstance(found, tuple | list) else [found]
        results = evaluate(graph, ys, dict(zip(xs, arrays, strict=True)))
        for y, result in zip(ys, results, strict=True):
            check_type(y, result)
    return results if isinstance(found, tuple | list) else results[0]


def check_type(y: Value, result: Array) -> None:
    """The static type must describe the result, and say all where the inputs do."""
    assert y.dtype.numpy == result.dtype
    if y.shape is not None:
        assert len(y.shape) == result.ndim
        assert all(d in (None, n) for d, n in zip(y.shape, result.shape, strict=True))


def same(found: Array, expected: Any) -> None:
    """Equal in type, shape and every bit pattern that can be told apart by value."""
    expected = np.asarray(expected)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    np.testing.assert_array_equal(widened(found), widened(expected))


def widened(x: Any) -> Any:
    """Half-precision as float32, which NumPy compares with NaN equal to NaN."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else x

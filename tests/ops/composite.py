"""Functions composed of operations, against NumPy: a table of cases, and how to run them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft import ops
from weft.ir.dtype import as_dtype
from weft.ir.graph import Graph
from weft.runtime.engine import Function, State
from weft.transform.check import check_gradients
from weft.transform.interpreter import evaluate

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Row:
    """A function of values, its expected result, and arrays to try."""

    name: str
    function: Callable[..., Any]
    expected: Callable[..., Any]
    inputs: tuple[Any, ...]
    slopes: bool = True  # whether its gradients are checked, to second order
    rtol: float = 1e-12


def outputs(found: Any) -> list[Any]:
    return list(found) if isinstance(found, tuple | list) else [found]


def check_values(row: Row) -> None:
    """The interpreter gives what NumPy does, in type, shape and value."""
    arrays = [np.asarray(a) for a in row.inputs]
    with Graph().as_default() as graph:
        ys = outputs(row.function(*[ops.constant(a) for a in arrays]))
        found = evaluate(graph, ys)
    with np.errstate(all="ignore"):
        expected = outputs(row.expected(*arrays))
    assert len(found) == len(expected)
    for y, result, want in zip(ys, found, expected, strict=True):
        assert result.dtype == y.dtype.numpy
        assert y.shape == result.shape == np.shape(want)
        wide = np.float64 if y.dtype.is_floating else result.dtype
        np.testing.assert_allclose(
            result.astype(wide), np.asarray(want).astype(wide), row.rtol, row.rtol
        )


def check_slopes(row: Row) -> None:
    """Gradients of first and second order are those of central differences."""
    if row.slopes:
        check_gradients(row.function, [np.asarray(a) for a in row.inputs], order=2)


def check_compiled(rows: Sequence[Row]) -> None:
    """One program of all rows gives what the interpreter does."""
    feeds: list[Any] = []
    arrays: list[Array] = []
    fetches: list[Any] = []
    with Graph().as_default() as graph:
        for row in rows:
            given = [np.asarray(a) for a in row.inputs]
            narrow = [a.astype(np.float32) if a.dtype == np.float64 else a for a in given]
            xs = [ops.placeholder(dtype=as_dtype(a.dtype), shape=a.shape) for a in narrow]
            fetches += outputs(row.function(*xs))
            feeds += xs
            arrays += narrow
    expected = evaluate(graph, fetches, dict(zip(feeds, arrays, strict=True)))
    found = Function(graph, fetches, feeds=feeds)(arrays, State())
    for value, y, want in zip(fetches, found, expected, strict=True):
        y, want = (np.asarray(a).astype(np.float64) for a in (y, want))
        np.testing.assert_allclose(y, want, 1e-5, 1e-5, err_msg=value.node.describe())

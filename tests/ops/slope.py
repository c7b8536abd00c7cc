"""Helpers for tests of numeric operations: values and gradients by the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import ops
from weft.ir.graph import Graph
from weft.transform.gradient import gradients
from weft.transform.interpreter import evaluate

Array = np.ndarray[Any, Any]


def interpreted(function: Callable[..., Any], *inputs: Any) -> Array:
    """The value of `function` on arrays."""
    graph = Graph()
    with graph.as_default():
        y = function(*[ops.constant(np.asarray(a)) for a in inputs])
    return evaluate(graph, [y])[0]


def slopes(function: Callable[..., Any], *inputs: Any) -> list[Any]:
    """Gradients of the sum of `function` by every argument, in float64, as lists."""
    return [g.tolist() for g in cotangents(function, [np.asarray(a, np.float64) for a in inputs])]


def cotangents(
    function: Callable[..., Any],
    arrays: Sequence[Array],
    shapes: Sequence[Any] | None = None,
) -> list[Array]:
    """Gradients of the sum of `function`, with placeholders of the given (partly known) shapes."""
    graph = Graph()
    with graph.as_default():
        xs = [
            ops.placeholder(dtype=a.dtype, shape=s)
            for a, s in zip(arrays, shapes or [a.shape for a in arrays], strict=True)
        ]
        found = gradients([function(*xs)], xs)
    return evaluate(graph, found, dict(zip(xs, arrays, strict=True)))

"""Gradients of branches and loops turn by turn equal those of the compiled program."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from weft import ops
from weft.ir.dtype import float64, int32
from weft.ir.graph import Graph
from weft.ir.node import TensorType, Value
from weft.ops.call import trace
from weft.runtime.engine import Function, State
from weft.transform.gradient import gradients
from weft.transform.interpreter import evaluate

VECTOR, NUMBER = TensorType(float64, (None,)), TensorType(int32, ())


def branch(n: Value, x: Value, w: Value) -> Value:
    branches = (
        trace(lambda x, w: ops.tanh(x * w), [VECTOR, VECTOR]),
        trace(lambda x, w: x * x + w, [VECTOR, VECTOR]),
    )
    return ops.switch(n - 2, x, w, branches=branches)


def turns(n: Value, x: Value, w: Value) -> Value:
    types = [NUMBER, VECTOR, NUMBER, VECTOR]
    condition = trace(lambda i, x, n, w: ops.less(i, n), types)
    body = trace(lambda i, x, n, w: (i + 1, branch(i, ops.sin(x), w)), types)
    zero = ops.constant(0, "int32")
    return ops.while_loop.all(zero, x, n, w, condition=condition, body=body, carried=2)[1]


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_gives_rows(reverse: bool) -> None:
    def rows(n: Value, x: Value, w: Value) -> Value:
        each = TensorType(float64, ())
        body = trace(lambda a, x, w: (a * x + ops.sum(w * x), a * x * x), [each, each, VECTOR])
        scalar = ops.sum(w)
        last, stack = ops.scan.all(
            scalar, x, w, body=body, length=4, carried=1, mapped=1, reverse=reverse
        )
        return stack * last

    compare(rows, 0)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("make", [branch, turns])
def test_branches_and_turns(make: Callable[..., Any], n: int) -> None:
    compare(make, n)


def compare(make: Callable[..., Any], n: int) -> None:
    graph = Graph()
    with graph.as_default():
        count = ops.placeholder(dtype="int32", shape=())
        x, w = (ops.placeholder(dtype="float64", shape=(None,)) for _ in range(2))
        y = make(count, x, w)
        found = gradients([ops.sum(y * y)], [x, w])
    assert any([node.op == "vjp" for node in graph.nodes])
    arrays = [np.int32(n)[...], np.linspace(0.5, 1.5, 4), np.linspace(-1.0, 1.5, 4)]
    feeds = [count, x, w]
    compiled = Function(graph, found, feeds=feeds)(arrays, State())
    interpreted = evaluate(graph, found, dict(zip(feeds, arrays, strict=True)))
    for a, b in zip(compiled, interpreted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)

"""Pairs of gradients that become one kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from weft import ops
from weft.ir.graph import Graph
from weft.ir.node import Value
from weft.ir.shape import known
from weft.passes.pipeline import grouped
from weft.passes.step import Step
from weft.runtime.engine import Function, State
from weft.transform.interpreter import evaluate

SHAPE, WEIGHTS = (2, 8, 8, 32), (3, 3, 1, 32)
RULES: dict[str, Any] = {
    "strides": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 32,
}  # fmt: skip


def names_of(graph: Graph) -> list[tuple[str, ...]]:
    """The operations of every group, with paired ones after a bar."""
    feeds = tuple(n.name for n in graph.nodes if n.op == "placeholder")
    found: list[tuple[str, ...]] = []
    for group in grouped(Step(graph, feeds, ())).groups:
        beside = [] if group.beside is None else ["|", *(n.op for n in group.beside.nodes)]
        ops_ = [*(n.op for n in group.nodes), *beside]
        found.append(tuple(op for op in ops_ if op != "constant"))
    return found


def graph_of(order: str = "xw", groups: int = 32) -> tuple[Graph, list[Value]]:
    """Both gradients in an order, the second one perhaps of what the first one gave."""
    graph = Graph()
    weights = (3, 3, 32 // groups, 32)
    rules = RULES | {"groups": groups}
    with graph.as_default():
        feeds = [ops.placeholder(dtype="float32", shape=s) for s in (SHAPE, SHAPE, weights)]
        x, g, w = feeds
        found: list[Value] = []
        for kind in order:
            if kind == "x":
                found.append(ops.conv_grad_input(g, w, shape=SHAPE, **rules))
            elif kind == "w":
                found.append(ops.conv_grad_weight(x, g, shape=weights, **rules))
            else:
                found.append(ops.tanh(found[-1]))
                x = found[-1] if known(found[-1].shape) == SHAPE else x
                w = found[-1] if known(found[-1].shape) == weights else w
        graph.outputs = tuple(found)
    return graph, feeds


PAIRED = ("conv_grad_input", "|", "conv_grad_weight")


@pytest.mark.parametrize("order", ["xw", "wx"])
def test_both_gradients_of_a_cotangent_are_paired(order: str) -> None:
    assert names_of(graph_of(order)[0]) == [PAIRED]


def test_what_waits_for_one_of_them_comes_after_both() -> None:
    graph, _ = graph_of("wtx")
    assert names_of(graph) == [("conv_grad_weight", "tanh"), ("conv_grad_input",)]
    graph = Graph()
    with graph.as_default():
        x, g, w = (ops.placeholder(dtype="float32", shape=s) for s in (SHAPE, SHAPE, WEIGHTS))
        by_w = ops.conv_grad_weight(x, g, shape=WEIGHTS, **RULES)
        after = ops.sum(by_w, axes=(0,))
        between = ops.exp(x)
        by_x = ops.conv_grad_input(g, w, shape=SHAPE, **RULES)
        graph.outputs = by_w, after, between, by_x
    assert names_of(graph) == [("exp",), PAIRED, ("sum",)]


@pytest.mark.parametrize("order", ["xtw", "wtx"])
def test_none_is_paired_that_waits_for_the_other(order: str) -> None:
    assert all("|" not in n for n in names_of(graph_of(order)[0]))


def test_others_are_left_alone() -> None:
    assert all("|" not in n for n in names_of(graph_of(groups=1)[0]))
    assert all("|" not in n for n in names_of(graph_of(groups=16)[0]))


@pytest.mark.parametrize("order", ["xw", "wx", "wtx"])
def test_results_are_the_references(order: str) -> None:
    graph, feeds = graph_of(order)
    draw = np.random.default_rng(0)
    arrays = [draw.normal(size=known(v.shape)).astype(np.float32) for v in feeds]
    expected = evaluate(graph, graph.outputs, dict(zip(feeds, arrays, strict=True)))
    actual = Function(graph, graph.outputs, feeds=feeds)(arrays, State())
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-3)

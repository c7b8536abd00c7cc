"""Which groups take over another group's computation because they read the same arrays."""

from __future__ import annotations

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

ROWS, COLUMNS = 1024, 512


def counts_of(graph: Graph) -> list[tuple[str, int]]:
    """The first operation of every group, and how many values the group gives."""
    feeds = tuple(n.name for n in graph.nodes if n.op == "placeholder")
    groups = grouped(Step(graph, feeds, ())).groups
    return [(g.nodes[0].op, len(g.outputs)) for g in groups]


def feed(*shape: int) -> Value:
    return ops.placeholder(dtype="float32", shape=shape)


def check(graph: Graph, feeds: list[Value]) -> None:
    """Compares compiled with interpreted results."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(known(v.shape), np.float32) for v in feeds]
    found = Function(graph, list(graph.outputs), feeds=feeds)(arrays, State())
    wanted = evaluate(graph, graph.outputs, dict(zip(feeds, arrays, strict=True)))
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("first", [True, False])
def test_gelu_again_is_computed_beside_its_gradient(first: bool) -> None:
    graph = Graph()
    with graph.as_default():
        x, g, w = feeds = [feed(ROWS, COLUMNS), feed(ROWS, 64), feed(64, COLUMNS)]
        again = ops.gelu(x) if first else None
        slope = ops.matmul(g, w) * ops.square(ops.erf(x))
        again = ops.gelu(x) if again is None else again
        graph.outputs = slope, ops.matmul(again, g, transpose_x=True)
    assert counts_of(graph) == [("matmul", 2), ("matmul", 1)]
    check(graph, feeds)


def test_a_norms_result_is_computed_beside_its_gradient() -> None:
    graph = Graph()
    with graph.as_default():
        x, g, scale, w = feeds = [
            feed(ROWS, COLUMNS), feed(ROWS, COLUMNS), feed(COLUMNS), feed(ROWS, 32),
        ]  # fmt: skip
        again = x * scale
        product = ops.matmul(again, w, transpose_x=True)
        rest = g - x * ops.sum(g * x, axes=(1,), keepdims=True)
        graph.outputs = product, rest
    assert sorted(counts_of(graph)) == [("matmul", 1), ("multiply", 2)]
    check(graph, feeds)


@pytest.mark.parametrize("waits", [True, False])
def test_what_waits_for_the_other_or_reads_more_stays_alone(waits: bool) -> None:
    graph = Graph()
    with graph.as_default():
        x, g, w, y = feed(ROWS, COLUMNS), feed(ROWS, 64), feed(64, COLUMNS), feed(ROWS, COLUMNS)
        slope = ops.matmul(g, w) * x
        narrow = ops.matmul(slope, w, transpose_y=True)
        graph.outputs = narrow, x + ops.sum(narrow) if waits else ops.exp(x) * y
    assert ("matmul", 2) not in counts_of(graph)
    assert sum(count for _, count in counts_of(graph)) == (4 if waits else 3)


def test_small_arrays_come_from_a_cache() -> None:
    graph = Graph()
    with graph.as_default():
        x, g, w = feed(64, 64), feed(64, 64), feed(64, 64)
        graph.outputs = ops.matmul(g, w) * x, ops.gelu(x)
    assert counts_of(graph) == [("matmul", 1), ("gelu", 1)]

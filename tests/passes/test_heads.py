"""Attention between transposes reads and writes heads in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from weft import ops
from weft.ir.dtype import float32
from weft.ir.graph import Graph
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.declaration.numeric import draw
from weft.ops.indexing.slicing import cut
from weft.passes.composite import expand_composites
from weft.passes.prune import prune
from weft.passes.simplify import simplify
from weft.passes.step import Step
from weft.transform.gradient import gradients
from weft.transform.interpreter import evaluate

HEADS, WIDTH = 2, 16


def _apart(x: Value) -> Value:
    """Heads of a last axis that is split, before their rows."""
    batch, rows, columns = known(x.shape)
    split = ops.reshape(x, shape=(batch, rows, columns // WIDTH, WIDTH))
    return ops.transpose(split, perm=(0, 2, 1, 3))


def _merged(y: Value) -> Value:
    batch, heads, rows, width = known(y.shape)
    return ops.reshape(ops.transpose(y, perm=(0, 2, 1, 3)), shape=(batch, rows, heads * width))


def _of_one(x: Value) -> list[Value]:
    n = HEADS * WIDTH
    q, k, v = (_apart(cut(x, 2, i * n, (i + 1) * n)) for i in range(3))
    return [_merged(ops.attention(q, k, v, causal=True))]


def _of_three(q: Value, k: Value, v: Value) -> list[Value]:
    return [_merged(ops.attention(*map(_apart, (q, k, v))))]


def _step(build: Callable[..., list[Value]], arrays: Sequence[np.ndarray]) -> Step:
    """What `build` gives, and gradients by its inputs."""
    graph = Graph()
    with graph.as_default():
        feeds = [ops.placeholder(dtype=a.dtype, shape=a.shape) for a in arrays]
        found = build(*feeds)
        slopes = gradients([ops.sum(ops.exp(found[0]))], feeds)
        graph.outputs = (*found, *[x for x in slopes if isinstance(x, Value)])
    return expand_composites(Step(graph, tuple(v.node.name for v in feeds), ()))


def _values(step: Step, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    feeds = {step.graph.find(n).outputs[0]: a for n, a in zip(step.feeds, arrays, strict=True)}
    return list(evaluate(step.graph, step.graph.outputs, feeds))


@pytest.mark.parametrize(
    ("build", "lengths", "moves"),
    [
        (_of_one, [5], ["transpose"] * 2),
        (_of_three, [5, 5, 5], ["slice"] * 3 + ["transpose"] * 2),
        (_of_three, [5, 7, 7], ["transpose"] * 8),  # queries are not as many as keys
    ],
)
def test_heads_stay_where_they_are(
    build: Callable[..., list[Value]], lengths: list[int], moves: list[str]
) -> None:
    width = HEADS * WIDTH * (3 if len(lengths) == 1 else 1)
    arrays = [draw((2, n, width), float32, seed=i) for i, n in enumerate(lengths)]
    before = _step(build, arrays)
    after = prune(simplify(before))
    names = [node.op for node in after.graph.nodes]
    assert "head_attention" in names and "flash_attention" not in names
    # Two transposes are left in what weights share, a sum that reads through them.
    large = [n.op for n in after.graph.nodes if len(known(n.types[0].shape)) == 4]
    assert sorted(op for op in large if op in ("slice", "transpose", "concatenate")) == moves
    for found, expected in zip(_values(after, arrays), _values(before, arrays), strict=True):
        np.testing.assert_array_equal(found, expected)

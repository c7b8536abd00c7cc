"""Both gradients of a depthwise convolution in one kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import check_group

from weft import config, ops
from weft.codegen import target as targets
from weft.codegen.lower import lower
from weft.ir.dtype import as_dtype
from weft.ir.graph import Graph
from weft.ir.node import Value
from weft.ir.shape import known
from weft.passes.group import Group
from weft.passes.pipeline import grouped
from weft.passes.step import Step

Case = tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]
ONE = {"strides": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1)}
SHAPES: dict[str, Case] = {
    "plain": ((3, 14, 14, 64), (3, 3), ONE),
    "strided": ((2, 28, 28, 32), (3, 3), ONE | {"strides": (2, 2)}),
    "odd": ((2, 11, 13, 37), (3, 3), ONE),
    "odd and strided": ((1, 17, 23, 40), (3, 3), ONE | {"strides": (2, 2)}),
    "5x4": ((1, 16, 19, 48), (5, 4), ONE | {"padding": ((2, 2), (1, 2))}),
    "far apart": ((1, 12, 15, 48), (3, 3), ONE | {"dilation": (2, 3), "padding": ((2, 2), (3, 3))}),
    "nothing around": ((1, 18, 18, 48), (3, 3), ONE | {"padding": ((0, 0), (0, 0))}),
    "holes": ((2, 9, 12, 32), (1, 1), ONE | {"strides": (2, 2), "padding": ((0, 0), (0, 0))}),
    "a line": ((2, 61, 40), (5,), {"strides": (1,), "padding": ((2, 2),), "dilation": (1,)}),
    "long lines": ((1, 3, 403, 48), (3, 3), ONE),
}


def array(*shape: int) -> Value:
    return ops.placeholder(dtype=as_dtype("float32"), shape=shape)


def gradients_of(case: str, normed: bool) -> list[Group]:
    """The groups of both gradients, between batch norms if wanted."""
    shape, taps, attrs = SHAPES[case]
    channels = shape[-1]
    weights = (*taps, 1, channels)
    rules = attrs | {"groups": channels}
    graph = Graph()
    with graph.as_default():
        raw, w = array(*shape), array(*weights)
        image = Graph()
        with image.as_default():
            y = known(ops.conv(array(*shape), array(*weights), **rules).shape)
        g, passed = array(*y), array(*y)
        row, mean, factor = array(channels), array(channels), array(channels)
        x = raw
        if normed:
            x = ops.relu((raw - mean) * factor + row)
            g = (g - row - (passed - mean) * factor) * factor
        by_x = ops.conv_grad_input(g, w, shape=shape, **rules)
        by_w = ops.conv_grad_weight(x, g, shape=weights, **rules)
        graph.outputs = by_x, w - by_w * 0.5
        if normed:
            by_x = ops.select(ops.greater(x, 0.0), by_x, 0.0)
            axes = tuple(range(len(shape) - 1))
            sums = ops.sum(by_x, axes=axes), ops.sum(by_x * (raw - mean), axes=axes)
            graph.outputs = by_x, by_w, *sums
    names = [n.name for n in graph.nodes if n.op == "placeholder"]
    return list(grouped(Step(graph, tuple(names), ())).groups)


@pytest.mark.parametrize("normed", [False, True])
@pytest.mark.parametrize("case", SHAPES)
def test_both_gradients_are_the_references(case: str, normed: bool) -> None:
    groups = gradients_of(case, normed)
    group = next(g for g in groups if g.beside is not None)
    assert len(group.products) == 2
    if normed and case == "plain":
        assert groups == [group] and len(group.before) > 5
    rng = np.random.default_rng(7)
    feeds = {v: rng.uniform(-1, 1, known(v.shape)).astype(np.float32) for v in group.inputs}
    for name in ("native", "x86-64-v2", "x86-64-v3"):
        with config.override(target=name):
            target = targets.current()
        check_group(group, lower(group, target), feeds, target, 1e-4, 1e-3)

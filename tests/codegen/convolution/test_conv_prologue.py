"""Operands that are computed while a convolution or its gradient reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from families import TARGETS
from harness import check_group

from weft import config, ops
from weft.codegen import target as targets
from weft.codegen.convolution import conv as family
from weft.ir.dtype import as_dtype
from weft.ir.graph import Graph
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.declaration import Array
from weft.passes.group import Group

Case = tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]
PLAIN: dict[str, Any] = {
    "strides": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1), "groups": 1,
}  # fmt: skip
SHAPES: dict[str, Case] = {
    "1x1": ((3, 9, 9, 40), (1, 1, 40, 96), {}),
    "odd": ((1, 11, 5, 37), (1, 1, 37, 131), {}),
    "strided": ((2, 9, 8, 48), (1, 1, 48, 64), {"strides": (2, 2)}),
    "beside": ((2, 5, 5, 48), (1, 1, 48, 64), {"padding": ((1, 0), (0, 2))}),
    "many channels": ((1, 6, 6, 1300), (1, 1, 1300, 200), {}),
    "3x3": ((1, 9, 9, 40), (3, 3, 40, 48), {"padding": ((1, 1), (1, 1)), "strides": (2, 2)}),
    "squares": ((2, 30, 30, 40), (3, 3, 40, 48), {"padding": ((1, 1), (1, 1))}),
    "depthwise": ((1, 9, 9, 40), (3, 3, 1, 40), {"groups": 40}),
    "planes": ((2, 37, 41, 3), (3, 3, 3, 32), {"padding": ((0, 1), (1, 1)), "strides": (2, 2)}),
    "few planes": ((1, 5, 70, 2), (1, 3, 2, 40), {"padding": ((0, 0), (1, 0))}),
    "a plane's end": ((3, 9, 16, 4), (2, 2, 4, 16), {}),
    "to few columns": ((2, 8, 33, 3), (3, 3, 3, 2), {}),
    "few columns": ((2, 9, 9, 64), (1, 1, 64, 2), {}),
}


def array(*shape: int) -> Value:
    return ops.placeholder(dtype=as_dtype("float32"), shape=shape)


def normalized(shape: tuple[int, ...]) -> Value:
    """Batch norm and ReLU of an array."""
    raw = array(*shape)
    mean, factor, offset = array(shape[-1]), array(1, 1, 1, shape[-1]), array(shape[-1])
    return ops.relu((raw - mean) * factor + offset) * 0.5 + 0.25


def moved(shape: tuple[int, ...]) -> Value:
    """An image whose channels lie in planes."""
    return ops.transpose(array(*shape[:1], shape[-1], *shape[1:-1]), perm=(0, 2, 3, 1))


def fused(
    kind: str, case: str, made_of: Callable[[tuple[int, ...]], Value] = normalized
) -> tuple[Group, dict[Value, Array]]:
    """A product that reads what, most often, batch norm and ReLU make of an array."""
    x, w, attrs = SHAPES[case]
    rules = PLAIN | attrs
    graph = Graph()
    with graph.as_default():
        y = known(ops.conv(array(*x), array(*w), **rules).shape)
        first = len(graph.nodes)
        made = made_of(x)
        before = [n for n in graph.nodes[first:] if n.op != "placeholder"]
        if kind == "conv":
            result = ops.conv(made, array(*w), **rules)
        else:
            result = ops.conv_grad_weight(made, array(*y), shape=w, **rules)
        tail = result * 2.0
    order = (result.node, tail.node.inputs[1].node, tail.node)
    inside = {*before, *order}
    inputs = dict.fromkeys(v for n in (*before, *order) for v in n.inputs if v.node not in inside)
    group = Group(order, tuple(inputs), (tail,), tuple(before))
    rng = np.random.default_rng(5)
    feeds = {v: rng.uniform(-1, 1, known(v.shape)).astype(np.float32) for v in group.inputs}
    return group, feeds


@pytest.mark.parametrize("kind", ["conv", "conv_grad_weight"])
@pytest.mark.parametrize("case", SHAPES)
def test_an_operand_is_computed_as_it_is_read(case: str, kind: str) -> None:
    group, feeds = fused(kind, case)
    for name in TARGETS:
        with config.override(target=name):
            target = targets.current()
        launches = getattr(family, kind)(group, target)
        if case in ("1x1", "odd", "beside", "many channels"):
            passes = [x for x in launches if x.kernel.name.startswith("subtract")]
            assert not passes
        # Sums reach 25, and Winograd errs relative to its terms.
        check_group(group, launches, feeds, target, 1e-4, 5e-4)


@pytest.mark.parametrize(
    "case", ["planes", "few planes", "a plane's end", "squares", "to few columns"]
)
def test_planes_are_put_side_by_side(case: str) -> None:
    group, feeds = fused("conv", case, moved)
    for name in ("native", "x86-64-v2", "x86-64-v3"):
        with config.override(target=name):
            target = targets.current()
        launches = family.conv(group, target)
        apart = any(x.kernel.name.startswith("transpose") for x in launches)
        assert apart == (case == "squares") or case == "to few columns"
        check_group(group, launches, feeds, target, 1e-4, 5e-4)


@pytest.mark.parametrize("kind", ["conv", "conv_grad_input"])
@pytest.mark.parametrize("case", ["1x1", "odd", "strided", "many channels", "few columns"])
def test_weights_of_one_tap_are_read_as_they_lie(case: str, kind: str) -> None:
    x, w, attrs = SHAPES[case]
    rules = PLAIN | attrs
    with Graph().as_default():
        weights = array(*w[::-1])
        turned = ops.transpose(weights, perm=(2, 3, 1, 0))
        source = array(*x)
        result = ops.conv(source, turned, **rules)
        if kind == "conv_grad_input":
            source = array(*known(result.shape))
            result = ops.conv_grad_input(source, turned, shape=x, **rules)
    group = Group((result.node,), (source, weights), (result,), (turned.node,))
    rng = np.random.default_rng(5)
    feeds = {v: rng.uniform(-1, 1, known(v.shape)).astype(np.float32) for v in group.inputs}
    for name in TARGETS:
        with config.override(target=name):
            target = targets.current()
        launches = getattr(family, kind)(group, target)
        assert not any(x.kernel.name.startswith("transpose") for x in launches)
        check_group(group, launches, feeds, target, 1e-4, 5e-4)


def test_what_an_operand_is_made_of_is_never_written_in_place() -> None:
    group, _ = fused("conv", "1x1")
    for launch in family.conv(group, targets.current()):
        assert launch.inplace == ()

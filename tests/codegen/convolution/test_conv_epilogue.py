"""Elementwise nodes after a convolution or a gradient, computed where the results are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from families import TARGETS
from harness import check_group, execute, group_of
from pairwise import pairwise

from weft import config, ops
from weft.codegen import target as targets
from weft.codegen.convolution import conv as family
from weft.ir.dtype import as_dtype
from weft.ir.graph import Graph
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.convolution.convolution import conv_geometry
from weft.ops.declaration import Array
from weft.passes.group import Group
from weft.passes.launch import Launch

SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "3x3": ((2, 14, 13, 20), (3, 3, 20, 40), {"padding": "same"}),
    "strided": ((2, 15, 15, 18), (3, 3, 18, 33), {"strides": (2, 2), "padding": "same"}),
    "1x1": ((3, 9, 9, 16), (1, 1, 16, 48), {}),
    "small image": ((5, 5, 5, 8), (3, 3, 8, 16), {}),
    "depthwise": ((2, 9, 9, 21), (3, 3, 1, 21), {"padding": "same", "groups": 21}),
    "squares": ((2, 30, 30, 40), (3, 3, 40, 48), {"padding": "same"}),
    "many channels": ((1, 6, 6, 900), (3, 3, 900, 20), {"strides": (2, 2), "padding": "same"}),
    "few columns": ((2, 9, 9, 20), (3, 3, 20, 2), {"padding": "same"}),
    "lines": ((2, 9, 9, 32), (3, 3, 32, 48), {"strides": (2, 2), "padding": "same"}),
    "depthwise lines": ((2, 9, 9, 32), (3, 3, 1, 32), {"padding": "same", "groups": 32}),
    "parts of lines": ((2, 9, 9, 16), (3, 3, 8, 80), {"groups": 2}),
    "volume": ((1, 5, 6, 7, 3), (2, 3, 2, 3, 18), {}),
}
Tail = Callable[[Value, Value, Value], tuple[Value, ...]]


def relu(y: Value, bias: Value, other: Value) -> tuple[Value, ...]:
    return (ops.maximum(y + bias, 0.0),)


def residual(y: Value, bias: Value, other: Value) -> tuple[Value, ...]:
    return (ops.tanh(y * bias + other),)


def momentum(y: Value, bias: Value, other: Value) -> tuple[Value, ...]:
    velocity = other * 0.5 + y
    return velocity, bias - velocity * 0.25


def leaky(y: Value, bias: Value, other: Value) -> tuple[Value, ...]:
    """Of what a gradient wants: which were above zero is kept as bytes."""
    above = ops.greater(y, 0.0)
    return above, ops.select(above, y, y * 0.25 - 1.0)


def fused(kind: str, case: str, tail: Tail, dtype: str) -> tuple[Group, dict[Value, Array]]:
    """A convolution or gradient with a tail as one group, and its inputs."""
    x, w, attrs = SHAPES[case]
    rules: dict[str, Any] = {
        "strides": None, "padding": None, "dilation": None, "groups": 1, **attrs,
    }  # fmt: skip
    geometry = conv_geometry(x, w, **rules)
    rules |= {
        "strides": geometry.strides, "padding": geometry.padding, "dilation": geometry.dilation,
    }  # fmt: skip
    graph = Graph()
    with graph.as_default():
        sizes = (x, w, (x[0], *(int(n or 0) for n in geometry.output), w[-1]))
        a, b, g = (ops.placeholder(dtype=as_dtype(dtype), shape=s) for s in sizes)
        if kind == "conv":
            y = ops.conv(a, b, **rules)
        elif kind == "conv_grad_input":
            y = ops.conv_grad_input(g, b, shape=x, **rules)
        else:
            y = ops.conv_grad_weight(a, g, shape=w, **rules)
        bias = ops.placeholder(dtype=as_dtype(dtype), shape=known(y.shape)[-1:])
        other = ops.placeholder(dtype=as_dtype(dtype), shape=y.shape)
        outputs = tail(y, bias, other)
    group = group_of(graph, outputs)
    nodes = sorted(group.nodes, key=lambda node: node.op != kind)
    rng = np.random.default_rng(3)
    feeds = {v: rng.uniform(-1, 1, known(v.shape)).astype(v.dtype.numpy) for v in group.inputs}
    return Group(tuple(nodes), group.inputs, outputs), feeds


Checked = tuple[Group, tuple[Launch, ...], dict[Value, np.ndarray], targets.Target]


def agreeing(case: str, kind: str, tail: Tail, single: float, more: float) -> Iterator[Checked]:
    """The kernels of each target, compared with the reference: float32 to `single`."""
    dtype = {"1x1": "float64", "small image": "bfloat16"}.get(case, "float32")
    group, feeds = fused(kind, case, tail, dtype)
    tolerance = {"float64": 1e-12, "float32": single, "bfloat16": 0.06}[dtype]
    for name in TARGETS:
        with config.override(target=name):
            target = targets.current()
        launches = getattr(family, kind)(group, target)
        check_group(group, launches, feeds, target, tolerance, more * tolerance)
        yield group, launches, feeds, target


KINDS = ("conv", "conv_grad_input", "conv_grad_weight")


@pytest.mark.parametrize(
    ("case", "kind", "tail"), pairwise(SHAPES, KINDS, (relu, residual, momentum, leaky))
)
def test_tail(case: str, kind: str, tail: Tail) -> None:
    for group, launches, feeds, target in agreeing(case, kind, tail, 3e-5, 4):
        found = execute(launches, feeds, target)
        shared = execute(launches, feeds, target, seed=1, inplace=True)
        for value in group.outputs:
            assert found[value].tobytes() == shared[value].tobytes(), "in place"


@pytest.mark.parametrize("tail", [relu, momentum])
@pytest.mark.parametrize("kind", ["conv", "conv_grad_input"])
@pytest.mark.parametrize("case", ["lines", "depthwise lines"])
def test_past_the_caches_are_the_same_bits(case: str, kind: str, tail: Tail) -> None:
    target = targets.current()
    group, feeds = fused(kind, case, tail, "float32")
    past = getattr(family, kind)(group, replace(target, past_caches=1))
    through = getattr(family, kind)(group, replace(target, past_caches=0))
    assert any("!nontemporal" in launch.kernel.ir for launch in past)
    assert not any("!nontemporal" in launch.kernel.ir for launch in through)
    check_group(group, past, feeds, target, 1e-4, 1e-3)  # at addresses within lines, too
    found, expected = execute(past, feeds, target), execute(through, feeds, target)
    for value in group.outputs:
        assert found[value].tobytes() == expected[value].tobytes()


def test_groups_that_begin_within_a_line_do_not_go_past_the_caches() -> None:
    target = replace(targets.current(), past_caches=1)
    group, feeds = fused("conv", "parts of lines", relu, "float32")
    launches = family.conv(group, target)
    assert not any("!nontemporal" in launch.kernel.ir for launch in launches)
    check_group(group, launches, feeds, target, 1e-4, 1e-3)


def test_what_the_convolution_reads_is_never_written_in_place() -> None:
    rules = {"strides": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 1}
    graph = Graph()
    with graph.as_default():
        x = ops.placeholder(dtype=as_dtype("float32"), shape=(1, 8, 8, 16))
        w = ops.placeholder(dtype=as_dtype("float32"), shape=(3, 3, 16, 16))
        y = ops.conv(x, w, **rules) + x
    for launch in family.conv(group_of(graph, (y,)), targets.current()):
        assert launch.inplace == ()

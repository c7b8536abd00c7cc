"""Transposing copies: correct for all shapes and types, and one kernel for many of them."""

from __future__ import annotations

import numpy as np
import pytest
from families import TARGETS, machine
from harness import check_group, group_of

from weft import ops
from weft.codegen.loop.schedule import loops
from weft.ir.dtype import as_dtype
from weft.ir.graph import Graph
from weft.passes.group import Group

SHAPES = [
    ((33, 70), (1, 0)),  # squares, and what remains on either side
    ((3, 3, 24, 36), (3, 2, 0, 1)),  # short rows are written, several to a square
    ((24, 36, 3, 3), (2, 3, 1, 0)),  # short rows are read
    ((2, 65, 3, 80), (3, 0, 2, 1)),  # axes beside the two
    ((5, 7, 9, 11), (3, 1, 2, 0)),
    ((2, 3, 64, 129), (0, 3, 1, 2)),
]


def turned(shape: tuple[int, ...], perm: tuple[int, ...], dtype: str) -> Group:
    graph = Graph()
    with graph.as_default():
        x = ops.placeholder(dtype=as_dtype(dtype), shape=shape)
        y = ops.transpose(x, perm=perm)
    return group_of(graph, [y])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("shape", "perm"), SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "bool"])
def test_every_element_finds_its_place(
    shape: tuple[int, ...], perm: tuple[int, ...], dtype: str, target: str
) -> None:
    group = turned(shape, perm, dtype)
    x = np.random.default_rng(0).integers(-99, 99, shape).astype(dtype)
    where = machine(target)
    check_group(group, loops(group, where), {group.inputs[0]: x}, where)


@pytest.mark.parametrize("target", TARGETS)
def test_one_kernel_for_all_shapes(target: str) -> None:
    kernels = {
        loops(turned(shape, perm, "float32"), machine(target))[0].kernel.ir
        for shape, perm in SHAPES[:4]
    }
    assert len(kernels) == 1

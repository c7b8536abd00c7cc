"""Convolution kernels for many sizes: the bits of kernels for one size, close to the references."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from families import TARGETS, machine
from harness import Array
from many_sizes import Many

from weft.ir.dtype import as_dtype
from weft.ops.convolution.convolution import conv_geometry

Sizes = tuple[int, int, int, int, int]
"""Images, height, width, channels in and out of a group."""


@dataclass(frozen=True)
class Kind:
    """What kernels for many sizes have in common, and sizes of which the first are planned."""

    taps: tuple[int, int]
    sizes: Sequence[Sizes]
    strides: tuple[int, int] = (1, 1)
    padding: tuple[tuple[int, int], tuple[int, int]] = ((0, 0), (0, 0))
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    dtype: str = "float32"

    def form(self, op: str, n: int, h: int, w: int, depth: int, columns: int) -> Any:
        """Shapes of the inputs, and attributes."""
        attrs = {
            "strides": self.strides, "padding": self.padding, "dilation": self.dilation,
            "groups": self.groups,
        }  # fmt: skip
        if op == "conv_grad_input":
            depth, columns = columns, depth
        x, weights = (n, h, w, depth * self.groups), (*self.taps, depth, columns * self.groups)
        y = (n, *conv_geometry(x, weights, **attrs).output, columns * self.groups)
        if op == "conv":
            return (x, weights), attrs
        if op == "conv_grad_input":
            return (y, weights), {**attrs, "shape": x}
        return (x, y), {**attrs, "shape": weights}


OPS = ("conv", "conv_grad_input", "conv_grad_weight")
SAME = ((1, 1), (1, 1))
WIDE = [(8, 24, 28, 64, 64), (9, 16, 16, 28, 128), (5, 30, 42, 24, 192), (2, 50, 56, 100, 64)]
NARROW = [(9, 24, 28, 11, 20), (9, 34, 42, 15, 30), (4, 66, 56, 23, 23)]
DEEP = [(4, 24, 28, 240, 64), (9, 16, 14, 252, 128), (3, 20, 56, 332, 64)]
ALONE = [(8, 24, 28, 1, 1), (3, 46, 42, 1, 1), (9, 16, 56, 1, 1)]
KINDS = {
    "pointwise": Kind((1, 1), [(8, 14, 14, 64, 64), (1, 43, 37, 24, 128), (9, 13, 15, 132, 192)]),
    "pointwise, strided": Kind((1, 1), [(8, 24, 28, 64, 64), (9, 30, 24, 36, 128)], (2, 2)),
    "strided": Kind((3, 3), WIDE, (2, 2), SAME),
    "strided, columns masked": Kind((3, 3), NARROW, (2, 2), SAME),
    "slices of channels": Kind((3, 3), DEEP, (2, 2), SAME),
    "scattered": Kind(
        (3, 3), [(9, 2, 2, 64, 64), (4, 3, 2, 40, 128), (1, 7, 5, 12, 192)], (1, 1), SAME
    ),
    "dilated": Kind((3, 2), WIDE[:2], (1, 2), ((2, 2), (0, 1)), (2, 1)),
    "grouped": Kind((3, 3), NARROW, (1, 1), SAME, groups=3),
    "depthwise": Kind((3, 3), ALONE, (1, 1), SAME, groups=52),
    "depthwise, strided": Kind((3, 3), ALONE, (2, 2), SAME, groups=72),
    "half": Kind((3, 3), WIDE, (2, 2), SAME, dtype="bfloat16"),
    "few columns": Kind((3, 3), [(8, 14, 14, 16, 3), (2, 33, 28, 16, 3)], (1, 1), SAME),
    "by squares": Kind((3, 3), [(8, 28, 28, 64, 64), (9, 23, 30, 128, 192)], (1, 1), SAME),
}


def arrays(shapes: Sequence[tuple[int, ...]], dtype: str) -> list[Array]:
    rng = np.random.default_rng(3)
    return [rng.uniform(-1, 1, shape).astype(as_dtype(dtype).numpy) for shape in shapes]


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", OPS)
def test_one_kernel_serves_all_sizes(op: str, kind: str, name: str) -> None:
    case = KINDS[kind]
    many = Many(op, lambda *n: case.form(op, *n), case.sizes[0], machine(name), case.dtype)
    others = case.sizes[1:]
    for sizes in (case.sizes[0], others[OPS.index(op) % len(others)]):
        shapes, _ = case.form(op, *sizes)
        many.check(sizes, arrays(shapes, case.dtype), 2e-5)

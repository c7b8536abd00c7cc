"""Convolutions and their gradients, compiled, against the NumPy references."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import guarded
import numpy as np
import pytest
from families import TARGETS
from guarded import Guarded, run
from harness import Array, references
from hypothesis import given
from hypothesis import strategies as st
from strategies import at_most

from weft import config, ops
from weft.codegen import target as targets
from weft.codegen.convolution import conv as family
from weft.errors import ShapeError
from weft.ir.dtype import as_dtype
from weft.ir.graph import Graph
from weft.ir.node import Value
from weft.ops.convolution.convolution import conv_geometry
from weft.passes.group import Group
from weft.passes.launch import Launch

KINDS = ("conv", "conv_grad_input", "conv_grad_weight")
DTYPES = ("float32", "float64", "float16", "bfloat16")
TOLERANCE = {"float32": 2e-6, "float64": 1e-14, "float16": 2e-3, "bfloat16": 1.6e-2}


@dataclass(frozen=True)
class Example:
    """A convolution: shapes of x and w, and attributes."""

    x: tuple[int, ...]
    w: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    padding: Any = None
    dilation: tuple[int, ...] | None = None
    groups: int = 1
    dtype: str = "float32"

    def attrs(self) -> dict[str, Any]:
        return {
            "strides": self.strides, "padding": self.padding, "dilation": self.dilation,
            "groups": self.groups,
        }  # fmt: skip

    def build(self, kind: str) -> tuple[Group, dict[Value, Array]]:
        """A group of the one node, and what to feed."""
        geometry = conv_geometry(self.x, self.w, **self.attrs())
        attrs = {
            "strides": geometry.strides, "padding": geometry.padding,
            "dilation": geometry.dilation, "groups": self.groups,
        }  # fmt: skip
        rng = np.random.default_rng(7)
        numpy = as_dtype(self.dtype).numpy
        x, w, g = (
            rng.uniform(-1, 1, shape).astype(numpy)
            for shape in (self.x, self.w, (self.x[0], *geometry.output, self.w[-1]))
        )
        arrays, more = {
            "conv": ((x, w), {}),
            "conv_grad_input": ((g, w), {"shape": self.x}),
            "conv_grad_weight": ((x, g), {"shape": self.w}),
        }[kind]
        graph = Graph()
        with graph.as_default():
            inputs = [ops.placeholder(dtype=as_dtype(a.dtype), shape=a.shape) for a in arrays]
            node = getattr(ops, kind)(*inputs, **attrs, **more).node
        group = Group((node,), node.data_inputs, node.outputs)
        return group, dict(zip(inputs, arrays, strict=True))


def lowered(group: Group, target: targets.Target) -> tuple[Launch, ...]:
    return getattr(family, group.nodes[0].op)(group, target)


def bound(group: Group, feeds: dict[Value, Array]) -> float:
    """The largest sum of magnitudes: what rounding errors are proportional to."""
    sizes = {value: np.abs(array.astype(np.float64)) for value, array in feeds.items()}
    return references(group, sizes)[group.outputs[0]].max(initial=0) + 1


def check(example: Example, kind: str, name: str) -> None:
    """The compiled result equals the reference, and does not depend on the order of chunks."""
    group, feeds = example.build(kind)
    (out,) = group.outputs
    with config.override(target=name):
        target = targets.current()
    launches = lowered(group, target)
    expected = references(group, feeds)[out]
    if not launches:
        assert expected.size == 0
        return
    found = run(launches, feeds, out, target)
    error = np.abs(found.astype(np.float64) - expected.astype(np.float64)).max(initial=0)
    assert error <= bound(group, feeds) * TOLERANCE[example.dtype], (example, kind, error)
    for seed in (1, 2):
        again = run(launches, feeds, out, target, seed)
        assert again.tobytes() == found.tobytes(), "the result depends on the order of the chunks"


@st.composite
def examples(draw: st.DrawFn) -> Example:
    rank = draw(st.integers(1, 3))
    longest = (40, 12, 6)[rank - 1]

    def each(low: int, high: int) -> tuple[int, ...]:
        return tuple(draw(st.integers(low, high)) for _ in range(rank))

    groups = draw(st.sampled_from([1, 1, 1, 2, 3, 5]))
    channels = draw(st.sampled_from([1, 1, 2, 3, 4, 8, 17]))
    columns = draw(st.sampled_from([1, 1, 2, 3, 4, 16, 17, 33]))
    pairs = tuple(zip(each(0, 5), each(0, 5), strict=True))
    return Example(
        (draw(st.integers(0, 3)), *each(1, longest), channels * groups),
        (*each(1, 4), channels, columns * groups),
        each(1, 4), draw(st.sampled_from([pairs, "same", None])), each(1, 3), groups,
        draw(st.sampled_from(DTYPES)),
    )  # fmt: skip


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("kind", KINDS)
def test_drawn(kind: str, name: str) -> None:
    @at_most(25)
    @given(examples())
    def drawn(example: Example) -> None:
        try:
            example.build(kind)
        except ShapeError:
            return
        check(example, kind, name)

    drawn()


CASES = {
    "3x3": Example((2, 14, 14, 20), (3, 3, 20, 40), padding="same"),
    "3x3 one block a row": Example((1, 30, 37, 16), (3, 3, 16, 16), padding="same"),
    "1x1": Example((2, 9, 9, 30), (1, 1, 30, 70)),
    "1x1 strided": Example((2, 9, 9, 30), (1, 1, 30, 40), strides=(2, 2)),
    "1x1 strided, many channels": Example((2, 7, 7, 600), (1, 1, 600, 70), strides=(2, 2)),
    "first layer": Example((2, 31, 31, 3), (7, 7, 3, 24), strides=(2, 2), padding="same"),
    "digits": Example((5, 28, 28, 1), (5, 5, 1, 16), padding="same"),
    "digits, second layer": Example((4, 12, 12, 16), (3, 3, 16, 32)),
    "7x7 image": Example((3, 7, 7, 33), (3, 3, 33, 48), padding="same"),
    "strided 3x3": Example((2, 15, 15, 18), (3, 3, 18, 36), strides=(2, 2), padding="same"),
    "patches": Example((2, 16, 16, 3), (8, 8, 3, 20), strides=(8, 8)),
    "stride beyond the kernel": Example((1, 11, 11, 4), (2, 2, 4, 5), strides=(4, 3)),
    "dilated": Example((1, 17, 16, 6), (3, 3, 6, 20), dilation=(2, 3), padding="same"),
    "dilated and strided": Example((1, 17, 16, 6), (3, 4, 6, 7), (2, 3), ((3, 1), (5, 7)), (3, 2)),
    "padding beyond the kernel": Example((1, 4, 5, 3), (2, 3, 3, 4), padding=((5, 3), (0, 7))),
    "no tap met": Example((1, 1, 1, 2), (2, 1, 2, 3), (2, 1), "same", (2, 1)),
    "no channels": Example((1, 3, 3, 0), (2, 2, 0, 3)),
    "to one channel": Example((2, 9, 21, 40), (3, 3, 40, 1), padding="same"),
    "to three channels": Example((1, 12, 13, 33), (5, 3, 33, 3), dilation=(1, 2), padding="same"),
    "to two in groups": Example((2, 6, 7, 48), (3, 3, 16, 6), padding="same", groups=3),
    "strided, from one channel": Example((2, 13, 13, 1), (5, 5, 1, 24), (2, 3), "same"),
    "depthwise": Example((2, 10, 11, 37), (3, 3, 1, 37), padding="same", groups=37),
    "depthwise strided": Example((1, 12, 9, 16), (3, 3, 1, 16), (2, 2), "same", None, 16),
    "depthwise, lines of two phases": Example(
        (2, 24, 39, 20), (3, 3, 1, 20), (2, 2), ((0, 1), (1, 0)), None, 20
    ),
    "depthwise, phases without taps": Example(
        (1, 11, 20, 16), (1, 2, 1, 16), (2, 3), None, None, 16
    ),
    "depthwise, nine phases": Example((1, 14, 40, 16), (3, 3, 1, 16), (3, 3), "same", None, 16),
    "depthwise, phases of dilated taps": Example(
        (1, 20, 30, 16), (3, 3, 1, 16), (1, 2), "same", (2, 3), 16
    ),
    "depthwise, positions a power of two apart": Example(
        (2, 5, 6, 256), (3, 3, 1, 256), padding="same", groups=256
    ),
    "depthwise, positions in one set": Example(
        (1, 4, 3, 1024), (3, 3, 1, 1024), padding="same", groups=1024
    ),
    "depthwise, three each": Example((1, 8, 8, 6), (3, 3, 1, 18), padding="same", groups=6),
    "depthwise, 5x5": Example((1, 3, 2, 20), (5, 5, 1, 20), padding="same", groups=20),
    "depthwise, wide padding": Example(
        (2, 4, 9, 16), (3, 2, 1, 16), (1, 2), ((4, 3), (2, 5)), None, 16
    ),
    "depthwise, dilated": Example((1, 9, 8, 16), (3, 3, 1, 16), (1, 1), "same", (2, 1), 16),
    "depthwise volume": Example((1, 3, 4, 5, 8), (3, 3, 3, 1, 8), padding="same", groups=8),
    "grouped": Example((2, 9, 9, 24), (3, 3, 6, 80), padding="same", groups=4),
    "long row": Example((1, 3000, 4), (5, 4, 8), padding="same"),
    "volume": Example((1, 6, 7, 8, 5), (3, 3, 3, 5, 9), padding="same"),
    "wide": Example((1, 5, 5, 64), (3, 3, 64, 160), padding="same"),
    "slices of channels": Example((2, 4, 5, 470), (3, 3, 470, 130), padding="same"),
    "slices, strided": Example((2, 7, 7, 40), (2, 3, 40, 350), (2, 2), "same"),
    "slices, 1x1": Example((1, 3, 7, 1100), (1, 1, 1100, 65)),
    "panels before": Example((2, 9, 9, 160), (1, 1, 160, 272)),
    "panels before, strided": Example((2, 15, 15, 130), (1, 1, 130, 270), (2, 2)),
    "no images": Example((0, 5, 5, 32), (1, 1, 32, 64)),
    "many images": Example((70, 4, 4, 8), (3, 3, 8, 8), padding="same"),
    "large": Example((3, 40, 40, 24), (3, 3, 24, 24), padding="same"),
}  # fmt: skip


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", CASES)
def test_case(case: str, kind: str, name: str) -> None:
    check(CASES[case], kind, name)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_dtype(dtype: str, kind: str) -> None:
    for case in ("3x3", "strided 3x3", "grouped", "depthwise", "1x1"):
        check(replace(CASES[case], dtype=dtype), kind, "native")


def test_checker_sees_a_wrong_result() -> None:
    group, feeds = CASES["3x3"].build("conv")
    (out,) = group.outputs
    weights = group.inputs[1]
    wrong = {**feeds, weights: feeds[weights][::-1]}  # taps upside down
    found = run(lowered(group, targets.current()), wrong, out, targets.current())
    error = np.abs(found - references(group, feeds)[out]).max()
    assert error > 100 * bound(group, feeds) * TOLERANCE["float32"]


def test_guards_see_writes_before_and_accesses_after() -> None:
    memory = Guarded(100)
    ctypes.memset(memory.address - 1, 0, 1)
    with pytest.raises(AssertionError, match="before its buffer"):
        memory.check()
    code = "import ctypes, guarded; m = guarded.Guarded(100); ctypes.string_at(m.address, 101)"
    folder = Path(guarded.__file__).parent
    found = subprocess.run([sys.executable, "-c", code], cwd=folder, check=False)
    assert found.returncode == -signal.SIGSEGV

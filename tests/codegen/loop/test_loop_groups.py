"""Fused groups through the loop generator: random shapes, types and targets against NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from families import TARGETS, machine
from harness import Array, check_group, group_of
from hypothesis import given
from hypothesis import strategies as st
from strategies import at_most, broadcastable, dims, shapes

from weft import ops
from weft.codegen.loop.schedule import loops
from weft.ir import dtype as types
from weft.ir.dtype import DType
from weft.ir.graph import Graph

Build = Callable[..., Any]
SOME = at_most(12)


def run(
    build: Build,
    shapes: Sequence[tuple[int, ...]],
    dtype: DType = types.float32,
    rtol: float = 1e-5,
) -> None:
    """Lower `build(*placeholders)` as one group and compare with the references."""
    rng = np.random.default_rng(len(shapes) + sum(map(sum, shapes)))
    graph = Graph()
    with graph.as_default():
        xs = [ops.placeholder(dtype=dtype, shape=s) for s in shapes]
        ys = build(*xs)
    outputs = list(ys) if isinstance(ys, tuple) else [ys]
    group = group_of(graph, outputs)
    arrays = {x: draw(rng, s, dtype) for x, s in zip(xs, shapes, strict=True)}
    elements = max([int(np.prod(s)) for s in shapes], default=1)
    half = dtype.is_floating and dtype.size == 2  # the references round after every operation
    atol = 0.06 if half else 1e-6 * (2 + elements**0.5)
    for name in TARGETS:
        target = machine(name)
        check_group(group, loops(group, target), arrays, target, rtol, atol)


def draw(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    if dtype.is_floating:
        return np.asarray(rng.standard_normal(shape)).astype(dtype.numpy)
    return np.asarray(rng.integers(0, 2 if dtype.kind == "b" else 90, shape)).astype(dtype.numpy)


DTYPES = st.sampled_from(list(types.DTYPES.values()))
NUMBERS = st.sampled_from([d for d in types.DTYPES.values() if d.kind != "b"])


@SOME
@given(broadcastable(3, max_rank=4, max_size=3000), NUMBERS)
def test_broadcasting_chain(operands: tuple[tuple[int, ...], ...], dtype: DType) -> None:
    def build(x: Any, y: Any, z: Any) -> Any:
        full = x * y + z
        return ops.maximum(full, y) - z, full

    run(build, operands, dtype)


@SOME
@given(shapes(max_rank=4, max_size=3000), DTYPES, st.randoms())
def test_transposes(shape: tuple[int, ...], dtype: DType, random: Any) -> None:
    perm = list(range(len(shape)))
    random.shuffle(perm)
    run(lambda x: ops.transpose(x, perm=tuple(perm)), [shape], dtype)


@SOME
@given(dims(1, 200), dims(1, 200), NUMBERS)
def test_transpose_and_add(rows: int, columns: int, dtype: DType) -> None:
    def build(x: Any, y: Any) -> Any:
        return ops.transpose(x, perm=(1, 0)) + y

    run(build, [(rows, columns), (columns, rows)], dtype)


@SOME
@given(st.integers(2, 7), dims(1, 40), dims(1, 80), NUMBERS)
def test_transpose_to_a_short_last_axis(taps: int, channels: int, rows: int, dtype: DType) -> None:
    """As an optimizer reads a gradient by weights: taps outermost there, innermost here."""

    def build(g: Any, old: Any) -> Any:
        new = old + ops.transpose(g, perm=(3, 2, 0, 1))
        return new, new + old

    shape = (rows, channels, taps, taps)
    run(build, [(taps, taps, channels, rows), shape], dtype)


@SOME
@given(shapes(1, 4, max_size=5000), NUMBERS, st.data())
def test_reductions(shape: tuple[int, ...], dtype: DType, data: Any) -> None:
    axes = tuple(a for a in range(len(shape)) if data.draw(st.booleans()))
    keep = data.draw(st.booleans())

    def build(x: Any) -> Any:
        total = ops.sum(x, axes=axes, keepdims=keep)
        if any(shape[a] == 0 for a in axes):
            return total + total
        return total, ops.max(x, axes=axes, keepdims=keep) - total

    run(build, [shape], dtype, 1e-4)


@SOME
@given(dims(1, 40), dims(1, 300), st.sampled_from(("float32", "float64", "float16")))
def test_softmax(rows: int, columns: int, dtype: str) -> None:
    run(softmax, [(rows, columns)], types.DTYPES[dtype])


def softmax(x: Any) -> Any:
    shifted = x - ops.max(x, axes=(-1,), keepdims=True)
    e = ops.exp(shifted)
    return e / ops.sum(e, axes=(-1,), keepdims=True)


@SOME
@given(dims(1, 20), dims(1, 200))
def test_layer_norm(rows: int, columns: int) -> None:
    def build(x: Any, scale: Any, shift: Any) -> Any:
        mean = ops.sum(x, axes=(1,), keepdims=True) * (1.0 / columns)
        centered = x - mean
        variance = ops.sum(centered * centered, axes=(1,), keepdims=True) * (1.0 / columns)
        return centered * ops.rsqrt(variance + 1e-5) * scale + shift, mean, variance

    run(build, [(rows, columns), (columns,), (columns,)], rtol=1e-4)


@SOME
@given(st.lists(dims(0, 60), min_size=1, max_size=5), dims(1, 30), st.integers(0, 1))
def test_concatenate(sizes: list[int], other: int, axis: int) -> None:
    parts = [(n, other) if axis == 0 else (other, n) for n in sizes]
    run(lambda *xs: ops.concatenate(*xs, axis=axis) * 2, parts)


@SOME
@given(st.sampled_from(((), (1,), (63,), (64,), (65,), (7, 64), (3, 100), (2, 3, 192))))
def test_random_numbers_in_a_group(shape: tuple[int, ...]) -> None:
    graph = Graph()
    with graph.as_default():
        counter = ops.placeholder(dtype=types.uint64, shape=())
        x = ops.placeholder(dtype=types.float32, shape=shape)
        bits = ops.random_bits(counter, seed=(3, 4), shape=shape)
        y = ops.cast(bits, dtype=types.float32) * x
    group = group_of(graph, [bits, y])
    arrays = {counter: np.array(2**33 + 5, np.uint64), x: np.ones(shape, np.float32)}
    for name in TARGETS:
        check_group(group, loops(group, machine(name)), arrays, machine(name))


LARGE: list[tuple[str, Build, list[tuple[int, ...]]]] = [
    ("flat", lambda x, y: (x * y, x - y), [(70_001,), (70_001,)]),
    ("all", lambda x: ops.sum(x, axes=None), [(300_007,)]),
    ("all of rows", lambda x: ops.max(ops.abs(x), axes=None), [(601, 503)]),
    ("few rows", lambda x: ops.sum(x, axes=(1,)), [(3, 100_003)]),
    ("columns", lambda x: ops.sum(x, axes=(0,)), [(4001, 33)]),
    ("wide columns", lambda x: ops.sum(x * x, axes=(0,)) * 2.0, [(300, 600)]),
    ("outer and inner", lambda x: ops.sum(x, axes=(0, 2)), [(60, 5, 700)]),
    ("middle", lambda x: ops.sum(x, axes=(1,)), [(3, 3000, 20)]),
    ("full at once", lambda x: (x + 1.0, ops.sum(x, axes=None)), [(200_003,)]),
    ("two levels", lambda x: softmax(x), [(2, 90_001)]),
    ("long rows", lambda x, y: x + y, [(3, 70_001), (70_001,)]),
    ("scratch row", lambda x: softmax(x), [(20, 3001)]),
    ("short rows", lambda x: ops.sum(x, axes=(1,)), [(3000, 3)]),
]


@pytest.mark.parametrize(("build", "operands"), [c[1:] for c in LARGE], ids=[c[0] for c in LARGE])
def test_large(build: Build, operands: list[tuple[int, ...]]) -> None:
    run(build, operands, rtol=1e-4)


@pytest.mark.parametrize("dtype", [types.bool_, types.uint8, types.int16, types.float16])
@pytest.mark.parametrize("tail", [1, 2, 3])
def test_narrow_tails(dtype: DType, tail: int) -> None:
    """A row that ends one to three bytes or words after a whole vector."""
    columns = 64 + tail
    run(lambda x, y: ops.select(ops.equal(x, y), x, y), [(3, columns), (columns,)], dtype)


def test_many_nodes_do_not_recurse() -> None:
    def build(x: Any) -> Any:
        for _ in range(1500):
            x = x + 1.0
        return x

    run(build, [(5,)])

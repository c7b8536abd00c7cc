"""The order of a sum is the documented one, whatever else its kernel computes."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable

import numpy as np
import pytest
from families import TARGETS, group_for, machine
from harness import execute, group_of

from weft import ops
from weft.codegen.loop import order, split
from weft.codegen.lower import lower, written
from weft.codegen.target import Target
from weft.ir.graph import Graph
from weft.ir.node import Value
from weft.ir.shape import known
from weft.passes import pipeline
from weft.runtime.engine import Function, State


def long(x: Value) -> Value:
    """So much arithmetic that a loop is unrolled less."""
    for _ in range(4):
        x = ops.tanh(x) * 1.5 + ops.sigmoid(x)
    return x


def wide(x: Value) -> Value:
    """Arithmetic on wider numbers, of which fewer fit a register."""
    return ops.select(ops.less(ops.cast(x, dtype="int64"), 3), x, x * 0.5)


def sums(x: np.ndarray, beside: Callable[[Value], Value] | None) -> tuple[bytes, int]:
    """The bits of the rows' sums, and how many kernels there are."""
    graph = Graph()
    with graph.as_default():
        v = ops.placeholder(dtype=x.dtype.name, shape=x.shape)
        fetches = [ops.sum(v * 1.25, axes=(1,))]
        if beside is not None:
            fetches.append(ops.sum(beside(v), axes=(1,)))
    function = Function(graph, fetches, feeds=[v], threads=1)
    program = function.program([x], State())
    assert not isinstance(program, str)
    return function([x], State())[0].tobytes(), len(pipeline.grouped(program.step).groups)


@pytest.mark.parametrize("length", [9, 47, 64, 127, 1003])
def test_a_sum_is_the_same_beside_others(length: int) -> None:
    x = np.random.default_rng(length).standard_normal((5, length)).astype(np.float32)
    alone, _ = sums(x, None)
    for beside in (long, wide):
        found, groups = sums(x, beside)
        assert groups == 1  # in one kernel
        assert found == alone


def runs(shape: tuple[int, ...], axes: tuple[int, ...]) -> list[tuple[bool, list[int]]]:
    """Adjacent axes of one kind, reduced or kept, without those of one element."""
    some = [a for a, n in enumerate(shape) if n > 1]
    return [(gone, list(run)) for gone, run in itertools.groupby(some, lambda a: a in axes)]


def in_order(x: np.ndarray, axes: tuple[int, ...], target: Target) -> np.ndarray:
    """The sum in float32, as `weft.codegen.loop.order` says."""
    found = runs(x.shape, axes)
    reduced = [run for gone, run in found if gone]
    if not reduced:
        return x
    kept = [a for a in range(x.ndim) if a not in itertools.chain(*reduced)]
    outer = [a for run in reduced[:-1] for a in run]
    rows, n = found[-1][0], int(np.prod([x.shape[a] for a in reduced[-1]]))
    m = int(np.prod([x.shape[a] for a in outer]))
    values = x.transpose(*kept, *outer, *reduced[-1]).reshape(-1, m, n)
    most = order.ROW if rows else order.COLUMN
    if not outer or n > most:
        parts = [
            values[:, i : i + 1, j : j + most] for i in range(m) for j in range(0, n, most)
        ]  # fmt: skip
    else:
        parts = [values[:, i : i + most // n] for i in range(0, m, most // n)]
    total = np.full(len(values), -0.0, np.float32)
    for part in parts:
        total = total + (row_part(part, target) if rows else column_part(part))
    return total


def column_part(x: np.ndarray) -> np.ndarray:
    return functools.reduce(np.add, x.reshape(len(x), -1).T)


def row_part(x: np.ndarray, target: Target) -> np.ndarray:
    lanes = target.lanes(4)
    w = order.ACCUMULATORS * lanes
    whole = x.shape[2] if target.masked else x.shape[2] // lanes * lanes
    sums, single = np.full((len(x), w), -0.0, np.float32), np.full(len(x), -0.0, np.float32)
    for row in x.transpose(1, 0, 2):
        for start in range(0, whole, w):
            piece = row[:, start : min(start + w, whole)]
            sums[:, : piece.shape[1]] += piece
        for column in row[:, whole:].T:
            single = single + column
    while w > 1:
        w //= 2
        sums = sums[:, :w] + sums[:, w:]
    return sums[:, 0] + single


SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((5, 3), (1,)), ((40, 4), (1,)), ((5, 47), (1,)), ((3, 1003), (1,)), ((70_001,), (0,)),
    ((601, 503), (0, 1)), ((9, 40_000), (1,)), ((5, 3), (0,)), ((700, 33), (0,)), ((1, 7), (0,)),
    ((300, 2000), (0,)), ((6, 5, 70), (0, 2)), ((900, 5, 77), (0, 2)), ((2, 3, 33_000), (0, 2)),
    ((3, 700, 20), (1,)), ((9, 2, 40, 3), (0, 2)), ((2, 3, 300, 5), (0, 2)), ((4, 1, 50), (0, 2)),
    ((7, 9, 1), (0, 2)), ((4, 5, 6, 7), (1, 2)), ((2000, 20), (0, 1)), ((90, 50, 3), (0, 1)),
]  # fmt: skip


def shifted(x: Value) -> Value:
    """Arithmetic that keeps the axes of a sum from being one loop."""
    return x + ops.slice(x, begin=(0,) * len(known(x.shape)), end=(1, *known(x.shape)[1:]))


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("make", [lambda x: x, shifted], ids=["alone", "shifted"])
@pytest.mark.parametrize(("shape", "axes"), SHAPES)
def test_the_order_is_the_documented_one(
    shape: tuple[int, ...], axes: tuple[int, ...], make: Callable[[Value], Value], name: str
) -> None:
    target, rng = machine(name), np.random.default_rng(1)
    x = (rng.standard_normal(shape) * 2.0 ** rng.integers(-9, 3, shape)).astype(np.float32)
    with Graph().as_default() as graph:
        v = ops.placeholder(dtype="float32", shape=shape)
        y = ops.sum(make(v), axes=axes)
    group = group_of(graph, [y])
    found = execute(lower(group, target), {v: x}, target, seed=1)[y]
    expected = in_order(x if make is not shifted else x + x[:1], axes, target)
    assert found.reshape(-1).tobytes() == expected.reshape(-1).tobytes()


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("shape", [(2000, 333), (777, 1030)])
def test_rows_from_memory_are_added_in_the_same_order(
    shape: tuple[int, int], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are read one at a time."""
    target = machine(name)
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    kernels: set[str] = set()
    for far in (1 << 20, 0):
        monkeypatch.setattr(split, "FAR", far)
        group = group_for("sum", [x], {"axes": (0,)})
        launches = written(group, target)
        (found,) = execute(launches, {group.inputs[0]: x}, target, seed=1).values()
        assert found.tobytes() == in_order(x, (0,), target).tobytes()
        kernels.add(launches[0].kernel.ir)
    assert len(kernels) == 2


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("shape", [(3, 1), (3, 2), (3, 17), (40, 3)])
def test_a_sum_of_negative_zeros_is_one(shape: tuple[int, ...], name: str) -> None:
    target = machine(name)
    for axis in (0, 1):
        group = group_for("sum", [x := np.full(shape, -0.0, np.float32)], {"axes": (axis,)})
        (found,) = execute(lower(group, target), {group.inputs[0]: x}, target).values()
        assert np.signbit(found).all()

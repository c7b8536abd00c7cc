"""Whole programs: random graphs and their gradients, compiled against the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawn_graph import Drawing, check, compiled, slopes

from weft import ops
from weft.errors import MismatchError
from weft.ir.dtype import float32, float64
from weft.ir.graph import Graph
from weft.ir.node import Value
from weft.runtime.engine import Function, State
from weft.transform.gradient import gradients


@pytest.mark.parametrize("seed", range(40))
def test_values(seed: int) -> None:
    drawing = Drawing(seed)
    ys = drawing.grow(3 + seed % 12)
    check(drawing, ys, compiled(drawing, ys))


@pytest.mark.parametrize("dtype", [float32, float64])
@pytest.mark.parametrize("seed", range(100, 125))
def test_gradients(seed: int, dtype: Any) -> None:
    drawing = Drawing(seed, dtype)
    ys = slopes(drawing, drawing.grow(3 + seed % 9))
    check(drawing, ys, compiled(drawing, ys))


@pytest.mark.parametrize("seed", range(200, 210))
def test_results_do_not_depend_on_the_number_of_threads(seed: int) -> None:
    drawing = Drawing(seed)
    ys = drawing.grow(8)
    ys = [*ys, *slopes(drawing, ys)]
    one = [np.asarray(y).tobytes() for y in compiled(drawing, ys, threads=1)]
    for threads in (2, 3):
        assert [np.asarray(y).tobytes() for y in compiled(drawing, ys, threads)] == one


def test_large_results_do_not_depend_on_the_number_of_threads() -> None:
    x = np.random.default_rng(0).standard_normal((700, 900)).astype(np.float32)
    graph = Graph()
    with graph.as_default():
        v = ops.placeholder(dtype=float32, shape=x.shape)
        y = ops.softmax(ops.tanh(v) @ ops.transpose(v, perm=(1, 0)))
        ys = [y, ops.sum(y, axes=(0,)), ops.mean(v), *gradients([ops.sum(y * y)], [v])]
    results = [
        [np.asarray(y).tobytes() for y in Function(graph, ys, feeds=[v], threads=n)([x], State())]
        for n in (1, 2, 3)
    ]
    assert results[0] == results[1] == results[2]


def test_a_wrong_value_is_noticed() -> None:
    drawing = Drawing(0)
    ys = drawing.grow(5)
    found = compiled(drawing, ys)
    check(drawing, ys, found)
    with pytest.raises(MismatchError):
        check(drawing, ys, [np.asarray(y) * 1.01 + 0.01 for y in found])


def _one_column(x: Any) -> list[Value]:
    return [ops.conv(x, np.ones((3, 3, 3, 1), np.float32), padding="same") * 0.5]


def _kept_and_read_last(x: Any) -> list[Value]:
    part = ops.slice(ops.sigmoid(x), begin=(0, 0, 0, 1), end=(1, 1, 1, 3))
    return [part, -part]


def _row_of_two_passes(x: Any) -> list[Value]:
    row = ops.broadcast_to(ops.reshape(x, shape=(1, 3)), shape=(24, 3))
    row = ops.reshape(row, shape=(1, 72)) * np.arange(72, dtype=np.float32)
    total = ops.tanh(ops.sum(row * row, axes=(1,), keepdims=True))
    return [ops.sum(total - row, axes=(1,))]


@pytest.mark.parametrize("program", [_one_column, _kept_and_read_last, _row_of_two_passes])
def test_what_drawn_graphs_have_found(program: Any) -> None:
    drawing = Drawing(0)
    x = np.arange(3.0, dtype=np.float32).reshape(1, 1, 1, 3)
    with drawing.graph.as_default():
        drawing.feeds[v := ops.placeholder(dtype=float32, shape=x.shape)] = x
        ys = program(v)
    check(drawing, ys, compiled(drawing, ys))

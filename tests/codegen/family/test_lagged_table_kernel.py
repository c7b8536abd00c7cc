"""Kernels of lagged tables: equal bits on any threads, in place, and for any indices."""

import numpy as np
import pytest

from weft import ops
from weft.ir.graph import Graph
from weft.ops.declaration import REGISTRY
from weft.ops.indexing.lagged_table import PERIOD
from weft.runtime.engine import Function, State

ROWS, WIDTH, COUNT = 5000, 70, 3000


def case():
    (*_, last) = REGISTRY["lag_update"].cases()
    rng = np.random.default_rng(5)
    tables = [rng.uniform(0.1, 1, (ROWS, WIDTH)).astype(np.float32) for _ in range(3)]
    seen = rng.integers(-1, 9, ROWS).astype(np.int32)
    indices = (rng.zipf(1.3, COUNT) % ROWS).astype(np.int64)  # a few rows very often
    g = rng.normal(size=(COUNT, WIDTH)).astype(np.float32)
    history = rng.uniform(0.8, 0.99, (PERIOD + 1, 2)).astype(np.float32)
    return (
        {"rule": last.attrs["rule"], "first": 0},
        (indices, g, np.array(9, np.int32), history),
        (seen, *tables),
    )


def run(threads, inputs, start, attrs, steps=3):
    graph = Graph()
    with graph.as_default():
        feeds = [ops.placeholder(dtype=str(a.dtype), shape=a.shape) for a in inputs]
        cells = [
            ops.variable(key=f"v{i}", dtype=str(a.dtype), shape=a.shape)
            for i, a in enumerate(start)
        ]
        indices, g, clock, history = feeds
        last, *tables = (ops.read(cell) for cell in cells)
        found = REGISTRY["lag_update"].all(indices, g, clock, last, history, *tables, **attrs)
        train = [ops.assign(c, y).node for c, y in zip(cells, found, strict=True)]
    function, state = Function(graph, [], train, feeds, threads=threads), State()
    for i, a in enumerate(start):
        state[f"v{i}"] = a
    for step in range(steps):
        now = np.array(int(inputs[2]) + step, np.int32)
        function([*inputs[:2], now, inputs[3]], state)
    program = function.program(list(inputs), state)
    return [state[f"v{i}"] for i in range(len(start))], program


def test_same_bits_on_any_number_of_threads():
    attrs, inputs, start = case()
    one, _ = run(1, inputs, start, attrs)
    two, _ = run(2, inputs, start, attrs)
    for x, y in zip(one, two, strict=True):
        np.testing.assert_array_equal(x, y)


def test_updates_are_in_place():
    attrs, inputs, start = case()
    _, program = run(2, inputs, start, attrs)
    assert program.arena.size < start[1].nbytes
    assert not any(p.launch.kernel.name == "copy" for p in program.blueprint.calls)


def test_steps_follow_each_other_as_the_reference_says():
    attrs, (indices, g, clock, history), start = case()
    found, _ = run(2, (indices, g, clock, history), start, attrs)
    expected = start
    for step in range(3):
        now = np.array(int(clock) + step, np.int32)
        seen, *tables = expected
        reference = REGISTRY["lag_update"].reference
        expected = reference(indices, g, now, seen, history, *tables, **attrs)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("first", [0, 3, 5])
def test_columns_of_a_wider_gradient_are_read_in_place(first):
    attrs, (indices, _, clock, history), start = case()
    wide = np.random.default_rng(2).normal(size=(COUNT, WIDTH + 5)).astype(np.float32)
    graph = Graph()
    with graph.as_default():
        arrays = (indices, wide, clock, history, *start)
        feeds = [ops.placeholder(dtype=str(a.dtype), shape=a.shape) for a in arrays]
        g = ops.slice(feeds[1], begin=(0, first), end=(COUNT, first + WIDTH))
        found = REGISTRY["lag_update"].all(
            feeds[0], g, feeds[2], feeds[4], feeds[3], *feeds[5:], **attrs
        )
    function, state = Function(graph, list(found), feeds=feeds), State()
    given = list(arrays)
    results = function(given, state)
    kernels = [p.launch.kernel.name for p in function.program(given, state).blueprint.calls]
    assert not any("slice" in name for name in kernels)
    g = wide[:, first : first + WIDTH]
    reference = REGISTRY["lag_update"].reference
    expected = reference(indices, g, clock, start[0], history, *start[1:], **attrs)
    for x, y in zip(results, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("axis", [0, 1])
def test_only_rows_that_are_looked_up_are_computed(axis):
    attrs, (_, _, clock, history), (seen, *tables) = case()
    rule = attrs["rule"]
    graph = Graph()
    with graph.as_default():
        values = [
            ops.placeholder(dtype=str(a.dtype), shape=a.shape)
            for a in (tables[0], clock, seen, history, *tables[1:])
        ]
        rows = ops.iota(shape=(ROWS,))
        whole = REGISTRY["lag_gather"](values[0], rows, *values[1:], rule=rule)
        wanted = ops.placeholder(dtype="int64", shape=(4,))
        y = ops.gather(whole, wanted, axis=axis)
    function, state = Function(graph, [y], feeds=[*values, wanted]), State()
    picked = np.array([3, 69, 3, 0])
    arrays = [tables[0], clock, seen, history, *tables[1:], picked]
    (found,) = function(arrays, state)
    reference = REGISTRY["lag_gather"].reference
    full = reference(
        tables[0], np.arange(ROWS), clock, seen, history, *tables[1:], rule=rule, output=0
    )
    np.testing.assert_allclose(found, np.take(full, picked, axis), rtol=1e-5)
    assert (function.program(arrays, state).arena.size < tables[0].nbytes) == (axis == 0)

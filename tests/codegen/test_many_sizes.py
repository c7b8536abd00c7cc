"""Kernels for many sizes give the bits of kernels for one size, at all sizes that they admit."""

from __future__ import annotations

import numpy as np
import pytest
from families import TARGETS
from problems import Problem, check, drawn

from weft.ir.dtype import bfloat16, bool_, float16, float32, float64, int8, int32, int64, uint8
from weft.ops.declaration import REGISTRY
from weft.ops.indexing.lagged_table import PERIOD

LENGTHS = (1000, 1, 2, 3, 8, 16, 17, 33, 64, 65, 257)
LONG = 70001
DTYPES = [float32, float64, float16, bfloat16, int64, int32, int8, uint8, bool_]
FLOATS = [float32, float64, float16, bfloat16]
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)


def _around(most=LONG):
    """Sizes of an array of three dimensions: the middle one and the last one vary most."""
    return [
        *[(3, n, 1) for n in LENGTHS], *[(2, 9, n) for n in LENGTHS],
        (5, 64, 100), (64, 3, 17), (1, 1, 1), (2, most, 1), (1, 2, most), (most, 2, 1),
        (0, 3, 2), (3, 2, 0),
    ]  # fmt: skip


def _cube(dtype):
    return lambda a, b, c: [(dtype, (a, b, c))]


@pytest.mark.parametrize("op", ["argmax", "argmin"])
@each_dtype
def test_argreduce(op, dtype):
    check(Problem(op, _cube(dtype), lambda *_: {"axis": 1}), _around(), 8)


def test_argreduce_of_another_instruction_set():
    check(Problem("argmax", _cube(float32), lambda *_: {"axis": 1}), _around(), 8, TARGETS)


SUMS = [(op, d) for op in ("cumsum", "cumprod", "cummax") for d in DTYPES if d is not bool_]


@pytest.mark.parametrize(("op", "dtype"), SUMS)
def test_cumulative(op, dtype):
    problem = Problem(op, _cube(dtype), lambda *_: {"axis": 1}, rtol=1e-5, atol=1e-5)
    check(problem, _around(LONG if op == "cumsum" else 1021), 6)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
def test_cumulative_of_another_instruction_set(reverse, exclusive):
    attrs = {"axis": 1, "reverse": reverse, "exclusive": exclusive}
    problem = Problem("cumsum", _cube(float32), lambda *_: attrs, rtol=1e-5, atol=1e-5)
    check(problem, _around(1021), 6, TARGETS)


@pytest.mark.parametrize("descending", [False, True])
@each_dtype
def test_sort(dtype, descending):
    attrs = {"axis": 1, "descending": descending}
    check(Problem("sort", _cube(dtype), lambda *_: attrs), _around(), 4)


@each_dtype
def test_top_k(dtype):
    problem = Problem("top_k", lambda a, n, _: [(dtype, (a, n))], lambda _, n, k: {"k": k})
    sizes = [(3, n, min(n, k)) for n in LENGTHS for k in (1, 5, 32, 33, 100)]
    check(problem, [*sizes, (1, LONG, 5), (2, LONG, 1000), (0, 5, 2), (3, 5, 0)], 5)


@each_dtype
def test_check(dtype):
    problem = Problem(
        "check",
        lambda n: [(dtype, (n,)), (int32, ())],
        lambda _: {"text": "wrong"},
        lambda n: [np.ones(n, dtype.numpy), np.zeros((), np.int32)],
    )
    check(problem, [(n,) for n in (*LENGTHS, LONG, 0)], 2)


def _places(rows, count, dtype=np.int64):
    """Places below `rows`, with repetitions."""
    return (np.arange(count) * 7919 % 1009 % max(1, rows)).astype(dtype)


ROWS = [
    *[(9, n, 5) for n in LENGTHS], *[(n, 4, 11) for n in LENGTHS], *[(13, 1, n) for n in LENGTHS],
    (1500, 100, 7), (30000, 3, 50), (700, 1000, 30), (50, LONG, 3), (LONG, 1, LONG), (3, 0, 2),
    (3, 5, 0), (600, 64, 3), (600, 256, 3), (600, 255, 3),
]  # fmt: skip


@each_dtype
def test_gather(dtype):
    def feeds(rows, width, count):
        return [drawn(dtype, (rows, width)), _places(rows, count)]

    def types(rows, width, count):
        return [(dtype, (rows, width)), (int64, (count,))]

    check(Problem("gather", types, lambda *_: {"axis": 0}, feeds), ROWS, 3)


@pytest.mark.parametrize(
    ("op", "dtype"),
    [("scatter_add", d) for d in DTYPES if d is not bool_]
    + [("scatter_set", bfloat16), ("scatter_max", float32), ("scatter_multiply", float16)],
)
def test_scatter(op, dtype):
    def feeds(rows, width, count):
        return [drawn(dtype, (rows, width)), _places(rows, count), drawn(dtype, (count, width))]

    def types(rows, width, count):
        return [(dtype, (rows, width)), (int64, (count,)), (dtype, (count, width))]

    check(Problem(op, types, lambda *_: {}, feeds), ROWS, 7)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
def test_column_moments(dtype, name):
    def feeds(rows, columns):
        x = np.random.default_rng(rows).normal(size=(rows, columns)) * 3 + 20
        return [x.astype(dtype.numpy)]

    problem = Problem(
        "column_moments", lambda *shape: [(dtype, shape)], feeds=feeds, rtol=2e-5, atol=2e-5
    )
    sizes = [(n, 9) for n in LENGTHS] + [(5, n) for n in LENGTHS] + [(LONG, 1), (3, LONG)]
    check(problem, [*sizes, (1021, 257), (257, 1021), (5, 0), (0, 1)], 2, (name,))


LAGGED = [
    *[(9, n, 12) for n in LENGTHS], *[(n, 5, 12) for n in LENGTHS],
    *[(300, 33, n) for n in LENGTHS],
    (LONG, 2, 1000), (5, 3, 0),
]  # fmt: skip


def _lagged(op, **attrs):
    """A problem with tables that lag behind: one step in each row at most has a gradient."""
    (*_, case) = REGISTRY[op].cases()
    is_update = op == "lag_update"

    def feeds(rows, width, count):
        rng = np.random.default_rng(rows)
        p, m, v = (rng.uniform(0.1, 1, (rows, width)).astype(np.float32) for _ in range(3))
        last = rng.integers(-1, 6, rows).astype(np.int32)
        history = rng.uniform(0.8, 0.99, (PERIOD + 1, 2)).astype(np.float32)
        g = rng.uniform(-1, 1, (count, width + 3)).astype(np.float32)
        given = [_places(rows, count), np.array(6, np.int32), last, history]
        return [given[0], g, *given[1:], p, m, v] if is_update else [p, *given, m, v]

    def types(rows, width, count):
        table = (float32, (rows, width))
        given = [(int64, (count,)), (int32, ()), (int32, (rows,)), (float32, (PERIOD + 1, 2))]
        if is_update:
            return [given[0], (float32, (count, width + 3)), *given[1:], *[table] * 3]
        return [table, *given, table, table]

    return Problem(op, types, lambda *_: {**case.attrs, **attrs}, feeds, 1e-5, 1e-5)


@pytest.mark.parametrize("name", TARGETS)
def test_lag_gather(name):
    check(_lagged("lag_gather", output=0), LAGGED, 6, (name,))


@pytest.mark.parametrize("name", TARGETS)
def test_lag_update(name):
    check(_lagged("lag_update", first=2), LAGGED, 5, (name,))

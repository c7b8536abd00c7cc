"""Kernels for compressed sparse rows of many sizes give the bits of kernels for one size."""

from __future__ import annotations

import numpy as np
import pytest
from families import TARGETS
from problems import Problem, check

from weft.ir.dtype import bfloat16, float16, float32, float64, int32, int64, uint8
from weft.ops.declaration import REGISTRY, Opaque

LENGTHS = (100, 1, 2, 3, 8, 15, 16, 17, 33, 64, 65)
MANY = 140_000  # positions of some blocks of a counting sort
SEGMENTS = [
    name for name, op in REGISTRY.items()
    if isinstance(op.lower, Opaque) and op.lower.family == "segment"
]  # fmt: skip

# Rows, entries, columns (heads and depth), rows that are named.
SHAPES = [
    *[(9, 40, 1, n, 6) for n in LENGTHS], *[(n, 40, 1, 5, 6) for n in LENGTHS],
    *[(9, n, 3, 4, 6) for n in LENGTHS], *[(5, 9, n, 3, n) for n in LENGTHS],
    (300, MANY, 1, 3, 50), (5, 0, 1, 3, 4), (40_000, 200, 2, 1, 7),
]  # fmt: skip


def _rows(rows, entries):
    """Where rows begin: some are empty, the first one is long."""
    starts = np.sort(np.arange(max(0, rows - 1)) * 7919 % (entries + 1))
    return np.concatenate(([0], starts, [entries])).astype(np.int32)


def _named(entries, rows):
    return (np.arange(entries) * 7919 % 1009 % max(1, rows)).astype(np.int32)


def _numbers(dtype, shape):
    return np.random.default_rng(sum(shape)).integers(-8, 9, shape).astype(dtype.numpy)


@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize(
    ("op", "dtype"),
    [("segment_sum", d) for d in (float32, float64, float16, bfloat16, int64, uint8)]
    + [(op, float32) for op in SEGMENTS if op != "segment_sum"],
)
def test_segments(op, dtype, in_order):
    def feeds(rows, entries, heads, depth, source):
        if not in_order:
            return [_numbers(dtype, (entries, heads * depth)), _rows(rows, entries)]
        x = _numbers(dtype, (source, heads * depth))
        return [x, _rows(rows, entries), _named(entries, source)]

    def types(rows, entries, heads, depth, source):
        if not in_order:
            return [(dtype, (entries, heads * depth)), (int32, (rows + 1,))]
        x = (dtype, (source, heads * depth))
        return [x, (int32, (rows + 1,)), (int32, (entries,))]

    check(Problem(op, types, lambda *_: {"spare": False}, feeds), SHAPES, 6)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("dtype", [float32, float64, float16, bfloat16], ids=lambda d: d.name)
@pytest.mark.parametrize("op", ["csr_matmul", "csr_sampled_matmul"])
def test_products(op, dtype, name):
    def feeds(rows, entries, heads, depth, source):
        x = _numbers(dtype, (source, heads, depth))
        other = (rows, heads, depth) if op == "csr_sampled_matmul" else (entries, heads)
        return [_rows(rows, entries), _named(entries, source), _numbers(dtype, other), x]

    def types(rows, entries, heads, depth, source):
        other = (rows, heads, depth) if op == "csr_sampled_matmul" else (entries, heads)
        kinds = (int32, (rows + 1,)), (int32, (entries,))
        return [*kinds, (dtype, other), (dtype, (source, heads, depth))]

    check(Problem(op, types, lambda *_: {"heads": 1}, feeds), SHAPES, 8, (name,))


IDS = [
    *[(n, 9) for n in LENGTHS], *[(40, n) for n in LENGTHS], (MANY, 100), (MANY, 70_001), (0, 5),
    (100, 40_000),
]  # fmt: skip


@pytest.mark.parametrize("spare", [False, True])
def test_order(spare):
    problem = Problem(
        "csr_order", lambda count, _: [(int32, (count,))],
        lambda _, size: {"size": size + spare, "spare": spare},
        lambda count, size: [_named(count, size + spare) - spare],
    )  # fmt: skip
    check(problem, IDS, 1)


@pytest.mark.parametrize("dtype", [int32, int64], ids=lambda d: d.name)
def test_row_pointers(dtype):
    def feeds(count, size):
        return [np.sort(_named(count, size)).astype(dtype.numpy)]

    types, attrs = lambda count, _: [(dtype, (count,))], lambda _, size: {"size": size}
    check(Problem("csr_indptr", types, attrs, feeds), IDS, 2)


def test_row_numbers():
    problem = Problem(
        "csr_rows", lambda _, rows: [(int32, (rows + 1,))], lambda entries, _: {"size": entries},
        lambda entries, rows: [_rows(rows, entries)],
    )  # fmt: skip
    check(problem, IDS, 2)

"""Kernels of many sizes that move elements give what kernels of one size give."""

from __future__ import annotations

import numpy as np
import pytest
from problems import Problem, check, drawn

from weft.ir.dtype import bfloat16, bool_, float32, float64, int32, int64, uint64

LENGTHS = (100, 2, 3, 8, 17, 64, 257)
LONG = 70001
SQUARES = [
    *[(n, 9) for n in LENGTHS], *[(12, n) for n in LENGTHS], (LONG, 3), (3, LONG), (1021, 257),
]  # fmt: skip
CUBES = [
    *[(n, 3, 5) for n in LENGTHS], *[(4, n, 6) for n in LENGTHS], *[(4, 5, n) for n in LENGTHS],
    (LONG, 2, 3), (2, LONG, 3), (2, 3, LONG), (8, 64, 64), (16, 8, 100),
]  # fmt: skip
MOST = 9


def _of(op, attrs, dtype=float32):
    return Problem(op, lambda *shape: [(dtype, shape)], attrs)


MOVES = {
    "transpose": (SQUARES, lambda *_: {"perm": (1, 0)}),
    "swap_last": (CUBES, lambda *_: {"perm": (0, 2, 1)}),
    "swap_first": (CUBES, lambda *_: {"perm": (1, 0, 2)}),
    "rotate": (CUBES, lambda *_: {"perm": (2, 0, 1)}),
    "reverse": (CUBES, lambda *_: {"perm": (2, 1, 0)}),
}


@pytest.mark.parametrize("dtype", [float32, bfloat16, float64], ids=lambda d: d.name)
@pytest.mark.parametrize("name", MOVES)
def test_transpose(name, dtype):
    sizes, attrs = MOVES[name]
    check(_of("transpose", attrs, dtype), sizes, MOST)


PULLS = {
    "flip_last": ("flip", SQUARES, lambda *_: {"axes": (1,)}),
    "flip_both": ("flip", SQUARES, lambda *_: {"axes": (0, 1)}),
    "pad": ("pad", SQUARES, lambda *_: {"paddings": ((1, 2), (3, 1))}),
    "pad_rows": ("pad", SQUARES, lambda *_: {"paddings": ((0, 2), (0, 0))}),
    "pad_by_sizes": ("pad", SQUARES, lambda n, m: {"paddings": ((0, n), (m, 0))}),
    "slice": ("slice", SQUARES, lambda n, m: {"begin": (1, 1), "end": (n, m)}),
    "slice_to": ("slice", SQUARES, lambda n, m: {"begin": (0, 0), "end": (n - 1, m - 1)}),
    "slice_half": ("slice", SQUARES, lambda n, m: {"begin": (0, m // 2), "end": (n, m)}),
    "rows": ("slice", SQUARES, lambda n, m: {"begin": (n // 2, 0), "end": (n, m)}),
    "strided": ("slice", SQUARES, lambda n, m: {
        "begin": (0, 0), "end": (n, m), "strides": (1, 2)}),
    "strided_rows": ("slice", SQUARES, lambda n, m: {
        "begin": (1, 0), "end": (n, m), "strides": (3, 1)}),
    "backwards": ("slice", SQUARES, lambda n, m: {
        "begin": (n - 1, m - 1), "end": (0, 0), "strides": (-1, -2)}),
    "unslice": ("unslice", SQUARES, lambda n, m: {
        "shape": (n + 2, 2 * m), "begin": (1, 0), "end": (n + 1, 2 * m), "strides": (1, 2)}),
    "roll": ("roll", SQUARES, lambda *_: {"shifts": (1, 2), "axes": (0, 1)}),
    "tile": ("tile", SQUARES, lambda *_: {"reps": (2, 3)}),
    "broadcast": ("broadcast_to", SQUARES, lambda n, m: {"shape": (4, n, m)}),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [float32, bool_], ids=lambda d: d.name)
@pytest.mark.parametrize("name", PULLS)
def test_pulls(name, dtype):
    op, sizes, attrs = PULLS[name]
    check(_of(op, attrs, dtype), sizes, MOST)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", [float32, bool_], ids=lambda d: d.name)
def test_concatenate(axis, dtype):
    def types(n, m):
        shapes = ((n, m), (n + 3, m), (1, m)) if axis == 0 else ((n, m), (n, 2), (n, m + 1))
        return [(dtype, shape) for shape in shapes]

    check(Problem("concatenate", types, lambda *_: {"axis": axis}), SQUARES, MOST)


UPDATES = {
    "rows": lambda n, m: ((n, m), (n - 1, 0), (n, m)),
    "columns": lambda n, m: ((n, m), (0, m // 2), (n, m)),
    "inside": lambda n, m: ((n + 2, m + 2), (1, 1), (n + 1, m + 1)),
}


@pytest.mark.parametrize("name", UPDATES)
def test_updates_of_slices(name):
    def types(n, m):
        shape, begin, end = UPDATES[name](n, m)
        update = tuple(e - b for b, e in zip(begin, end, strict=True))
        return [(float32, shape), (float32, update)]

    def attrs(n, m):
        _, begin, end = UPDATES[name](n, m)
        return {"begin": begin, "end": end, "strides": (1, 1)}

    check(Problem("slice_update", types, attrs), SQUARES, MOST)


@pytest.mark.parametrize("op", ["dynamic_slice", "dynamic_update_slice"])
def test_slices_at_computed_positions(op):
    def types(n, m):
        part = (float32, (n, 3))
        update = [part] if op == "dynamic_update_slice" else []
        return [(float32, (n + 5, m + 3)), *update, (int32, (2,))]

    def feeds(n, m):
        *arrays, _ = [drawn(d, s) for d, s in types(n, m)]
        return [*arrays, np.array([2, m // 2], np.int32)]

    def attrs(n, m):
        return {} if op == "dynamic_update_slice" else {"sizes": (n, 3)}

    check(Problem(op, types, attrs, feeds), SQUARES, MOST)


@pytest.mark.parametrize("dtype", [float32, int64, int32], ids=lambda d: d.name)
@pytest.mark.parametrize("axis", [0, 1])
def test_iota(axis, dtype):
    def attrs(n, m):
        return {"shape": (n, m), "axis": axis, "dtype": dtype}

    check(Problem("iota", lambda *_: [], attrs), SQUARES, MOST)


def test_select():
    def types(n, m):
        return [(bool_, (n, 1)), (float32, (n, m)), (float32, (m,))]

    check(Problem("select", types), SQUARES, MOST)


def test_random_bits():
    def attrs(n, m):
        return {"shape": (n, m), "seed": (7, 9)}

    check(Problem("random_bits", lambda *_: [(uint64, ())], attrs), SQUARES, MOST)

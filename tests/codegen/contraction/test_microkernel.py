"""The microkernel: tiles, strides and depths against NumPy."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from families import TARGETS, machine
from harness import Array, function

from weft.codegen import llvm
from weft.codegen.builder import kernel_builder
from weft.codegen.microkernel import (
    UNROLL,
    Address,
    Left,
    Right,
    Tile,
    embedded,
    first_lanes,
    largest_tile,
    max_rows,
    microkernel,
    strided,
)
from weft.codegen.target import Target
from weft.ir import dtype as types
from weft.ir.dtype import DType

A = np.arange(4096, dtype=np.float64) % 31 - 15
B = np.arange(8192, dtype=np.float64) % 29 - 14


def run(
    target: Target, tile: Tile, depth: int, form: str, row: int = 40, step: int = 1, c: int = 0
) -> Array:
    """The tile's sums; `form` says how the left operand's rows and the depth are given."""
    size = tile.dtype.size
    b = kernel_builder()
    x, y, out = b.argument(0), b.argument(1), b.argument(2)
    if form == "pointers":
        places = tuple(Address(b.offset(x, r * row * size)) for r in range(tile.rows))
        left = Left(places, b.argument(5, "i64"))
    else:
        stride = b.argument(4, "i64") if form == "registers" else row * size
        left = strided(b, x, stride, tile.rows, step * size)
    steps = depth if form == "constants" else b.argument(3, "i64")
    start = [[b.load(tile.type, b.offset(out, 0), size)] * tile.vectors] * tile.rows if c else None
    width = tile.columns * size
    mask = first_lanes(b, b.argument(6, "i64"), tile.lanes)
    masks = (None,) * (tile.vectors - 1) + (mask,)
    sums = microkernel(b, tile, left, Right(y, width, masks), steps, start)
    for r, values in enumerate(sums):
        for v, value in enumerate(values):
            b.store(value, b.offset(out, (r * tile.vectors + v) * tile.lanes * size), size)
    a, other = A.astype(tile.dtype.numpy), B.astype(tile.dtype.numpy)
    found = np.full((tile.rows, tile.columns), float(c), tile.dtype.numpy)
    slots = (ctypes.c_int64 * 7)(
        a.ctypes.data, other.ctypes.data, found.ctypes.data, depth, row * size, step * size,
        tile.lanes - 1,
    )  # fmt: skip
    function(b.module(), target)(slots, 0, 1, 0)
    return found


def expected(tile: Tile, depth: int, row: int, step: int, c: int) -> Array:
    size = A.itemsize
    x = np.lib.stride_tricks.as_strided(A, (tile.rows, depth), (row * size, step * size))
    y = B[: depth * tile.columns].reshape(depth, tile.columns).copy()
    y[:, -1] = 0  # the last lane is masked out
    return x @ y + c


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("dtype", [types.float32, types.float64], ids=str)
@pytest.mark.parametrize("form", ["constants", "registers", "pointers"])
def test_tiles_strides_and_depths(name: str, dtype: DType, form: str) -> None:
    target = machine(name)
    full = largest_tile(target, dtype)
    for rows, vectors in ((full.rows, full.vectors), (1, 1), (3, 2), (max_rows(target, 1), 1)):
        tile = Tile(rows, vectors, target.lanes(dtype.size), dtype)
        for depth in (0, 1, 4, 7):
            for row, step in ((40, 1), (1, 30)):
                found = run(target, tile, depth, form, row, step, c=3)
                np.testing.assert_array_equal(found, expected(tile, depth, row, step, 3))


def test_tiles_fit_the_registers() -> None:
    wide, narrow = machine("native"), machine("x86-64-v3")
    if wide.registers == 32:
        assert max_rows(wide, 2) == 14
    assert max_rows(narrow, 2) == 6


def test_the_check_can_fail() -> None:
    tile = Tile(2, 1, machine("native").lanes(4), types.float32)
    found = run(machine("native"), tile, 4, "constants")
    assert not np.array_equal(found, expected(tile, 5, 40, 1, 0))


def test_multiply_adds_broadcast_what_loads_have_time_for() -> None:
    f32 = types.float32
    assert embedded(Tile(8, 3, 16, f32)) == [0, 2, 5]  # 18 loads for 24 multiply-adds
    assert len(embedded(Tile(13, 2, 16, f32))) == 4
    assert embedded(Tile(4, 2, 16, f32)) == []  # as many loads as there may be
    assert embedded(Tile(16, 1, 16, f32)) == []  # the compiler does so by itself
    assert embedded(Tile(6, 2, 8, f32)) == embedded(Tile(8, 3, 16, f32, pairs=True)) == []


def test_embedded_rows_are_in_the_code() -> None:
    tile = Tile(8, 3, 16, types.float32)
    b = kernel_builder()
    left = strided(b, b.argument(0), 400, tile.rows, 4)
    for values in microkernel(b, tile, left, Right(b.argument(1), tile.columns * 4), 64):
        for value in values:
            b.store(value, b.argument(2), 4)
    text = llvm.to_assembly(b.module(), "x86-64-v4", "")
    assert text.count("{1to16}, ") == UNROLL * 3 * len(embedded(tile))

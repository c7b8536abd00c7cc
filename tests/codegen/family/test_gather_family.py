"""Gather and scatter kernels against the references, and their errors for bad indices."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from families import TARGETS, check, check_cases, group_for, machine
from harness import Array, Memory, execute, function
from hypothesis import given
from hypothesis import strategies as st
from strategies import at_most

from weft.codegen.family.gather import gather
from weft.codegen.family.scatter import scatter
from weft.codegen.lower import Family
from weft.ir.dtype import DTYPES, as_dtype
from weft.ir.shape import known
from weft.ops.declaration import REGISTRY, Opaque
from weft.passes.launch import ERROR

NUMBERS = [name for name in DTYPES if name != "bool"]
COMBINES = [
    name
    for name, op in REGISTRY.items()
    if isinstance(op.lower, Opaque) and op.lower.family == "scatter"
]
INTEGERS = ["int8", "int32", "int64", "uint8", "uint64"]


@pytest.mark.parametrize("name", TARGETS)
def test_cases_of_the_catalogue(name: str) -> None:
    check_cases(gather, "gather", (name,))
    for op in COMBINES:
        check_cases(scatter, op, (name,))


def some(shape: tuple[int, ...], dtype: str, seed: int) -> Array:
    values = np.random.default_rng(seed).integers(0, 100, shape)
    return values.astype(as_dtype(dtype).numpy)


@at_most(25)
@given(
    lead=st.integers(1, 3),
    outer=st.integers(1, 3),
    size=st.integers(1, 9),
    picked=st.integers(0, 7),
    row=st.sampled_from([0, 1, 2, 3, 5, 16, 33, 100, 300]),
    dtype=st.sampled_from(list(DTYPES)),
    index=st.sampled_from(INTEGERS),
    batch=st.booleans(),
)
def test_any_gather(
    lead: int, outer: int, size: int, picked: int, row: int, dtype: str, index: str, batch: bool
) -> None:
    x = some((lead, outer, size, row), dtype, 0)
    shape = (lead, picked) if batch else (picked, 2)
    indices = (some(shape, "int64", 1) % size).astype(as_dtype(index).numpy)
    check(gather, "gather", (x, indices), {"axis": 2, "batch_dims": int(batch)})


@at_most(25)
@given(
    rows=st.sampled_from([1, 2, 7, 40, 3000]),
    width=st.sampled_from([1, 3, 16, 40, 128, 300, 1000]),
    updates=st.integers(0, 60),
    dtype=st.sampled_from(NUMBERS),
    index=st.sampled_from(INTEGERS),
    op=st.sampled_from(list(COMBINES)),
)
def test_any_scatter(rows: int, width: int, updates: int, dtype: str, index: str, op: str) -> None:
    rows = rows if width < 128 else min(rows, 400)
    x, more = some((rows, width), dtype, 0), some((updates, width), dtype, 1)
    indices = (some((updates,), "int64", 2) % min(rows, 100)).astype(as_dtype(index).numpy)
    check(scatter, op, (x, indices, more), {})


def test_scatter_in_place() -> None:
    x, more = some((50, 40), "float32", 0), some((9, 40), "float32", 1)
    indices = np.array([3, 49, 0, 3, 7, 7, 7, 20, 3], np.int32)
    group = group_for("scatter_add", (x, indices, more), {})
    goal = machine("native")
    inputs = dict(zip(group.inputs, (x, indices, more), strict=True))
    launches = scatter(group, goal)
    assert launches[0].check and not launches[0].writes  # so that an update is whole or not at all
    assert launches[1].inplace and not launches[1].check
    found = execute(launches, inputs, goal, seed=1, inplace=True)[group.outputs[0]]
    np.add.at(x, indices, more)
    np.testing.assert_array_equal(found, x)


def fault(family: Family, op: str, arrays: tuple[Array, ...]) -> tuple[list[int], Array]:
    """The error cell after the kernels ran, and the result."""
    group = group_for(op, arrays, {})
    goal = machine("native")
    memory: dict[Any, Memory] = {v: Memory(a) for v, a in zip(group.inputs, arrays, strict=True)}
    out = group.outputs[0]
    memory[out] = Memory(np.zeros(known(out.shape), out.dtype.numpy))
    memory[ERROR] = Memory(np.zeros(4, np.int64))
    launches = family(group, goal)
    assert launches[0].check
    for launch in launches:
        last = max((i for i, a in enumerate(launch.args) if isinstance(a, int)), default=-1)
        args = [77 if i == last and launch.check else a for i, a in enumerate(launch.args)]
        slots = (ctypes.c_int64 * len(args))(
            *[a if isinstance(a, int) else memory[a].address for a in args]
        )
        function(launch.kernel.ir, goal)(ctypes.addressof(slots), 0, launch.chunks, 0)
    for held in memory.values():
        held.check(op)
    return memory[ERROR].array.tolist(), memory[out].array


@pytest.mark.parametrize("bad", [5, -1, 127, -128])
def test_a_bad_index_is_reported_and_harmless(bad: int) -> None:
    x = np.ones((5, 3), np.float32)
    indices = np.array([1, 0, bad, 4, bad], np.int8)
    cell, y = fault(gather, "gather", (x, indices))
    assert cell == [1, 77, 2, bad]
    assert (y == 1).all()
    cell, y = fault(scatter, "scatter_add", (x, indices, np.ones((5, 3), np.float32)))
    assert cell == [1, 77, 2, bad]
    assert y.sum() == 15 + 9


def test_no_bad_index_leaves_the_cell_free() -> None:
    x = np.ones((5, 3), np.float32)
    cell, _ = fault(gather, "gather", (x, np.array([0, 4], np.int32)))
    assert cell == [0, 0, 0, 0]


def test_an_empty_axis_has_no_good_index() -> None:
    cell, _ = fault(gather, "gather", (np.ones((0, 3), np.float32), np.array([0], np.int32)))
    assert cell == [1, 77, 0, 0]
    arrays = (np.ones((0, 3), np.float32), np.array([0], np.int32), np.ones((1, 3), np.float32))
    cell, _ = fault(scatter, "scatter_add", arrays)
    assert cell == [1, 77, 0, 0]


def test_a_huge_unsigned_index_is_out_of_range() -> None:
    x = np.ones((5, 3), np.float32)
    cell, _ = fault(gather, "gather", (x, np.array([2**63 + 1], np.uint64)))
    assert cell[0] == 1

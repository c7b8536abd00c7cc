"""Epilogues: stored results equal the references of the group's tail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from families import TARGETS, machine
from harness import assert_close, execute, group_of, references

from weft import ops
from weft.codegen.builder import Builder, Reg, kernel_builder
from weft.codegen.loop.convert import loaded, register_type, storage_type
from weft.codegen.loop.epilogue import Epilogue
from weft.codegen.loop.expression import Buffer
from weft.errors import CompileError
from weft.ir import dtype as types
from weft.ir.dtype import DType
from weft.ir.graph import Graph
from weft.ir.node import Value
from weft.ir.shape import known
from weft.passes.group import Group
from weft.passes.launch import Kernel, Launch

ROWS, COLUMNS, LANES = 5, 24, 8
Tail = Callable[[Any, Any, Any], Any]
TAILS: dict[str, Tail] = {
    "nothing": lambda y, bias, r: y,
    "bias": lambda y, bias, r: y + bias,
    "residual": lambda y, bias, r: ops.maximum(y + bias, 0.0) + r,
    "two outputs": lambda y, bias, r: (y * r, y + bias),
}


def stand_in(group: Group, product: Value, view: tuple[int, ...] | None) -> Launch:
    """A kernel that reads the opaque node's result from memory and stores it as a family would."""
    f = kernel_builder()
    epilogue = Epilogue(group, f, view=view)
    source = f.argument(0)
    epilogue.bind({v: f.argument(n) for n, v in enumerate(epilogue.values, 1)})
    dtype = product.dtype
    with f.loop(0, ROWS) as row:
        epilogue.reset()
        for column in range(0, COLUMNS - LANES, LANES):
            value = _load(f, dtype, source, f.add(f.mul(row.index, COLUMNS), column), LANES)
            epilogue.store((row.index, column), value, LANES)
        for column in range(COLUMNS - LANES, COLUMNS):
            value = _load(f, dtype, source, f.add(f.mul(row.index, COLUMNS), column), 1)
            epilogue.store((row.index, column), value)
    args = (product, *epilogue.values)
    writes = tuple(n for n, a in enumerate(args) if a in epilogue.writes and n)
    return Launch(Kernel("stand-in", f.module()), args, writes)


def _load(f: Builder, dtype: DType, source: Reg, at: Reg, lanes: int) -> Reg:
    address = f.offset(source, at, storage_type(dtype))
    return loaded(f, f.load(storage_type(dtype, lanes), address), dtype)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [types.float32, types.float64, types.bfloat16])
@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("batched", [False, True])
def test_tail(tail: str, dtype: DType, target: str, batched: bool) -> None:
    lead = (1, ROWS) if batched else (ROWS,)
    graph = Graph()
    with graph.as_default():
        x = ops.placeholder(dtype=dtype, shape=(*lead, 4))
        w = ops.placeholder(dtype=dtype, shape=(4, COLUMNS))
        bias = ops.placeholder(dtype=dtype, shape=(COLUMNS,))
        r = ops.placeholder(dtype=dtype, shape=(*lead, COLUMNS))
        product = ops.matmul(x, w)
        ys = TAILS[tail](product, bias, r)
    group = group_of(graph, list(ys) if isinstance(ys, tuple) else [ys])
    rng = np.random.default_rng(0)
    arrays = {v: rng.standard_normal(known(v.shape)).astype(dtype.numpy) for v in (x, w, bias, r)}
    expected = references(group, arrays)
    launch = stand_in(group, product, (ROWS, COLUMNS) if batched else None)
    memory = {**arrays, product: expected[product]}
    if tail == "nothing":  # the output would be the input
        launch = Launch(launch.kernel, (x, product), (1,))
        memory = {x: np.resize(expected[product], (*lead, COLUMNS))}
    found = execute([launch], memory, machine(target))
    for value in group.outputs:
        assert_close(found[value], expected[value], 2e-6, 1e-6 if dtype.size > 2 else 3e-2)


def test_what_does_not_change_is_loaded_once() -> None:
    graph = Graph()
    with graph.as_default():
        x = ops.placeholder(dtype=types.float32, shape=(4, 16))
        bias = ops.placeholder(dtype=types.float32, shape=(16,))
        y = ops.matmul(x, ops.placeholder(dtype=types.float32, shape=(16, 16))) + bias
    f = Builder("f", [("ptr", "a"), ("ptr", "b")])
    epilogue = Epilogue(group_of(graph, [y]), f)
    epilogue.bind(dict(zip(epilogue.values, f.params, strict=True)))
    value = Reg(register_type(types.float32, 16), "zeroinitializer")
    for row in range(4):
        epilogue.store((row, 0), value, 16)
    assert f.function().count("load <16 x float>") == 1
    assert f.function().count("store <16 x float>") == 4
    epilogue.reset()
    epilogue.store((0, 0), value, 16)
    assert f.function().count("load <16 x float>") == 2


def test_in_place_only_where_the_same_element_is_read() -> None:
    graph = Graph()
    with graph.as_default():
        x, w, r = (ops.placeholder(dtype=types.float32, shape=(8, 8)) for _ in range(3))
        y = ops.matmul(x, w)
        same = y + r
        turned = y + ops.transpose(r, perm=(1, 0))
    first = group_of(graph, [same])
    assert Epilogue(first, kernel_builder()).inplace == ((same, r),)
    second = group_of(graph, [turned])
    assert Epilogue(second, kernel_builder()).inplace == ()


def test_wrong_register_raises() -> None:
    graph = Graph()
    with graph.as_default():
        x = ops.placeholder(dtype=types.float32, shape=(8, 8))
        y = ops.matmul(x, x)
    f = kernel_builder()
    epilogue = Epilogue(group_of(graph, [y]), f)
    epilogue.bind({y: f.argument(0)})
    with pytest.raises(CompileError, match="epilogue: expected <4 x float>, got double"):
        epilogue.store((0, 0), Reg("double", "%x"), 4)
    assert isinstance(next(iter(epilogue._pointers)), Buffer)

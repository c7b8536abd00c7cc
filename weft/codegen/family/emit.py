"""Code that several kernel families use: rows of a chunk, vectors along a row, checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from weft.codegen.builder import Builder, Reg, integer, vector
from weft.codegen.contraction.emit import fixed, subtract
from weft.codegen.microkernel import first_lanes
from weft.ir.dtype import DType, float32, float64
from weft.ir.extent import pinned
from weft.ir.shape import normal_axis

UNROLL = 4  # vectors at a time: enough to hide latencies, few enough for 16 registers


class Part(NamedTuple):
    """One vector of a row: its first element in the block, and its lanes if not all."""

    first: int
    mask: Reg | None


def compute_dtype(dtype: DType) -> DType:
    """The type of sums of `dtype`: float32 for half precision."""
    return float32 if dtype.size == 2 and dtype.is_floating else dtype


def vector_lanes(dtype: DType, bits: int) -> int:
    """Elements of `dtype` per vector of so many bits, half precision counted as float32."""
    return bits // 8 // compute_dtype(dtype).size


def constant_mask(lanes: int, count: int) -> Reg:
    """A mask of the first `count` lanes."""
    bits = ", ".join(f"i1 {'true' if i < count else 'false'}" for i in range(lanes))
    return Reg(vector("i1", lanes), f"<{bits}>")


def over_vectors(
    f: Builder, count: int, lanes: int, body: Callable[[Reg, Sequence[Part]], None]
) -> None:
    """Calls `body(first, parts)` for blocks of vectors that cover `count` elements of a row."""
    count, block = pinned(count), UNROLL * lanes
    whole = count // block * block
    if whole:
        with f.loop(0, whole, block) as loop:
            body(loop.index, [Part(i * lanes, None) for i in range(UNROLL)])
    rest = count - whole
    parts = [Part(at, None) for at in range(0, rest // lanes * lanes, lanes)]
    if rest % lanes:
        tail = None if lanes == 1 else constant_mask(lanes, rest % lanes)
        parts.append(Part(rest // lanes * lanes, tail))
    if parts:
        body(integer(whole), parts)


def over_channels(
    f: Builder, count: int, lanes: int, body: Callable[[Reg, Sequence[Part]], None]
) -> None:
    """As `over_vectors`, for a count that may differ from run to run."""
    if fixed(integer(count)) is not None:
        over_vectors(f, count, lanes, body)
        return
    block = UNROLL * lanes
    whole = integer(count // block * block)
    with f.loop(0, whole, block) as loop:
        body(loop.index, [Part(i * lanes, None) for i in range(UNROLL)])
    with f.loop(whole, integer(count), lanes) as loop:
        rest = subtract(f, integer(count), loop.index)
        body(loop.index, [Part(0, None if lanes == 1 else first_lanes(f, rest, lanes))])


def sum_type(dtype: DType) -> str:
    """The LLVM type of `compute_dtype` of a floating type."""
    return "double" if dtype is float64 else "float"


def load_index(f: Builder, pointer: Reg, at: Reg, dtype: DType) -> Reg:
    """Loads an index as `i64`; a larger uint64 turns negative, and so out of bounds."""
    narrow = f.load(f"i{dtype.size * 8}", f.offset(pointer, f.mul(at, dtype.size)), dtype.size)
    if dtype.size == 8:
        return narrow
    return f.emit("i64", f"{'sext' if dtype.kind == 'i' else 'zext'} {narrow} to i64")


def check_index(f: Builder, index: Reg, size: int, position: Reg, slot: int) -> Reg:
    """`index`, or 0 after reporting an error if it lies outside [0, size).

    The arguments from `slot` are the error cell and the launch's tag: see `weft.passes.launch`.
    """
    bad = f.compare("icmp uge", index, integer(size))
    with f.when(bad):
        report_fault(f, index, position, slot)
    return f.emit("i64", f"select {bad}, i64 0, {index}")


def report_fault(f: Builder, index: Reg, position: Reg, slot: int) -> None:
    """Writes a bad index to the error cell, if that is free."""
    cell, tag = f.argument(slot), f.argument(slot + 1, "i64")
    text = f"cmpxchg {cell}, i64 0, i64 1 seq_cst seq_cst"
    pair = f.emit("{ i64, i1 }", text)
    won = f.emit("i1", f"extractvalue {pair}, 1")
    with f.when(won):
        for i, value in enumerate((tag, position, index), start=1):
            f.store(value, f.offset(cell, i, "i64"), 8)


def copy_bytes(f: Builder, source: Reg, target: Reg, size: Reg | int) -> None:
    """Copies bytes that do not overlap: vector moves for a small known size, else `memcpy`."""
    count = integer(size) if isinstance(size, int) else size
    f.declarations.add("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
    f.line(f"call void @llvm.memcpy.p0.p0.i64({target}, {source}, {count}, i1 false)")


class Axis(NamedTuple):
    """An array as (outer, size, inner) around one axis."""

    outer: int
    size: int
    inner: int


def axis_of(shape: Sequence[int], axis: int) -> Axis:
    """The three sizes for an axis of any sign."""
    at = normal_axis(axis, len(shape))
    return Axis(math.prod(shape[:at]), shape[at], math.prod(shape[at + 1 :]))


def over_blocks(
    f: Builder, count: int, block: int, number: Reg, body: Callable[[Reg, int], None]
) -> None:
    """Calls `body(first, size)` for block `number` of `count` elements; the last may be shorter."""
    first, whole = f.mul(number, block), count // block
    if not count % block or not whole:
        body(first, block if whole else count)
        return
    full = f.compare("icmp slt", number, integer(whole))
    with f.when(full):
        body(first, block)
    with f.when(f.binary("xor", full, Reg("i1", "true"))):
        body(first, count % block)

"""Code that several kernel families use: rows of a chunk, vectors along a row, checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from weft.codegen.builder import Builder, Reg, integer, vector
from weft.codegen.contraction.emit import fixed, smaller, subtract
from weft.codegen.microkernel import first_lanes, prefetch
from weft.host.memory import LINE
from weft.ir.dtype import DType, float32, float64
from weft.ir.extent import Extent, pinned
from weft.ir.shape import normal_axis

UNROLL = 4  # vectors at a time: enough to hide latencies, few enough for 16 registers
FEW = (1, 2, UNROLL)
"""Vectors of short rows: a kernel for many sizes is for one of these numbers, or for long rows."""


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
    f: Builder, count: Reg | int, lanes: int, body: Callable[[Reg, Sequence[Part]], None]
) -> None:
    """Calls `body(first, parts)` for blocks of vectors that cover `count` elements of a row."""
    if isinstance(count, Extent) and lanes > 1:
        few = next((n for n in FEW if count <= n * lanes), None)
        if few is not None:
            body(integer(0), masked_parts(f, integer(count), few, lanes))
            return
        count = integer(count)
    if isinstance(count, Reg):
        _over_any(f, count, lanes, body)
        return
    count, block = pinned(count), UNROLL * lanes
    whole = count // block * block
    if whole:
        with f.loop(0, whole, block) as loop:
            body(loop.index, [Part(i * lanes, None) for i in range(UNROLL)])
    if whole < count:
        body(integer(whole), last_parts(count - whole, lanes))


def _over_any(
    f: Builder, count: Reg, lanes: int, body: Callable[[Reg, Sequence[Part]], None]
) -> None:
    """Whole blocks, then a block of masks."""
    block = UNROLL * lanes
    whole = f.binary("and", count, integer(-block))
    with f.loop(0, whole, block) as loop:
        body(loop.index, [Part(i * lanes, None) for i in range(UNROLL)])
    with f.when(f.compare("icmp slt", whole, count)):
        body(whole, masked_parts(f, subtract(f, count, whole), UNROLL, lanes))


def last_parts(count: int, lanes: int) -> list[Part]:
    """Vectors that cover `count` elements, the last of them with a mask."""
    whole = count // lanes * lanes
    parts = [Part(at, None) for at in range(0, whole, lanes)]
    if whole < count:
        parts.append(Part(whole, constant_mask(lanes, count - whole)))
    return parts


def masked_parts(f: Builder, count: Reg, vectors: int, lanes: int) -> list[Part]:
    """Vectors of which only the first `count` elements are in the row."""
    firsts = [i * lanes for i in range(vectors)]
    return [Part(at, first_lanes(f, subtract(f, count, integer(at)), lanes)) for at in firsts]


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


def ask_for(f: Builder, place: Reg, size: int, near: int, write: bool = False) -> None:
    """Prefetches the lines of `size` bytes from the beginning of a line."""
    if not isinstance(size, Extent):
        for line in range(0, size, LINE):
            prefetch(f, f.offset(place, line), near, write)
        return
    with f.loop(0, size, LINE) as loop:
        prefetch(f, f.offset(place, loop.index), near, write)


class Axis(NamedTuple):
    """An array as (outer, size, inner) around one axis."""

    outer: int
    size: int
    inner: int


def axis_of(shape: Sequence[int], axis: int) -> Axis:
    """The three sizes for an axis of any sign."""
    at = normal_axis(axis, len(shape))
    return Axis(math.prod(shape[:at]), shape[at], math.prod(shape[at + 1 :]))


def blocks_of(count: int, block: int) -> int:
    """How many blocks cover `count` elements."""
    return 1 if count <= block else -(-count // block)


def over_blocks(
    f: Builder, count: int, block: int, number: Reg, body: Callable[[Reg, Reg | int], None]
) -> None:
    """Calls `body(first, size)` for block `number` of `count` elements; the last may be shorter."""
    first = f.mul(number, block)
    if isinstance(count, Extent):
        short = count <= block
        body(first, count if short else smaller(f, subtract(f, integer(count), first), block))
        return
    whole = count // block
    if not count % block or not whole:
        body(first, block if whole else count)
        return
    full = f.compare("icmp slt", number, integer(whole))
    with f.when(full):
        body(first, block)
    with f.when(f.binary("xor", full, Reg("i1", "true"))):
        body(first, count % block)

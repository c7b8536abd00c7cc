"""Mean and variance of columns, in one pass over contiguous memory.

Every chunk of rows accumulates statistics of its own: an offset, the sums of deviations from it and
of their squares, a count. A launch after it combines the chunks in order. A chunk uses the mean of
its first `ROWS` rows as offset. If they are k of its n rows, then its sum of squares is off by at
most n / k roundings relative to its variance, however far the values lie from zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Final

from weft.codegen.builder import Builder, Reg, constant, element, integer, kernel_builder
from weft.codegen.contraction.emit import read, smaller, subtract
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.loop.convert import choose, register_type, stored
from weft.codegen.loop.reduction import sum_type
from weft.codegen.microkernel import (
    SECOND,
    first_lanes,
    fma,
    load_masked,
    prefetch,
    store_masked,
)
from weft.codegen.target import Target
from weft.host.memory import LINE
from weft.ir.dtype import DType
from weft.ir.extent import largest, multiple, same
from weft.ir.shape import known
from weft.passes.group import Group
from weft.passes.launch import Kernel, Launch, Scratch

ROWS: Final = 8
"""Rows that are added up in registers."""
TOGETHER: Final = 4
"""Vectors of adjacent columns that are added up at the same time."""
CHUNK: Final = 256 * 1024
"""Minimum bytes of a chunk: some 20 us."""
SHARE: Final = 8
"""Vectors of columns that a chunk of the last launch combines."""
VECTORS: Final = 4
"""The statistics of a vector of columns: offset, deviations, squares, count."""


def column_moments(group: Group, target: Target) -> tuple[Launch, ...]:
    """The launches: statistics of every chunk of rows, then their combination."""
    node = group.nodes[0]
    (x,) = node.inputs
    *rows, columns = known(x.shape)
    if not columns:
        return ()
    size = x.dtype.size
    each = ceil_div(largest(1, CHUNK // (columns * size)), ROWS) * ROWS
    chunks = ceil_div(prod(rows), each)
    sums = sum_type(x.dtype)
    pitch = ceil_div(columns * sums.size, LINE) * LINE
    kernels = _Kernels(x.dtype, sums, target.lanes(sums.size), columns, pitch)
    scratch = Scratch(largest(chunks, 1) * VECTORS * pitch)
    label = f"{x.dtype.name}_{prod(rows)}x{columns}"
    moved = float(prod(rows) * columns * size)
    first = Launch(
        Kernel(f"column_moments_{label}", kernels.of_chunks(prod(rows), each)),
        (x, scratch), (1,), chunks, bytes=moved,
    )  # fmt: skip
    mean, variance = node.outputs
    numbers = columns, pitch, chunks, prod(rows)
    vectors = ceil_div(columns, kernels.lanes)
    second = Launch(
        Kernel(f"join_moments_{columns}_{chunks}", kernels.of_all(mean.dtype)),
        (scratch, mean, variance, *numbers), (1, 2), ceil_div(vectors, SHARE),
        bytes=float(scratch.size),
    )  # fmt: skip
    return first, second


@dataclass(frozen=True)
class _Place:
    """The memory of a chunk for a vector of columns: its statistics, `pitch` apart."""

    b: Builder
    pointer: Reg
    pitch: Reg
    type: str
    align: int
    mask: Reg | None

    def load(self, n: int) -> Reg:
        place = self.b.offset(self.pointer, self.b.mul(self.pitch, n))
        if self.mask is None:
            return self.b.load(self.type, place, self.align)
        return load_masked(self.b, self.type, place, self.mask)

    def store(self, n: int, value: Reg) -> None:
        place = self.b.offset(self.pointer, self.b.mul(self.pitch, n))
        if self.mask is None:
            self.b.store(value, place, self.align)
        else:
            store_masked(self.b, value, place, self.mask)

    def increase(self, n: int, value: Reg) -> None:
        self.store(n, self.b.binary("fadd", self.load(n), value))


def _add(places: list[_Place], count: int, value: Callable[[int, int], Reg]) -> None:
    """Adds `count` rows to the statistics of a chunk: `value(row, place)`, along each row.

    Prefetchers expect ascending addresses. From memory, one thread of Zen 4: 64 channels 27 GB/s
    with 4 vectors at a time, 11 with one; more channels 17 with prefetches of following rows, 9
    without.
    """
    b, type_ = places[0].b, places[0].type
    zero = constant(0, type_)
    fresh = [b.compare("fcmp oeq", place.load(3), zero) for place in places]
    firsts = [value(0, i) for i in range(len(places))]
    origins = [
        choose(b, is_fresh, first, place.load(0))
        for is_fresh, first, place in zip(fresh, firsts, places, strict=True)
    ]
    distances, squares = [zero] * len(places), [zero] * len(places)
    for row in range(count):
        for i, origin in enumerate(origins):
            distance = b.binary("fsub", value(row, i) if row else firsts[i], origin)
            distances[i] = b.binary("fadd", distances[i], distance)
            squares[i] = fma(b, distance, distance, squares[i])
    for i, place in enumerate(places):
        mean = b.binary("fmul", distances[i], constant(1 / count, type_))
        shift = choose(b, fresh[i], mean, zero)
        moved = b.binary("fmul", shift, constant(-count, type_))
        place.store(0, b.binary("fadd", origins[i], shift))
        place.increase(1, b.binary("fadd", distances[i], moved))
        place.increase(2, fma(b, shift, moved, squares[i]))
        place.increase(3, constant(count, type_))


@dataclass(frozen=True)
class _Kernels:
    """The code of both launches."""

    dtype: DType  # of the rows
    sums: DType
    lanes: int
    columns: int
    pitch: int

    def of_chunks(self, rows: int, each: int) -> str:
        """Accumulates chunks of `each` rows."""
        b = kernel_builder()
        source, scratch = b.argument(0), b.argument(1)
        with b.loop(b.params[1], b.params[2]) as chunk:
            size = VECTORS * self.pitch
            own = b.offset(scratch, b.mul(chunk.index, size))
            with b.loop(0, size, LINE) as loop:
                b.store(constant(0, "<16 x float>"), b.offset(own, loop.index), LINE)
            first = b.mul(chunk.index, each)
            last = smaller(b, b.add(first, each), integer(rows))
            rest = b.binary("and", subtract(b, last, first), integer(ROWS - 1))
            even = subtract(b, last, rest)
            with b.loop(first, even, ROWS) as row:
                self._across(b, source, own, row.index, ROWS)
            with b.loop(even, last) as row:
                self._across(b, source, own, row.index, 1)
        return b.module()

    def _across(self, b: Builder, source: Reg, own: Reg, row: Reg, count: int) -> None:
        """Adds `count` rows, `TOGETHER` vectors of columns at a time, then one."""
        together = TOGETHER * self.lanes
        most, whole = (self.columns // n * n for n in (together, self.lanes))
        with b.loop(0, most, together) as loop:
            self._rows(b, source, own, (row, loop.index), (count, TOGETHER), None)
        if not multiple(self.columns, together):
            with b.loop(most, whole, self.lanes) as loop:
                self._rows(b, source, own, (row, loop.index), (count, 1), None)
        if not multiple(self.columns, self.lanes):
            with b.loop(whole, self.columns, self.lanes) as loop:  # once, or not at all
                mask = first_lanes(b, integer(self.columns - whole), self.lanes)
                self._rows(b, source, own, (row, loop.index), (count, 1), mask)

    def _rows(
        self,
        b: Builder,
        source: Reg,
        own: Reg,
        at: tuple[Reg, Reg],
        counts: tuple[int, int],
        mask: Reg | None,
    ) -> None:
        """Adds some rows of some vectors."""
        (row, column), (rows, vectors) = at, counts
        pitch = self.columns * self.dtype.size
        start = b.offset(source, b.add(b.mul(row, pitch), b.mul(column, self.dtype.size)))
        lines = [b.offset(start, n * pitch) for n in range(rows)]
        if rows * vectors == ROWS * TOGETHER and not same(self.columns, TOGETHER * self.lanes):
            self._prefetch(b, b.offset(source, b.mul(b.add(row, ROWS), pitch)), column)

        def value(row: int, vector: int) -> Reg:
            place = b.offset(lines[row], vector * self.lanes * self.dtype.size)
            return read(b, place, self.lanes, self.dtype, self.sums, mask)

        size = self.sums.size
        pointer = b.offset(own, b.mul(column, size))
        type_ = register_type(self.sums, self.lanes)
        places = [
            _Place(
                b, b.offset(pointer, i * self.lanes * size), integer(self.pitch), type_, size, mask
            )
            for i in range(vectors)
        ]
        _add(places, rows, value)

    def _prefetch(self, b: Builder, rows: Reg, column: Reg) -> None:
        """Asks for a share of the following rows, in the order of their addresses."""
        each = ROWS * self.dtype.size
        share = b.offset(rows, b.mul(column, each))
        for at in range(0, each * TOGETHER * self.lanes, LINE):
            prefetch(b, b.offset(share, at), SECOND)

    def of_all(self, result: DType) -> str:
        """Combines the chunks, in order: one kernel for all sizes."""
        b, lanes, size = kernel_builder(), self.lanes, self.sums.size
        source, outs = b.argument(0), (b.argument(1), b.argument(2))
        columns, pitch, chunks, rows = (b.argument(n, "i64") for n in range(3, 7))
        type_ = register_type(self.sums, lanes)
        number = b.splat(b.emit(element(type_), f"sitofp {rows} to {element(type_)}"), lanes)
        first = b.mul(b.params[1], SHARE * lanes)
        last = b.call("i64", "llvm.smin.i64", (b.mul(b.params[2], SHARE * lanes), columns))
        with b.loop(first, last, lanes) as loop:
            mask = None
            if not multiple(self.columns, lanes):
                mask = first_lanes(b, b.binary("sub", columns, loop.index), lanes)
            start = b.offset(source, b.mul(loop.index, size))
            totals = _totals(_Place(b, start, pitch, type_, size, mask), chunks, number)
            for out, total in zip(outs, totals, strict=True):
                value = stored(b, total, result)
                place = b.offset(out, b.mul(loop.index, result.size))
                _Place(b, place, pitch, total.type, result.size, mask).store(0, value)
        return b.module()


def _totals(start: _Place, chunks: Reg, number: Reg) -> tuple[Reg, Reg]:
    """Mean and variance, from all chunks."""
    b, zero = start.b, constant(0, number.type)
    chunk_bytes = b.mul(start.pitch, VECTORS)

    def load(chunk: Reg, n: int) -> Reg:
        at = b.offset(start.pointer, b.mul(chunk, chunk_bytes))
        return _Place(b, at, start.pitch, start.type, start.align, start.mask).load(n)

    origin_0 = load(integer(0), 0)
    with b.loop(0, chunks, 1, [zero]) as loop:
        origin, distances, count = (load(loop.index, n) for n in (0, 1, 3))
        far = fma(b, count, b.binary("fsub", origin, origin_0), distances)
        loop.next = [b.binary("fadd", loop.carried[0], far)]
    mean = b.binary("fadd", origin_0, b.binary("fdiv", loop.results[0], number))
    with b.loop(0, chunks, 1, [zero]) as loop:
        origin, distances, squares, count = (load(loop.index, n) for n in range(4))
        away = b.binary("fsub", origin, mean)
        twice = fma(b, count, away, b.binary("fadd", distances, distances))
        loop.next = [b.binary("fadd", loop.carried[0], fma(b, away, twice, squares))]
    variance = b.binary("fdiv", loop.results[0], number)
    negative = b.compare("fcmp olt", variance, zero)
    return mean, choose(b, negative, zero, variance)

"""Transposing copies: arrays read along one axis are written along another one.

Squares are transposed in registers. Extents and strides are arguments of the launch, so that the
few kernels here serve arrays of all shapes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Final

from weft.codegen.builder import Builder, Reg, integer, kernel_builder, vector
from weft.codegen.contraction.emit import divide, smaller, subtract
from weft.codegen.loop.domain import per_chunk, traffic
from weft.codegen.loop.index import Index, Symbol
from weft.codegen.loop.lanes import transposed
from weft.codegen.loop.tree import Store
from weft.codegen.microkernel import first_lanes, load_masked, store_masked
from weft.codegen.target import Target
from weft.ir.extent import same, tuned
from weft.passes.launch import Kernel, Launch

TILE: Final = 64
"""Elements per side of a tile: few enough pages for the L1 TLB."""
OUTER: Final = 3
"""Maximum axes beside the two that are transposed."""
TYPES: Final = {1: "i8", 2: "i16", 4: "float", 8: "i64"}
Rows = Callable[[Reg], Reg]
_FIXED: Final = 12  # launch integers besides those of outer axes


def transposing_copy(
    name: str, store: Store, axes: Sequence[Symbol], across: Symbol, target: Target
) -> Launch | None:
    """The launch for a copy that reads along `across` and writes along the last of `axes`.

    `None` if it is more than a copy, or its addresses are not affine in the axes.
    """
    outer = [s for s in axes[:-1] if s is not across]
    value, last = store.value, axes[-1]
    if value.op != "load" or len(outer) > OUTER:
        return None
    buffer, place = value.data
    lanes = target.lanes(max(buffer.dtype.size, 4))
    read, written = _strides(place), _strides(store.offset)
    if buffer.dtype is not store.buffer.dtype or read is None or written is None:
        return None
    # Collapses short rows with an axis along which they are contiguous, to fill squares.
    sides: list[tuple[Symbol, Symbol | None]] = []
    for axis, there in ((across, read), (last, written)):
        far = there[axis] * axis.extent
        partial = not tuned("==", axis.extent % lanes, 0)
        nexts = [s for s in outer if same(there.get(s, 0), far) and partial]
        sides.append((axis, nexts[0] if nexts and tuned("<", axis.extent, TILE) else None))
        outer = [s for s in outer if s is not sides[-1][1]]
    outer = [Symbol("", 1)] * (OUTER - len(outer)) + outer
    lengths = [axis.extent * (more.extent if more else 1) for axis, more in sides]
    pieces = prod([-(-length // TILE) for length in lengths]) * prod([s.extent for s in outer])
    moved = traffic([value], [store.buffer])
    count = prod(lengths) * prod([s.extent for s in outer])
    each = per_chunk(pieces, moved / count, 0, count // pieces)
    numbers = [each, pieces, *lengths, place.const, store.offset.const]
    for (axis, more), there in zip(sides, (written, read), strict=True):
        numbers += [there.get(axis, 0), axis.extent, there.get(more, 0) if more else 0]
    for symbol in outer:
        numbers += [symbol.extent, read.get(symbol, 0), written.get(symbol, 0)]
    return Launch(
        Kernel(name, _ir(buffer.dtype.size, lanes, target.masked)),
        (buffer.source, store.buffer.source, *numbers), (1,), -(-pieces // each), bytes=moved,
    )  # fmt: skip


def _strides(index: Index) -> dict[Symbol, int] | None:
    """Strides in elements along each axis, where these are fixed."""
    if any(atom.kind != "var" for atom, _ in index.terms):
        return None
    return {atom.inner: k for atom, k in index.terms}


@functools.lru_cache(maxsize=16)
def _ir(size: int, lanes: int, masks: bool) -> str:
    return _Turn(size, lanes, masks).ir()


class _Turn:
    def __init__(self, size: int, lanes: int, masks: bool) -> None:
        self.size = size
        self.lanes = lanes
        self.masks = masks
        self.type = TYPES[size]
        self.b = kernel_builder()

    def ir(self) -> str:
        b = self.b
        self.base = b.argument(0), b.argument(1)
        numbers = [self._number(i) for i in range(_FIXED)]
        each, pieces, self.across, self.last = numbers[:4]
        self.starts = numbers[4:6]
        self.down = _Places(b, self.size, numbers[6:9])
        self.along = _Places(b, self.size, numbers[9:12])
        self.counts = [self._tiles(self.across), self._tiles(self.last)]
        last = smaller(b, b.mul(b.params[2], each), pieces)
        with b.loop(b.mul(b.params[1], each), last) as loop:
            self._piece(loop.index)
        return b.module()

    def _number(self, i: int) -> Reg:
        return self.b.argument(2 + i, "i64")

    def _tiles(self, extent: Reg) -> Reg:
        return self.b.binary("udiv", self.b.add(extent, TILE - 1), integer(TILE))

    def _piece(self, index: Reg) -> None:
        """A tile: outer positions first, then rows and columns of tiles."""
        b, (source, to) = self.b, self.starts
        rest, column = divide(b, index, self.counts[1])
        rest, row = divide(b, rest, self.counts[0])
        for n in reversed(range(OUTER)):
            extent, read, written = (self._number(_FIXED + 3 * n + i) for i in range(3))
            place = rest
            if n:
                rest, place = divide(b, rest, extent)
            source = b.add(source, b.mul(place, read))
            to = b.add(to, b.mul(place, written))
        top, left = b.mul(row, TILE), b.mul(column, TILE)
        self.down.fill(top)
        self.along.fill(left)
        tall, wide = (
            smaller(b, subtract(b, extent, start), TILE)
            for extent, start in ((self.across, top), (self.last, left))
        )
        source = self._place(self.base[0], b.add(source, top))
        to = self._place(self.base[1], b.add(to, left))
        with b.loop(0, wide, self.lanes) as x, b.loop(0, tall, self.lanes) as y:
            rooms = subtract(b, tall, y.index), subtract(b, wide, x.index)
            read, written = self._place(source, y.index), self._place(to, x.index)
            self._turn(self.along.rows(read, x.index), self.down.rows(written, y.index), rooms)

    def _turn(self, rows: Rows, to: Rows, rooms: tuple[Reg, Reg]) -> None:
        """A square: `rooms` elements are left across and along the last axis."""
        b = self.b
        tests = [b.compare("icmp sge", room, integer(self.lanes)) for room in rooms]
        full = b.binary("and", *tests)
        with b.when(full):
            self._square(rows, to)
        with b.when(b.binary("xor", full, Reg("i1", "true"))):
            if self.masks:
                self._part(rows, to, *rooms)
            else:
                self._elements(rows, to, *rooms)

    def _place(self, base: Reg, index: Reg) -> Reg:
        return self.b.offset(base, self.b.mul(index, self.size))

    def _square(self, rows: Rows, to: Rows) -> None:
        b, type_ = self.b, vector(self.type, self.lanes)
        values = [b.load(type_, rows(integer(i))) for i in range(self.lanes)]
        for i, value in enumerate(transposed(b, values)):
            b.store(value, to(integer(i)))

    def _part(self, rows: Rows, to: Rows, tall: Reg, wide: Reg) -> None:
        """Less than a square, with masks."""
        b, lanes, type_ = self.b, self.lanes, vector(self.type, self.lanes)
        down, along = (first_lanes(b, room, lanes) for room in (tall, wide))
        values: list[Reg] = []
        for i in range(lanes):
            inside = b.compare("icmp slt", integer(i), wide)
            mask = b.emit(down.type, f"select {inside}, {down}, {down.type} zeroinitializer")
            values.append(load_masked(b, type_, rows(integer(i)), mask))
        for i, value in enumerate(transposed(b, values)):
            with b.when(b.compare("icmp slt", integer(i), tall)):
                store_masked(b, value, to(integer(i)), along)

    def _elements(self, rows: Rows, to: Rows, tall: Reg, wide: Reg) -> None:
        """Less than a square, one by one."""
        b = self.b
        tall, wide = (smaller(b, room, self.lanes) for room in (tall, wide))
        with b.loop(0, tall) as y, b.loop(0, wide) as x:
            value = b.load(self.type, self._place(rows(x.index), y.index))
            b.store(value, self._place(to(y.index), x.index))


class _Places:
    """The start of each row of a tile: a table, as a longer step follows `short` steps."""

    def __init__(self, b: Builder, size: int, numbers: Sequence[Reg]) -> None:
        step, self.short, self.far = numbers
        self.b = b
        self.size = size
        self.step = step
        self.jump = subtract(b, self.far, b.mul(subtract(b, self.short, integer(1)), step))
        self.table = b.emit("ptr", f"alloca [{TILE} x i64], align 64")

    def fill(self, first: Reg) -> None:
        """Fills the table with rows from number `first` on."""
        b = self.b
        long, at = divide(b, first, self.short)
        place = b.add(b.mul(long, self.far), b.mul(at, self.step))
        with b.loop(0, TILE, 1, [at, place]) as loop:
            at, place = loop.carried
            b.store(b.mul(place, self.size), b.offset(self.table, loop.index, "i64"), 8)
            at = b.add(at, 1)
            wraps = b.compare("icmp eq", at, self.short)
            at = b.emit("i64", f"select {wraps}, i64 0, {at}")
            step = b.emit("i64", f"select {wraps}, {self.jump}, {self.step}")
            loop.next = [at, b.add(place, step)]

    def rows(self, base: Reg, first: Reg) -> Rows:
        """The start of rows from number `first` of the tile on, at a position of each."""
        b, start = self.b, self.b.offset(self.table, first, "i64")
        return lambda i: b.offset(base, b.load("i64", b.offset(start, i, "i64"), 8))

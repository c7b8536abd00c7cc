"""Few rows times a y whose columns are contiguous along k, and lie one after the other.

A vector has steps of one column. Those of adjacent streams exchange blocks, so that each has a
block of steps of every stream: `chains` terms of one sum each, for as many streams as it has
blocks. A block of x meets all of them.

Hardware prefetchers follow ascending addresses and restart in each page. So y is cut into streams,
equal parts, and the same column of each is multiplied at the same time. Adjacent columns at the
same time are slower: they share pages. Weights of a 6 x 384 decoder, 42 MB, two threads of Zen 4,
without exchanges: 6 parts 0.48 ms, 4 parts 0.51, 2 parts 0.60, one 1.20, sixteen adjacent columns
0.74; one thread 1.21, 1.38, 1.65, 2.17, 2.02. Software prefetching (`prefetch`) makes all of them
slower.
"""

from __future__ import annotations

from typing import Final

from weft.codegen.builder import Reg, constant, integer
from weft.codegen.chunk import Items, even_chunks
from weft.codegen.contraction.dot import add_lanes
from weft.codegen.contraction.emit import divide, read, scaled, smaller, subtract
from weft.codegen.contraction.narrow import Narrow
from weft.codegen.contraction.plan import chunks_of
from weft.codegen.contraction.product import Product
from weft.codegen.contraction.sink import Sink
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.contraction.transpose import repeated, transpose
from weft.codegen.microkernel import first_lanes, fma
from weft.codegen.target import Target
from weft.ir.extent import largest, multiple, same

STREAMS: Final = 8
"""Columns at the same time: 4 are a single chain of multiply-adds for one row (4 x 256 x 256: 20%
faster than with 4, 1 x 384 x 512: 23%), and as fast from memory.
"""


class Streamed(Narrow):
    """An item is `lanes` adjacent columns of every stream, and all rows."""

    name = "streamed"

    def __init__(self, product: Product, target: Target, sink: Sink, swapped: bool) -> None:
        super().__init__(product, target, sink, swapped)
        self.blocks: Final = self.lanes // self.chains  # of a vector
        most = min(STREAMS // self.blocks, (target.registers - 2) // (self.rows + self.blocks))
        self.groups: Final = max(1, most)  # of streams that share vectors
        self.streams: Final = self.groups * self.blocks
        self.part: Final = ceil_div(product.n, self.streams)  # columns of a stream
        self.tiles: Final = ceil_div(self.part, self.lanes)
        # An x that is not contiguous along k is copied.
        self.pitch: Final = ceil_div(largest(product.k, 1), self.lanes) * self.bytes
        self.copies: Final = product.x_step != 1
        self.once: Final = not any(product.x_batch)
        if self.copies:
            self.used = self.rows * self.pitch

    def items(self) -> Items:
        """Tiles of columns."""
        return even_chunks(self.product.count * self.tiles, chunks_of(self.product))

    def begin(self) -> None:
        """Reserves memory for the sums of a tile."""
        places = self.rows * self.groups * self.lanes
        self.sums = self.b.emit("ptr", f"alloca [{places} x {self.type}], align 64")
        places = self.rows * self.streams
        self.totals = self.b.emit("ptr", f"alloca [{places} x {self.type}], align 64")
        if self.copies and self.once:
            self._copy(self.x)

    def item(self, matrix: Reg, part: Reg, x: Reg, y: Reg) -> None:
        """A tile, column by column."""
        b, product = self.b, self.product
        x_row = product.x_row * product.dtype.size
        if self.copies:
            if not self.once:
                self._copy(x)
            x, x_row = self.own, self.pitch
        lines = [b.offset(x, b.mul(integer(row), x_row)) for row in range(self.rows)]
        first = b.mul(part, self.lanes)
        left = smaller(b, subtract(b, integer(self.part), first), self.lanes)
        with b.loop(0, left, at_least_once=True) as loop:
            column = b.add(first, loop.index)
            place = b.offset(self.sums, b.mul(loop.index, self.bytes))
            for i, total in enumerate(self._sums(lines, self._columns(y, column))):
                b.store(total, b.offset(place, i * self.lanes * self.bytes), self.dtype.size)
        self._total()
        whole = multiple(product.n, self.streams * self.lanes)
        with b.loop(0, self.streams) as loop:
            begin = b.mul(loop.index, self.part)
            end = smaller(b, b.add(begin, self.part), product.n)
            place = scaled(b, self.totals, loop.index, self.rows, self.bytes)
            values = [
                b.load(self.type, b.offset(place, row * self.bytes), 8) for row in range(self.rows)
            ]
            self.store(values, matrix, b.add(first, begin), end, whole)

    def _copy(self, x: Reg) -> None:
        """Copies x."""
        b, product, size = self.b, self.product, self.dtype.size
        for row in range(self.rows):
            line = scaled(b, x, integer(row), product.x_row, product.dtype.size)
            goal = b.offset(self.own, b.mul(integer(row), self.pitch))
            with b.loop(0, product.k) as loop:
                place = scaled(b, line, loop.index, product.x_step, product.dtype.size)
                value = read(b, place, 1, product.dtype, self.dtype, None)
                b.store(value, scaled(b, goal, loop.index, 1, size), size)

    def _columns(self, y: Reg, column: Reg) -> list[Reg]:
        """The addresses of a column of each stream; beyond the last one, of the last one."""
        b, product = self.b, self.product
        numbers = [b.add(column, stream * self.part) for stream in range(self.streams)]
        last = product.n - 1
        return [
            scaled(b, y, smaller(b, number, last), product.y_column, product.dtype.size)
            for number in numbers
        ]

    def _sums(self, lines: list[Reg], columns: list[Reg]) -> list[Reg]:
        """For each row and group of streams: a block of sums for each stream."""
        b, product, lanes = self.b, self.product, self.lanes
        sums = [constant(0, self.type)] * (self.rows * self.groups)
        whole, left = product.k // lanes, product.k % lanes
        k = integer(0)
        if not same(whole, 0):
            with b.loop(0, whole, 1, [*sums, k]) as loop:
                *sums, k = loop.carried
                loop.next = [*self._step(sums, lines, columns, k, None), b.add(k, lanes)]
            *sums, k = loop.results
        if multiple(product.k, lanes):
            return sums
        return self._step(sums, lines, columns, k, integer(left))

    def _step(
        self, sums: list[Reg], lines: list[Reg], columns: list[Reg], k: Reg, left: Reg | None
    ) -> list[Reg]:
        """`lanes` steps from `k` on, of which there are only `left` if given."""
        b, size = self.b, self.product.dtype.size
        mask = None if left is None else first_lanes(b, left, self.lanes)
        at = b.mul(k, size)
        vectors = [
            read(b, b.offset(c, at), self.lanes, self.product.dtype, self.dtype, mask)
            for c in columns
        ]
        following = list(sums)
        turned = [
            transpose(b, vectors[i : i + self.blocks], self.lanes, self.chains)
            for i in range(0, self.streams, self.blocks)
        ]
        for block in range(self.blocks):
            for row, line in enumerate(lines):
                factor = self._factor(line, k, block * self.chains, left)
                for group, each in enumerate(turned):
                    i = row * self.groups + group
                    following[i] = fma(b, factor, each[block], following[i])
        return following

    def _factor(self, line: Reg, k: Reg, after: int, left: Reg | None) -> Reg:
        """A block of a row of x, `after` steps after `k`, once for each stream."""
        b = self.b
        stored = self.dtype if self.copies else self.product.dtype
        mask = None
        if left is not None:  # none may be left, and what follows may be infinite
            mask = first_lanes(b, b.add(left, -after), self.chains)
        place = b.offset(line, b.mul(b.add(k, after), stored.size))
        value = read(b, place, self.chains, stored, self.dtype, mask)
        if self.blocks == 1:
            return value
        return repeated(b, value, self.chains, self.lanes)

    def _total(self) -> None:
        """Writes for each stream, then row, a vector of the totals of a tile's columns."""
        b, lanes = self.b, self.lanes
        with b.loop(0, self.rows * self.groups) as loop:
            row, group = divide(b, loop.index, integer(self.groups))
            first = scaled(b, self.sums, loop.index, lanes, self.bytes)
            sums = [b.load(self.type, b.offset(first, i * self.bytes), 8) for i in range(lanes)]
            totals = transpose(b, add_lanes(b, sums, lanes, self.chains), lanes, self.chains)
            goal = b.add(b.mul(group, self.blocks * self.rows), row)
            for block, total in enumerate(totals):
                at = b.add(goal, block * self.rows)
                b.store(total, scaled(b, self.totals, at, 1, self.bytes), 8)

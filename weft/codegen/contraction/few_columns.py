"""Few columns, and an x whose rows are contiguous along k: images times the weights of ten classes.

A vector has `chains` steps of several columns, block after block, so it meets the same steps of a
row, broadcast. Columns that do not fill a vector are repeated in it, and meet several rows. A tile
of rows keeps its sums in registers: weights are read once for all of them, and rows are read in
place. The weights are copied in the order in which they are used (100 x 784 x 10, one thread of
Zen 4: 16 us; with transposes of rows in registers 20.5).
"""

from __future__ import annotations

from typing import Final

from weft.codegen.builder import Reg, constant, integer
from weft.codegen.chunk import Items, even_chunks
from weft.codegen.contraction.dot import add_lanes
from weft.codegen.contraction.emit import read, scaled, smaller, subtract
from weft.codegen.contraction.narrow import Narrow
from weft.codegen.contraction.plan import chunks_of
from weft.codegen.contraction.product import Product
from weft.codegen.contraction.sink import Sink
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.contraction.transpose import repeated, shuffle
from weft.codegen.microkernel import first_lanes, fma
from weft.codegen.target import Target
from weft.ir.extent import multiple, same

HIGH: Final = 8
"""Maximum rows of a tile: each has an address of its own in a general register."""
TALL: Final = 8
"""Tiles of an item where each item copies the weights."""


class FewColumns(Narrow):
    """An item is tiles of rows, and all columns. `product` is transposed: its y has the rows."""

    name = "columns"

    def __init__(self, product: Product, target: Target, sink: Sink, swapped: bool) -> None:
        super().__init__(product, target, sink, swapped)
        self.blocks: Final = self.lanes // self.chains  # of a vector
        self.full: Final = self.rows // self.blocks  # vectors of as many columns
        self.rest: Final = self.rows % self.blocks  # columns in one more
        self.vectors: Final = self.full + (self.rest > 0)
        self.share: Final = self.blocks // self.rest if self.rest else 1  # rows that meet it
        high = min(HIGH, (target.registers - self.vectors - 2) // self.vectors)
        self.high: Final = max(1, high // self.share) * self.share
        self.once: Final = not any(product.x_batch)
        self.run: Final = self.high * (1 if self.once else TALL)
        self.line: Final = self.vectors * self.bytes  # of `chains` steps
        # Kernels for many sizes write one more block, of zeros if no step is left.
        self.used = (product.k // self.chains + 1) * self.line

    def items(self) -> Items:
        """Runs of rows."""
        parts = ceil_div(self.product.n, self.run)
        return even_chunks(self.product.count * parts, chunks_of(self.product))

    def begin(self) -> None:
        """Copies weights that all matrices share."""
        if self.once:
            self._copy(self.x)

    def item(self, matrix: Reg, part: Reg, x: Reg, y: Reg) -> None:
        """A run of rows, tile by tile."""
        b = self.b
        if not self.once:
            self._copy(x)
        begin = b.mul(part, self.run)
        end = smaller(b, b.add(begin, self.run), self.product.n)
        with b.loop(begin, end, self.high, at_least_once=True) as tile:
            sums = self._sums(self._lines(y, tile.index))
            for row in range(self.high):
                total = self._total(sums, row)
                b.store(total, b.offset(self.spill, row * self.bytes), self.dtype.size)
            left = smaller(b, subtract(b, end, tile.index), self.high)
            with b.loop(0, left, at_least_once=True) as loop:
                place = b.offset(self.spill, b.mul(loop.index, self.bytes))
                line = b.add(b.mul(matrix, self.product.n), b.add(tile.index, loop.index))
                mask = first_lanes(b, integer(self.rows), self.lanes)
                self.sink.reset()
                at = line, integer(0), integer(self.rows)
                value = b.load(self.type, place, self.dtype.size)
                self.sink.store(value, at, self.lanes, None if self.rows == self.lanes else mask)

    def _lines(self, y: Reg, row: Reg) -> list[Reg]:
        """The addresses of a tile's rows; beyond the last one, of the last one."""
        b, product = self.b, self.product
        numbers = [smaller(b, b.add(row, i), product.n - 1) for i in range(self.high)]
        return [scaled(b, y, i, product.y_column, product.dtype.size) for i in numbers]

    def _sums(self, lines: list[Reg]) -> list[Reg]:
        """The sums of a tile: by row, then full vector; then those that rows share."""
        b, k, chains = self.b, self.product.k, self.chains
        shared = self.high // self.share if self.rest else 0
        sums = [constant(0, self.type)] * (self.high * self.full + shared)
        with b.loop(0, k // chains, 1, [*sums, self.own]) as loop:
            *now, weights = loop.carried
            now = self._step(now, lines, b.mul(loop.index, chains), weights, None)
            loop.next = [*now, b.offset(weights, self.line)]
        *sums, weights = loop.results
        if multiple(k, chains):
            return sums
        after = b.mul(integer(k // chains), chains)
        mask = first_lanes(b, integer(k % chains), chains)
        return self._step(sums, lines, after, weights, mask)

    def _step(
        self, sums: list[Reg], lines: list[Reg], k: Reg, weights: Reg, mask: Reg | None
    ) -> list[Reg]:
        """A block of steps from `k` on: only those of `mask`, if given."""
        b, dtype, lanes = self.b, self.product.dtype, self.lanes
        vectors = [
            b.load(self.type, b.offset(weights, i * self.bytes), self.dtype.size)
            for i in range(self.vectors)
        ]
        rows = [
            repeated(b, read(b, place, self.chains, dtype, self.dtype, mask), self.chains, lanes)
            for place in (b.offset(line, b.mul(k, dtype.size)) for line in lines)
        ]
        factors = [(row, vector) for row in rows for vector in vectors[: self.full]]
        if self.rest:
            factors += [
                (self._shared(rows[first : first + self.share]), vectors[-1])
                for first in range(0, self.high, self.share)
            ]
        return [fma(b, *pair, total) for pair, total in zip(factors, sums, strict=True)]

    def _shared(self, rows: list[Reg]) -> Reg:
        """One vector that has, for the columns of `rest`, steps of each row."""
        each, lanes = self.rest * self.chains, self.lanes
        both = rows[0]
        for i, row in enumerate(rows[1:], 1):
            picks = [lane + lanes * (lane // each == i) for lane in range(lanes)]
            both = shuffle(self.b, both, row, picks)
        return both

    def _total(self, sums: list[Reg], row: int) -> Reg:
        """The totals of a row, a lane each."""
        own = sums[row * self.full : (row + 1) * self.full]
        if self.rest:
            own = [*own, sums[self.high * self.full + row // self.share]]
        missing = [Reg(self.type, "poison")] * (self.chains - self.vectors)
        (total,) = add_lanes(self.b, own + missing, self.lanes, self.chains)
        # Lane i of block j is the total of block j of vector i.
        places = [self._place(column, row % self.share) for column in range(self.rows)]
        order = [block * self.chains + vector for vector, block in places]
        return shuffle(self.b, total, total, order + [0] * (self.lanes - self.rows))

    def _place(self, column: int, row: int) -> tuple[int, int]:
        """The vector of a column, and its block there, for one of the rows that share it."""
        after = column - self.full * self.blocks
        if after < 0:
            return column % self.full, column // self.full
        return self.full, row * self.rest + after

    def _copy(self, x: Reg) -> None:
        """Copies the weights."""
        b, k, chains = self.b, self.product.k, self.chains
        copy = self._copy_runs if same(self.product.x_step, 1) else self._copy_across
        with b.loop(0, k // chains) as loop:
            copy(x, loop.index, None)
        if not multiple(k, chains):
            copy(x, integer(k // chains), integer(k % chains))

    def _copy_runs(self, x: Reg, block: Reg, left: Reg | None) -> None:
        """Copies a block of each column's steps, which are contiguous; `left` ones, then zeros."""
        b, product = self.b, self.product
        mask = None if left is None else first_lanes(b, left, self.chains)
        goal = scaled(b, self.own, block, 1, self.line)
        for column in range(self.rows):
            index = b.add(b.mul(integer(column), product.x_row), b.mul(block, self.chains))
            place = scaled(b, x, index, 1, product.dtype.size)
            value = read(b, place, self.chains, product.dtype, self.dtype, mask)
            for row in range(self.share if column >= self.full * self.blocks else 1):
                vector, at = self._place(column, row)
                lane = vector * self.lanes + at * self.chains
                b.store(value, b.offset(goal, lane * self.dtype.size), self.dtype.size)

    def _copy_across(self, x: Reg, block: Reg, left: Reg | None) -> None:
        """Copies a block of steps in which the columns are contiguous; `left` ones, then zeros."""
        b, product, lanes = self.b, self.product, self.lanes
        steps: list[Reg] = []
        for step in range(self.chains):
            count = integer(self.rows)
            if left is not None:
                count = smaller(b, b.mul(subtract(b, left, integer(step)), lanes), count)
            index = b.add(b.mul(block, self.chains), step)
            place = scaled(b, x, index, product.x_step, product.dtype.size)
            mask = first_lanes(b, count, lanes)
            steps.append(read(b, place, lanes, product.dtype, self.dtype, mask))
        goal = scaled(b, self.own, block, 1, self.line)
        for i in range(self.vectors):
            b.store(self._turned(steps, i), b.offset(goal, i * self.bytes), self.dtype.size)

    def _turned(self, steps: list[Reg], i: int) -> Reg:
        """Vector i of a block: lane j of its block for a column is step j of that column."""
        width = 1
        columns = [0] * self.blocks
        for column in range(self.rows):
            for row in range(self.share):
                vector, at = self._place(column, row)
                if vector == i:
                    columns[at] = column
        # Lane j of a block takes from pairs of steps, then from pairs of these.
        while len(steps) > 1:
            paired: list[Reg] = []
            for low, high in zip(steps[::2], steps[1::2], strict=True):
                picks: list[int] = []
                for lane in range(self.lanes):
                    block, step = divmod(lane, self.chains)
                    source = lane if width > 1 else columns[block]
                    picks.append(source + self.lanes * (step // width % 2))
                paired.append(shuffle(self.b, low, high, picks))
            steps = paired
            width *= 2
        return steps[0]

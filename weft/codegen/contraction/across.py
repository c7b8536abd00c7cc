"""Few rows times a y whose steps of k are contiguous along columns.

Each of `chains` adjacent steps adds to sums of its own. An item is a run of columns, computed a few
vectors at a time. A y from memory is read `DISTANCE` steps at a time, in long runs: the sums of an
item wait in cache for the next ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from weft.codegen.builder import Reg, constant, integer
from weft.codegen.chunk import Items, even_chunks
from weft.codegen.contraction.emit import divide, read, scaled, smaller, subtract
from weft.codegen.contraction.narrow import Narrow
from weft.codegen.contraction.plan import DISTANCE, RUN, chunks_of, from_memory
from weft.codegen.contraction.product import Product
from weft.codegen.contraction.sink import Sink
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.microkernel import SECOND, first_lanes, fma, prefetch
from weft.codegen.target import Target
from weft.ir.extent import multiple, same

SPARE: Final = 8
"""One of so many registers holds no sum, beside one for a vector of y and one for a number of x."""

Sums = list[Reg]
"""The sums of a tile by row, then chain, then vector."""


class _Tile(NamedTuple):
    """Vectors of adjacent columns; those from `end` on do not exist, if it is given."""

    column: Reg
    vectors: int
    end: Reg | None = None


class Across(Narrow):
    """An item is a run of columns, and all rows."""

    name = "across"

    def __init__(self, product: Product, target: Target, sink: Sink, swapped: bool) -> None:
        super().__init__(product, target, sink, swapped)
        room = target.registers - target.registers // SPARE
        passes = ceil_div(self.rows, max(1, room // self.chains))
        self.high: Final = ceil_div(self.rows, passes)  # rows at a time
        self.vectors: Final = max(1, room // (self.chains * self.high))
        self.passes: Final = from_memory(product, target)
        width = self.vectors * self.lanes
        self.run: Final = ceil_div(RUN, width) * width if self.passes else width
        self.runs: Final = ceil_div(product.n, self.run)
        if self.passes:
            self.used = self.rows * self.chains * self.run * self.dtype.size

    def items(self) -> Items:
        """Runs of columns."""
        return even_chunks(self.product.count * self.runs, chunks_of(self.product))

    def begin(self) -> None:
        """Nothing."""

    def item(self, matrix: Reg, part: Reg, x: Reg, y: Reg) -> None:
        """A run of columns."""
        b, k = self.b, integer(self.product.k)
        first = b.mul(part, self.run)
        end = smaller(b, b.add(first, self.run), self.product.n)
        if not self.passes:
            for tile in self._tiles(first, end):
                sums = self._zeros(tile)
                self._store(tile, matrix, self._added(tile, sums, (x, y), (integer(0), k)))
            return
        for tile in self._tiles(first, end):
            self._keep(tile, first, self._zeros(tile))
        with b.loop(0, k, DISTANCE, at_least_once=True) as loop:
            ks = loop.index, smaller(b, b.add(loop.index, DISTANCE), k)
            for tile in self._tiles(first, end):
                sums = self._kept(tile, first)
                self._keep(tile, first, self._added(tile, sums, (x, y), ks))
        for tile in self._tiles(first, end):
            self._store(tile, matrix, self._kept(tile, first))

    def _tiles(self, first: Reg, end: Reg) -> Iterator[_Tile]:
        """Writes loops over a run's tiles: large ones, then single vectors at its end."""
        b, width = self.b, self.vectors * self.lanes
        count = subtract(b, end, first)
        whole = b.add(first, b.mul(divide(b, count, integer(width))[0], width))
        if not same(self.product.n // width, 0):
            with b.loop(first, whole, width) as loop:
                yield _Tile(loop.index, self.vectors)
        if not multiple(self.product.n, width):
            with b.loop(whole, end, self.lanes) as loop:
                yield _Tile(loop.index, 1, end)

    def _zeros(self, tile: _Tile) -> Sums:
        return [constant(0, self.type)] * (self.rows * self.chains * tile.vectors)

    def _kept(self, tile: _Tile, first: Reg) -> Sums:
        """Loads the sums of a tile of the run that begins at `first`."""
        return [self.b.load(self.type, place, 8) for place in self._places(tile, first)]

    def _keep(self, tile: _Tile, first: Reg, sums: Sums) -> None:
        for place, value in zip(self._places(tile, first), sums, strict=True):
            self.b.store(value, place, 8)

    def _places(self, tile: _Tile, first: Reg) -> list[Reg]:
        b, size = self.b, self.dtype.size
        base = b.offset(self.own, b.mul(subtract(b, tile.column, first), size))
        return [
            b.offset(base, line * self.run * size + v * self.bytes)
            for line in range(self.rows * self.chains)
            for v in range(tile.vectors)
        ]

    def _added(
        self, tile: _Tile, sums: Sums, operands: tuple[Reg, Reg], ks: tuple[Reg, Reg]
    ) -> Sums:
        """The sums after steps `ks` of k; a few rows at a time, as registers allow."""
        each = self.chains * tile.vectors
        found: Sums = []
        for row in range(0, self.rows, self.high):
            rows = range(row, min(row + self.high, self.rows))
            some = sums[row * each : rows.stop * each]
            found += self._rows(tile, some, operands, ks, rows)
        return found

    def _rows(
        self, tile: _Tile, sums: Sums, operands: tuple[Reg, Reg], ks: tuple[Reg, Reg], rows: range
    ) -> Sums:
        b, product, size = self.b, self.product, self.product.dtype.size
        x, y = operands
        x = scaled(
            b, scaled(b, x, ks[0], product.x_step, size), integer(rows.start), product.x_row, size
        )
        y = scaled(b, scaled(b, y, tile.column, 1, size), ks[0], product.y_step, size)
        x_steps = [b.mul(integer(i * size), product.x_step) for i in range(self.chains + 1)]
        y_steps = [b.mul(integer(i * size), product.y_step) for i in range(self.chains + 1)]
        lines = [b.mul(integer(i * size), product.x_row) for i in range(len(rows))]
        mask = (
            None
            if tile.end is None
            else first_lanes(b, subtract(b, tile.end, tile.column), self.lanes)
        )
        ahead = b.mul(integer(DISTANCE * size), product.y_step)

        def step(sums: Sums, x: Reg, y: Reg, chain: int) -> None:
            places = [b.offset(y, v * self.lanes * size) for v in range(tile.vectors)]
            if self.passes:
                for place in places:
                    prefetch(b, b.offset(place, ahead), SECOND)
            vectors = [
                read(b, place, self.lanes, product.dtype, self.dtype, mask) for place in places
            ]
            for r, line in enumerate(lines):
                factor = read(b, b.offset(x, line), 1, product.dtype, self.dtype, None)
                factor = b.splat(factor, self.lanes)
                for v, vector in enumerate(vectors):
                    i = (r * self.chains + chain) * tile.vectors + v
                    sums[i] = fma(b, factor, vector, sums[i])

        count = subtract(b, ks[1], ks[0])
        quads, left = divide(b, count, integer(self.chains))
        with b.loop(0, quads, 1, [*sums, x, y]) as loop:
            *now, x_now, y_now = loop.carried
            for chain in range(self.chains):
                step(now, b.offset(x_now, x_steps[chain]), b.offset(y_now, y_steps[chain]), chain)
            loop.next = [*now, b.offset(x_now, x_steps[-1]), b.offset(y_now, y_steps[-1])]
        *sums, x, y = loop.results
        if multiple(product.k, self.chains):
            return sums
        for chain in range(self.chains - 1):  # one more step of the first ones
            with b.loop(chain, smaller(b, left, chain + 1), 1, sums) as loop:
                now = list(loop.carried)
                step(now, b.offset(x, x_steps[chain]), b.offset(y, y_steps[chain]), chain)
                loop.next = now
            sums = loop.results
        return sums

    def _store(self, tile: _Tile, matrix: Reg, sums: Sums) -> None:
        """Adds the sums of each result, and gives them to the sink."""
        b, vectors = self.b, tile.vectors
        each = self.chains * vectors
        for v in range(vectors):
            values: list[Reg] = []
            for row in range(self.rows):
                chains = sums[row * each + v : (row + 1) * each : vectors]
                while len(chains) > 1:
                    pairs = zip(chains[::2], chains[1::2], strict=True)
                    chains = [b.binary("fadd", *pair) for pair in pairs]
                values += chains
            column = b.add(tile.column, v * self.lanes)
            end = integer(self.product.n) if tile.end is None else tile.end
            self.store(values, matrix, column, end, tile.end is None)

"""Stores a tile of finished sums: which of them, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft.codegen.builder import Builder, Reg, integer
from weft.codegen.contraction.emit import scaled, smaller, subtract, without
from weft.codegen.contraction.plan import Plan
from weft.codegen.contraction.product import Product
from weft.codegen.contraction.sink import Plain, Sink
from weft.codegen.microkernel import Accumulators, Ahead, Tile, first_lanes
from weft.ir.extent import multiple

UNROLLED = 150
"""Maximum epilogue instructions that are unrolled over a tile's vectors, not looped."""

STREAMED = 16 << 20
"""Bytes of output from which stores are non-temporal, which saves reading the lines first, provided
that it and the operands are twice as many: else it stays in L3 (16384 x 128 x 256: 16% faster
through the caches). Not row by row, which the hardware prefetches (4096 x 4 x 25088: 33 ms
non-temporal, 26 cached).
"""


@dataclass
class Sizes:
    """Integers of one matmul, as constants or as registers loaded from slots."""

    m: Reg
    n: Reg
    k: Reg
    x_row: Reg
    x_step: Reg
    y_step: Reg
    y_column: Reg
    depth: Reg
    blocks: Reg
    down: Reg
    across: Reg
    tall: Reg
    wide: Reg
    items: Reg
    group: Reg


def _at_once() -> None:
    """The number of vectors to finish together: one after the other."""


class Finish:
    """Writes the code that gives sums to the sink; `matrix` is the number of the current one."""

    def __init__(self, b: Builder, product: Product, plan: Plan, sink: Sink, sizes: Sizes) -> None:
        self.b = b
        self.product = product
        self.plan = plan
        self.tile = plan.tile
        self.sink = sink
        self.sizes = sizes
        self.matrix = integer(0)
        self.narrow = product.n < self.tile.columns
        self.ragged = not (
            multiple(product.m, self.tile.rows) and multiple(product.n, self.tile.columns)
        )
        out_bytes = int(product.count * product.m * product.n) * product.dtype.size
        read = int(product.count * product.k * (product.m + product.n)) * product.dtype.size
        self.streams = (
            isinstance(sink, Plain)
            and not plan.by_rows
            and product.dtype is self.tile.dtype
            and not product.pairs
            and multiple(product.n, self.tile.lanes)
            and out_bytes >= STREAMED
            and out_bytes + read > 2 * STREAMED
        )
        space = self.tile.rows * self.tile.columns * self.tile.dtype.size
        self.spill = b.emit("ptr", f"alloca [{space} x i8], align 64")

    def tile_at(self, sums: Accumulators, i: Reg, j: Reg) -> None:
        """Gives the finished sums of tile (i, j) to the sink, those inside the output."""
        b, s, tile = self.b, self.sizes, self.tile
        row, column = b.mul(i, tile.rows), b.mul(j, tile.columns)
        if not self.ragged:
            self._store_whole(sums, row, column)
            return
        fits = b.binary(
            "and",
            b.compare("icmp sle", b.add(row, tile.rows), s.m),
            b.compare("icmp sle", b.add(column, tile.columns), s.n),
        )
        whole, part, after = b.label("whole"), b.label("part"), b.label("after")
        b.branch(fits, whole, part)
        b.start(whole)
        self._store_whole(sums, row, column)
        b.jump(after)
        b.start(part)
        self._store_edge(sums, row, column)
        b.jump(after)
        b.start(after)

    def ahead(self, i: Reg, j: Reg) -> list[Ahead]:
        """What storing tile (i, j) touches, to prefetch."""
        b, tile = self.b, self.tile
        if self.streams:
            return []
        row = b.add(b.mul(self.matrix, self.sizes.m), b.mul(i, tile.rows))
        at = (row, b.mul(j, tile.columns), self.sizes.n)
        return self.sink.ahead(at, tile)

    def _store_whole(self, sums: Accumulators, row: Reg, column: Reg) -> None:
        """Stores a tile inside the output row by row, in a loop if there is much to do."""
        b, tile = self.b, self.tile
        if self.sink.cost * tile.rows * tile.vectors > UNROLLED:
            store_tile(b, tile, sums, self.spill)
            with b.loop(0, tile.rows) as loop:
                self._store_line(loop.index, b.add(row, loop.index), column, [None] * tile.vectors)
            return
        if self.streams:
            self._store_streaming(sums, row, column)
            return
        self.sink.reset()
        for r, values in enumerate(sums):
            self._store_row(values, b.add(row, r), column, [None] * tile.vectors)

    def _store_streaming(self, sums: Accumulators, row: Reg, column: Reg) -> None:
        b, sink, lanes = self.b, self.sink, self.tile.lanes
        assert isinstance(sink, Plain)
        past, through, after = b.label("past"), b.label("through"), b.label("after")
        b.branch(sink.aligned(), past, through)
        for label, store in ((past, sink.stream), (through, self._store_cached)):
            b.start(label)
            for r, values in enumerate(sums):
                line = b.add(b.add(b.mul(self.matrix, self.sizes.m), row), r)
                for v, value in enumerate(values):
                    store(value, (line, b.add(column, v * lanes), self.sizes.n))
            b.jump(after)
        b.start(after)

    def _store_cached(self, value: Reg, at: tuple[Reg, Reg, Reg]) -> None:
        self.sink.store(value, at, self.tile.lanes, None)

    def _store_edge(self, sums: Accumulators, row: Reg, column: Reg) -> None:
        """Stores a tile at the edge; one that starts early skips what another tile stores."""
        b, s, tile = self.b, self.sizes, self.tile
        store_tile(b, tile, sums, self.spill)
        row0 = smaller(b, row, b.add(s.m, -tile.rows))
        column0 = column if self.narrow else smaller(b, column, b.add(s.n, -tile.columns))
        masks: list[Reg | None] = []
        for v in range(tile.vectors):
            shift = -v * tile.lanes
            skipped = first_lanes(b, b.add(subtract(b, column, column0), shift), tile.lanes)
            inside = first_lanes(b, b.add(subtract(b, s.n, column0), shift), tile.lanes)
            masks.append(without(b, inside, skipped))
        with b.loop(subtract(b, row, row0), tile.rows, at_least_once=True) as loop:
            self._store_line(loop.index, b.add(row0, loop.index), column0, masks)

    def _store_line(self, index: Reg, row: Reg, column: Reg, masks: Sequence[Reg | None]) -> None:
        """Stores line `index` of the spilled tile, inside a loop over its lines."""
        b, tile = self.b, self.tile
        size = tile.lanes * tile.dtype.size
        line = scaled(b, self.spill, index, tile.vectors * size, 1)
        values = [b.load(tile.type, b.offset(line, v * size), 8) for v in range(tile.vectors)]
        self.sink.reset()
        with b.interleaved() as next_run:
            self._store_row(values, row, column, masks, next_run)

    def _store_row(
        self, values: Sequence[Reg], row: Reg, column: Reg, masks: Sequence[Reg | None],
        next_run: Callable[[], None] = _at_once,
    ) -> None:  # fmt: skip
        b, lanes = self.b, self.tile.lanes
        for v, (value, mask) in enumerate(zip(values, masks, strict=True)):
            next_run()
            at = (
                b.add(b.mul(self.matrix, self.sizes.m), row),
                b.add(column, v * lanes),
                self.sizes.n,
            )
            self.sink.store(value, at, lanes, mask)


def load_tile(b: Builder, tile: Tile, pointer: Reg) -> Accumulators:
    """Loads sums that `store_tile` wrote."""
    size = tile.lanes * tile.dtype.size
    return [
        [
            b.load(tile.type, b.offset(pointer, (r * tile.vectors + v) * size), 8)
            for v in range(tile.vectors)
        ]
        for r in range(tile.rows)
    ]


def store_tile(b: Builder, tile: Tile, sums: Accumulators, pointer: Reg) -> None:
    """Stores sums unchanged, vector after vector."""
    size = tile.lanes * tile.dtype.size
    for index, value in enumerate(value for row in sums for value in row):
        b.store(value, b.offset(pointer, index * size), 8)

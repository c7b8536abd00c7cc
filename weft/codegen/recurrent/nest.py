"""Shared by recurrent kernels: packed weights, sums of an item, the states' rows.

A step is a launch of its own, as only launches are barriers. All steps run one kernel, which takes
the position of the step from integer slots. The weights are packed once per sequence; every step
then streams them, each chunk the same columns. The rows that all columns are multiplied with (h, or
the gates' cotangents) are kept beside the stacked arrays in two copies, read and written in turn,
whose rows are an odd number of cache lines apart: in the stacked arrays they would fall into one
cache set, sixteen rows in eight ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from weft.codegen.builder import Builder, Reg, constant, integer, kernel_builder, memory_type
from weft.codegen.chunk import even_chunks
from weft.codegen.contraction.emit import copy_run, divide, scaled, smaller, subtract
from weft.codegen.contraction.finish import load_tile, store_tile
from weft.codegen.contraction.panel import RightPanel
from weft.codegen.contraction.product import Product
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.microkernel import (
    Accumulators,
    Right,
    first_lanes,
    load_masked,
    microkernel,
    prefetch,
    store_masked,
    strided,
)
from weft.codegen.recurrent.problem import Sequence, most_of, step_tile
from weft.codegen.target import Target
from weft.host.memory import LINE
from weft.ir.extent import Extent, multiple
from weft.ir.node import Value
from weft.passes.launch import Argument, Kernel, Launch, Scratch

DEPTH = 256
"""Steps of k at a time: 16 rows of them are 16 KB, half of L1."""
BAND = 16 * 1024
"""Bytes of sums of an item."""
WIDE = 4
"""Panels of an item: rows that are brought into the cache serve this many."""
PIECE = 4
"""Steps of k between prefetches of weights."""
AHEAD = 2 * 1024
"""Prefetch distance of weights in bytes, into L1: weights stream from L3 (or from memory), which
hardware prefetching does at 12 GB/s, and this at 17, as fast as two cores multiply. 6 KB and more,
or L2, lose.
"""


class Nest:
    """The kernels of one sequence: `depth` numbers of each row times `columns` of weights.

    `together`: groups of columns, one per gate, of which an item takes the same units.
    """

    def __init__(self, problem: Sequence, target: Target, depth: int, together: int) -> None:
        self.problem = problem
        self.target = target
        self.depth = depth
        self.together = together
        self.dtype = problem.dtype
        self.size = self.dtype.size
        self.tile = step_tile(problem.rows, problem.width, self.dtype, target)
        self.lanes = self.tile.lanes
        self.type = self.tile.type
        self.scalar = memory_type(self.dtype)
        self.blocks = ceil_div(problem.width, self.tile.columns)
        self.narrow = not multiple(problem.width, self.tile.columns)
        self.wide = 1 if together > 1 else most_of(WIDE, self.blocks)  # blocks of an item
        self.panels = together * self.wide  # of an item
        self.rounds = ceil_div(depth, DEPTH)  # blocks of k
        each = ceil_div(depth, self.rounds)
        self.most = ceil_div(each, self.lanes) * self.lanes  # numbers in a block of k
        self.run = self.most * self.tile.columns * self.size  # bytes of a panel's block of k
        self.tiles = ceil_div(problem.rows, self.tile.rows)
        self.tile_bytes = self.tile.rows * self.tile.columns * self.size
        band = BAND // (self.tile_bytes * self.panels)
        self.band = max(1, most_of(band, self.tiles))  # tiles
        self.bands = ceil_div(self.tiles, self.band)
        self.across = ceil_div(self.blocks, self.wide)
        self.items = even_chunks(self.across * self.bands)
        # Rows: whole vectors, an odd number of lines apart.
        columns = ceil_div(depth, self.lanes) * self.lanes
        lines = ceil_div(columns * self.size, LINE)
        self.pitch = (lines + 1 - lines % 2) * LINE
        self.copy_bytes = problem.rows * self.pitch
        self.weights = Scratch(self.across * self.rounds * self.panels * self.run + AHEAD + LINE)
        self.rows = Scratch(2 * self.copy_bytes + LINE)

    # -- before the first step

    def pack(self, w: Value, row: int, column: int) -> Launch:
        """Packs the weights; element (k, unit) of group g lies at `k * row + unit * column`."""
        b, tile = kernel_builder(), self.tile
        along = column == 1  # the units of a step of k are adjacent
        count = ceil_div(self.depth, self.lanes) if along else self.across * self.rounds
        items = even_chunks(count)
        product = Product(1, 1, 1, 1, 1, row, column, self.dtype)
        panel = RightPanel(b, tile, product, self.narrow, self.target)
        source, goal = b.argument(0), b.argument(1)

        def copy(across: Reg, inner: Reg, k: Reg, most: int) -> None:
            zero, start = integer(0), b.mul(across, self.wide)
            gate, more = (inner, zero) if self.together > 1 else (zero, inner)
            unit = b.mul(b.add(start, more), tile.columns)
            place = scaled(b, source, gate, self.problem.width * column, self.size)
            place = scaled(b, scaled(b, place, unit, column, self.size), k, row, self.size)
            block, inside = divide(b, k, integer(self.most))
            to = self._run_at(b, goal, (across, block, inner))
            to = scaled(b, to, inside, tile.columns, self.size)
            room = subtract(b, integer(self.problem.width), unit)
            steps = smaller(b, subtract(b, integer(self.depth), k), most)
            panel.copy(place, to, steps, (integer(row), integer(column)), room)

        with items.loop(b) as item:
            if along:  # whole steps, for hardware prefetching
                with (
                    b.loop(0, self.across) as outer,
                    b.loop(0, self.panels_of(b, outer.index)) as inner,
                ):
                    copy(outer.index, inner.index, b.mul(item, self.lanes), self.lanes)
            else:  # all panels of a block of k, as those of adjacent units share pages
                across, block = divide(b, item, integer(self.rounds))
                with b.loop(0, self.panels_of(b, across)) as inner:
                    copy(across, inner.index, b.mul(block, self.most), self.most)
        kernel = Kernel(f"recurrent_pack_{self.problem.label}", b.module())
        moved = 2.0 * self.depth * self.problem.width * self.together * self.size
        return Launch(kernel, (w, self.weights), (1,), items.chunks, bytes=moved)

    def _run_at(self, b: Builder, weights: Reg, at: tuple[Reg, Reg, Reg]) -> Reg:
        """A panel's block of k; blocks lie in the order in which items read them."""
        across, block, panel = at
        place = b.add(b.mul(across, self.rounds), block)
        place = b.add(b.mul(place, self.panels), panel)
        return scaled(b, weights, place, self.run, 1)

    def copy_rows(self, source: Value, to: Scratch, pitch: int, columns: int) -> Launch:
        """Copies the dense rows of `source` into rows `pitch` bytes apart."""
        b = kernel_builder()
        x, y = b.argument(0), b.argument(1)
        with b.loop(0, self.problem.rows) as loop:
            copy_run(
                b, self.target, scaled(b, x, loop.index, columns, self.size),
                scaled(b, y, loop.index, pitch, 1), integer(columns), (self.dtype, self.dtype),
            )  # fmt: skip
        kernel = Kernel(f"recurrent_copy_{self.problem.label}", b.module())
        return Launch(
            kernel, (source, to), (1,), bytes=2.0 * self.problem.rows * columns * self.size
        )

    # -- one step

    def step(
        self, name: str, args: tuple[Argument, ...], writes: tuple[int, ...], ir: str,
        moved: float, multiplies: bool = True,
    ) -> Launch:  # fmt: skip
        """The launch of one step."""
        flops = self.problem.flops if multiplies else 0.0
        streamed = float(self.weights.size) if multiplies else 0.0
        return Launch(
            Kernel(f"{name}_{self.problem.label}", ir), args, writes, self.items.chunks,
            flops=flops, bytes=moved + streamed,
        )  # fmt: skip

    def item_loop(self, b: Builder, body: Callable[[Reg, Reg, Reg], None]) -> None:
        """Calls `body` with each item's number across, first tile and number of tiles."""
        with self.items.loop(b) as item:
            number, band = divide(b, item, integer(self.bands))
            tile = b.mul(band, self.band)
            count = smaller(b, subtract(b, integer(self.tiles), tile), self.band)
            body(number, tile, count)

    def space(self, b: Builder) -> Reg:
        """Allocates memory for the sums of an item; must precede any loop."""
        size = self.band * self.panels * self.tile_bytes
        return b.emit("ptr", f"alloca [{size} x i8], align 64")

    def multiply(
        self, b: Builder, sums: Reg, left: Reg, weights: Reg, item: tuple[Reg, Reg, Reg],
        rounds: Reg,
    ) -> None:  # fmt: skip
        """Multiplies an item into `sums`; `rounds` is the number of blocks of k, or 0."""
        across, tile, count = item
        vectors = self.panels * self.tile.rows * self.tile.vectors
        with b.loop(0, b.mul(count, vectors)) as loop:
            place = scaled(b, sums, loop.index, self.lanes * self.size, 1)
            b.store(Reg(self.type, "zeroinitializer"), place, self.size)
        panels = self.panels_of(b, across)
        with b.loop(0, rounds) as outer:
            k = b.mul(outer.index, self.most)
            depth: Reg | int = self.most
            if not multiple(self.depth, self.most):
                depth = smaller(b, subtract(b, integer(self.depth), k), self.most)
            with b.loop(0, count) as inner:
                row = self.row_of(b, b.add(tile, inner.index))
                start = scaled(b, left, row, self.pitch, 1)
                start = scaled(b, start, k, 1, self.size)
                with b.loop(0, panels) as loop:
                    run = self._run_at(b, weights, (across, outer.index, loop.index))
                    place = self.sum_at(b, sums, inner.index, loop.index)
                    self._tile(b, place, start, run, depth)

    def panels_of(self, b: Builder, across: Reg) -> Reg:
        """How many panels an item has."""
        if self.wide == 1:
            return integer(self.panels)
        return smaller(b, subtract(b, integer(self.blocks), b.mul(across, self.wide)), self.wide)

    def _tile(self, b: Builder, place: Reg, left: Reg, run: Reg, depth: Reg | int) -> None:
        """Adds a block of k to one tile of one panel, prefetching weights."""
        step = self.tile.columns * self.size
        sums = load_tile(b, self.tile, place)
        flat = [x for row in sums for x in row]
        pieces = (
            depth // PIECE
            if isinstance(depth, int)
            else b.binary("lshr", depth, integer(PIECE.bit_length() - 1))
        )
        with b.loop(0, pieces, 1, [*flat, run, left]) as loop:
            *flat, right, row = loop.carried
            for i in range(0, PIECE * step, LINE):
                prefetch(b, b.offset(right, AHEAD + i), 3)
            found = self._multiplied(b, self._tiled(flat), row, right, PIECE)
            loop.next = [x for line in found for x in line]
            loop.next += [b.offset(right, PIECE * step), b.offset(row, PIECE * self.size)]
        *flat, right, row = loop.results
        rest = (
            depth % PIECE if isinstance(depth, int) else b.binary("and", depth, integer(PIECE - 1))
        )
        store_tile(b, self.tile, self._multiplied(b, self._tiled(flat), row, right, rest), place)

    def _tiled(self, flat: list[Reg]) -> Accumulators:
        return [flat[i : i + self.tile.vectors] for i in range(0, len(flat), self.tile.vectors)]

    def _multiplied(
        self, b: Builder, sums: Accumulators, left: Reg, right: Reg, depth: Reg | int
    ) -> Accumulators:
        pitch = integer(self.pitch) if isinstance(self.pitch, Extent) else self.pitch
        operand = strided(b, left, pitch, self.tile.rows, self.size)
        weights = Right(right, self.tile.columns * self.size)
        return microkernel(
            b,
            self.tile,
            operand,
            weights,
            depth,
            sums,
            unroll=2 * PIECE if isinstance(depth, int) else 4,
        )

    def sum_at(self, b: Builder, sums: Reg, tile: Reg, panel: Reg | int) -> Reg:
        """The address of the sums of a tile (counted in the item) and a panel."""
        place = scaled(b, sums, tile, self.panels * self.tile_bytes, 1)
        return b.offset(
            place,
            b.mul(panel, self.tile_bytes) if isinstance(panel, Reg) else panel * self.tile_bytes,
        )

    def vectors(
        self, b: Builder, sums: Reg, across: Reg, tile: Reg, inside: Reg
    ) -> Iterator[tuple[Reg, Reg]]:
        """The vectors of a row of a tile, panel by panel: first unit, and address of its sums."""
        with b.loop(0, self.panels_of(b, across)) as loop:
            place = self.sum_at(b, sums, tile, loop.index)
            place = scaled(b, place, inside, self.tile.columns, self.size)
            block = b.add(b.mul(across, self.wide), loop.index)
            start = b.mul(block, self.tile.columns)
            for v in range(self.tile.vectors):
                yield b.add(start, v * self.lanes), b.offset(place, v * self.lanes * self.size)

    def row_of(self, b: Builder, tile: Reg) -> Reg:
        """The first row of a tile; the last tile starts early enough to end at the last row."""
        return smaller(b, b.mul(tile, self.tile.rows), self.problem.rows - self.tile.rows)

    def rows_loop(
        self, b: Builder, item: tuple[Reg, Reg, Reg], body: Callable[[Reg, Reg, Reg], None]
    ) -> None:
        """Calls `body` with each row, its tile (counted in the item) and its number in the tile."""
        _, tile, count = item
        with b.loop(0, count) as loop:
            number = b.add(tile, loop.index)
            first = self.row_of(b, number)
            again = subtract(b, b.mul(number, self.tile.rows), first)
            with b.loop(again, self.tile.rows, at_least_once=True) as inner:
                body(b.add(first, inner.index), loop.index, inner.index)

    def expect(
        self, b: Builder, item: tuple[Reg, Reg, Reg], lines: Callable[[Reg, Reg], Iterable[Reg]]
    ) -> None:
        """Prefetches `lines(row, unit)` for all rows and units of an item, before its matmul.

        Each is a separate cache line, 4 KB or more from the next, which the hardware does not
        prefetch.
        """
        across, _, _ = item
        first = b.mul(across, self.wide)

        def row(row: Reg, number: Reg, inside: Reg) -> None:
            blocks = integer(1) if self.wide == 1 else self.panels_of(b, across)
            with b.loop(0, blocks) as loop:
                unit = b.mul(b.add(first, loop.index), self.tile.columns)
                for place in lines(row, unit):
                    for i in range(0, self.tile.columns * self.size, LINE):
                        prefetch(b, b.offset(place, i), 2)

        self.rows_loop(b, item, row)

    # -- vectors of units

    def mask(self, b: Builder, unit: Reg) -> Reg | None:
        """Which units exist from `unit` on, if not all."""
        if not self.narrow:
            return None
        return first_lanes(b, subtract(b, integer(self.problem.width), unit), self.lanes)

    def read(self, b: Builder, place: Reg, mask: Reg | None) -> Reg:
        """A vector of an array."""
        if mask is None:
            return b.load(self.type, place, self.size)
        return load_masked(b, self.type, place, mask)

    def write(self, b: Builder, value: Reg, place: Reg, mask: Reg | None) -> None:
        """Store a vector to an array."""
        if mask is None:
            b.store(value, place, self.size)
        else:
            store_masked(b, value, place, mask)

    def line(self, b: Builder, array: Reg, line: Reg, parts: int, unit: Reg) -> Reg:
        """The address of `unit` in a line of `parts` times the width."""
        start = scaled(b, array, line, self.problem.width * parts, self.size)
        return scaled(b, start, unit, 1, self.size)

    def one(self) -> Reg:
        """Ones."""
        return constant(1, self.type)

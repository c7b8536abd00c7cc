"""What the steps of recurrent layers share: packed weights, sums of an item, the states' rows.

A step is a launch of its own, as nothing else is a barrier; all steps run one kernel, which takes
where the step lies from integer slots. The weights are copied into panels once a sequence; every
step then streams them, each chunk the same columns. The rows that all columns are multiplied with
(h, or the gates' cotangents) are kept beside the stacked arrays in two copies, read and written in
turn, whose rows are an odd number of cache lines apart: in the stacked arrays they would meet in
one cache set, sixteen rows in eight ways.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.codegen.builder import Builder, Reg, constant, integer, kernel_builder, memory_type
from weft.codegen.contraction.emit import copy_run, divide, scaled, smaller, subtract
from weft.codegen.contraction.finish import load_tile, store_tile
from weft.codegen.contraction.panel import RightPanel, right_bytes
from weft.codegen.contraction.plan import ceil_div
from weft.codegen.contraction.product import Product
from weft.codegen.kernel import Argument, Kernel, Launch, Scratch
from weft.codegen.microkernel import (
    Right,
    first_lanes,
    load_masked,
    microkernel,
    store_masked,
    strided,
)
from weft.codegen.recurrent.problem import Sequence, step_tile
from weft.codegen.target import Target
from weft.ir.node import Value

LINE = 64
DEPTH = 256
"""Steps of k at a time: 16 rows of them are 16 KB, half of the first-level cache."""
BAND = 16 * 1024
"""Bytes of sums of an item."""
WIDE = 4
"""Panels of an item: rows that are brought into the cache serve this many."""
CHUNKS = 64


class Nest:
    """The kernels of one sequence: `depth` numbers of each row times `columns` of weights.

    `together`: groups of columns, one a gate, of which an item takes the same units.
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
        self.narrow = bool(problem.width % self.tile.columns)
        self.wide = 1 if together > 1 else min(WIDE, self.blocks)  # blocks of an item
        self.panels = together * self.wide  # of an item
        self.panel_bytes = _lines(right_bytes(self.tile, depth))
        self.tiles = ceil_div(problem.rows, self.tile.rows)
        self.tile_bytes = self.tile.rows * self.tile.columns * self.size
        self.band = max(1, min(self.tiles, BAND // (self.tile_bytes * self.panels)))  # tiles
        self.bands = ceil_div(self.tiles, self.band)
        self.across = ceil_div(self.blocks, self.wide)
        self.items = self.across * self.bands
        self.group = ceil_div(self.items, CHUNKS)
        self.chunks = ceil_div(self.items, self.group)
        # Rows: whole vectors, an odd number of lines apart.
        columns = ceil_div(depth, self.lanes) * self.lanes
        self.pitch = (ceil_div(columns * self.size, LINE) | 1) * LINE
        self.copy_bytes = problem.rows * self.pitch
        self.weights = Scratch(max(1, self.blocks * together) * self.panel_bytes)
        self.rows = Scratch(2 * self.copy_bytes + LINE)

    # -- before the first step

    def pack(self, w: Value, row: int, column: int) -> Launch:
        """Copy the weights; element (k, unit) of group g lies at `k * row + unit * column`."""
        b, tile = kernel_builder(), self.tile
        count = self.blocks * self.together
        group = ceil_div(count, CHUNKS)
        apart = self.problem.width * column
        panel = RightPanel(
            b, tile, Product(1, 1, 1, 1, 1, row, column, self.dtype), self.narrow, self.target
        )
        source, goal = b.argument(0), b.argument(1)
        first = b.mul(b.params[1], group)
        last = smaller(b, b.mul(b.params[2], group), count)
        with b.loop(first, last) as loop:
            block, gate = divide(b, loop.index, integer(self.together))
            unit = b.mul(block, tile.columns)
            start = scaled(b, source, gate, apart, self.size)
            start = scaled(b, start, unit, column, self.size)
            to = scaled(b, goal, loop.index, self.panel_bytes, 1)
            room = subtract(b, integer(self.problem.width), unit)
            panel.copy(start, to, integer(self.depth), (integer(row), integer(column)), room)
        kernel = Kernel(f"recurrent_pack_{self.problem.label}", b.module())
        moved = 2.0 * count * self.panel_bytes
        return Launch(kernel, (w, self.weights), (1,), ceil_div(count, group), bytes=moved)

    def copy_rows(self, source: Value, to: Scratch, pitch: int, columns: int) -> Launch:
        """Copy the dense rows of `source` into rows `pitch` bytes apart."""
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
            Kernel(f"{name}_{self.problem.label}", ir), args, writes, self.chunks,
            flops=flops, bytes=moved + streamed,
        )  # fmt: skip

    def item_loop(self, b: Builder, body: Callable[[Reg, Reg, Reg], None]) -> None:
        """Call `body` with each item's first block, first tile and number of tiles."""
        first = b.mul(b.params[1], self.group)
        last = smaller(b, b.mul(b.params[2], self.group), self.items)
        with b.loop(first, last) as loop:
            number, band = divide(b, loop.index, integer(self.bands))
            tile = b.mul(band, self.band)
            count = smaller(b, subtract(b, integer(self.tiles), tile), self.band)
            body(b.mul(number, self.wide), tile, count)

    def space(self, b: Builder) -> Reg:
        """Memory for the sums of an item; to be asked for before any loop."""
        size = self.band * self.panels * self.tile_bytes
        return b.emit("ptr", f"alloca [{size} x i8], align 64")

    def multiply(
        self, b: Builder, sums: Reg, left: Reg, weights: Reg, item: tuple[Reg, Reg, Reg],
        rounds: Reg,
    ) -> None:  # fmt: skip
        """Products of an item into `sums`; `rounds` is the number of blocks of k, or 0."""
        block, tile, count = item
        most = ceil_div(self.depth, self.rounds)
        vectors = self.panels * self.tile.rows * self.tile.vectors
        with b.loop(0, b.mul(count, vectors)) as loop:
            place = scaled(b, sums, loop.index, self.lanes * self.size, 1)
            b.store(Reg(self.type, "zeroinitializer"), place, self.size)
        panels = self._panels_of(b, block)
        with b.loop(0, rounds) as outer:
            k = b.mul(outer.index, most)
            depth: Reg | int = most
            if self.depth % most:
                depth = smaller(b, subtract(b, integer(self.depth), k), most)
            with b.loop(0, count) as inner:
                row = self.row_of(b, b.add(tile, inner.index))
                start = scaled(b, left, row, self.pitch, 1)
                start = scaled(b, start, k, 1, self.size)
                with b.loop(0, panels) as across:
                    self._tile(
                        b, (sums, weights), start, (inner.index, across.index, block, k), depth
                    )

    @property
    def rounds(self) -> int:
        """Blocks of k."""
        return ceil_div(self.depth, DEPTH)

    def _panels_of(self, b: Builder, block: Reg) -> Reg:
        if self.wide == 1:
            return integer(self.panels)
        return smaller(b, subtract(b, integer(self.blocks), block), self.wide)

    def _tile(
        self, b: Builder, memory: tuple[Reg, Reg], left: Reg, at: tuple[Reg, Reg, Reg, Reg],
        depth: Reg | int,
    ) -> None:  # fmt: skip
        """Add a block of k to one tile of one panel."""
        sums, weights = memory
        number, panel, block, k = at
        place = self.sum_at(b, sums, number, panel)
        whole = b.add(b.mul(block, self.together), panel)
        source = scaled(b, weights, whole, self.panel_bytes, 1)
        source = scaled(b, source, k, self.tile.columns, self.size)
        right = Right(source, self.tile.columns * self.size)
        operand = strided(b, left, self.pitch, self.tile.rows, self.size)
        start = load_tile(b, self.tile, place)
        store_tile(b, self.tile, microkernel(b, self.tile, operand, right, depth, start), place)

    def sum_at(self, b: Builder, sums: Reg, tile: Reg, panel: Reg | int) -> Reg:
        """Where the sums of a tile (counted in the item) and a panel are."""
        place = scaled(b, sums, tile, self.panels * self.tile_bytes, 1)
        return b.offset(
            place,
            b.mul(panel, self.tile_bytes) if isinstance(panel, Reg) else panel * self.tile_bytes,
        )

    def row_of(self, b: Builder, tile: Reg) -> Reg:
        """The first row of a tile; the last tile begins early enough to end at the last row."""
        return smaller(b, b.mul(tile, self.tile.rows), self.problem.rows - self.tile.rows)

    def rows_loop(
        self, b: Builder, item: tuple[Reg, Reg, Reg], body: Callable[[Reg, Reg, Reg], None]
    ) -> None:
        """Call `body` with each row, its tile (counted in the item) and its number in the tile."""
        _, tile, count = item
        with b.loop(0, count) as loop:
            number = b.add(tile, loop.index)
            first = self.row_of(b, number)
            again = subtract(b, b.mul(number, self.tile.rows), first)
            with b.loop(again, self.tile.rows, at_least_once=True) as inner:
                body(b.add(first, inner.index), loop.index, inner.index)

    # -- vectors of units

    def mask(self, b: Builder, unit: Reg) -> Reg | None:
        """Which units from `unit` on there are, where not all."""
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


def _lines(size: int) -> int:
    return ceil_div(size, LINE) * LINE

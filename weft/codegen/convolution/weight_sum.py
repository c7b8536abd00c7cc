"""Stores the sums of a weight gradient between blocks, and reduces them to the result."""

from __future__ import annotations

from dataclasses import dataclass

from weft.codegen.builder import Builder, Reg, constant, integer, kernel_builder
from weft.codegen.chunk import Items
from weft.codegen.contraction.emit import divide, smaller, subtract
from weft.codegen.contraction.sink import Sink, launch_into
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.convolution.panels import group_of
from weft.codegen.convolution.weight_problem import WeightGradient
from weft.codegen.microkernel import Accumulators, Tile, first_lanes
from weft.ir.extent import largest
from weft.passes.launch import Kernel, Launch, Scratch

CHUNK = 32 * 1024
"""Elements that a chunk of the sum reads: some 10 us."""

Place = tuple[Reg, Reg, Reg]
"""A tile's panel of columns (all groups counted), its piece of a run, and its outer tap."""


@dataclass(frozen=True)
class Tiling:
    """Tiles of a gradient; their sums are contiguous tile by tile, in whole vectors.

    In the gradient itself a tile's rows are a power of two apart, in one L1 set.
    """

    tile: Tile
    groups: int
    columns: int  # of a group
    run: int  # adjacent rows: channels, and perhaps taps of the last axis
    height: int  # such runs in a tile
    taps: int  # how many times these runs make up the gradient

    @property
    def rows(self) -> int:
        """A tile's rows of each run."""
        return self.tile.rows // self.height

    @property
    def pieces(self) -> int:
        """Tiles down a run; the last one starts early."""
        return ceil_div(self.run, self.rows)

    @property
    def across(self) -> int:
        """Panels of a group."""
        return ceil_div(self.columns, self.tile.columns)

    @property
    def count(self) -> int:
        """Tiles in all."""
        return self.groups * self.across * self.pieces * self.taps

    @property
    def step(self) -> int:
        """Bytes of a vector."""
        return self.tile.lanes * self.tile.dtype.size

    @property
    def bytes(self) -> int:
        """Bytes of a tile."""
        return self.tile.rows * self.tile.vectors * self.step

    def row(self, b: Builder, piece: Reg) -> tuple[Reg, Reg]:
        """The start of a piece of a run, and how many of its rows belong to the one before."""
        wanted = b.mul(piece, self.rows)
        first = smaller(b, wanted, integer(self.run - self.rows))
        return first, subtract(b, wanted, first)

    def column(self, b: Builder, panel: Reg) -> tuple[Reg, Reg]:
        """The start of a panel among all columns, and within its group."""
        group, own = group_of(b, panel, self.across, self.groups)
        inside = b.mul(own, self.tile.columns)
        return b.add(b.mul(group, self.columns), inside), inside

    def masks(self, b: Builder, inside: Reg) -> tuple[Reg | None, ...]:
        """The lanes of a tile that hold columns."""
        tile = self.tile
        if self.columns % tile.columns == 0:
            return (None,) * tile.vectors
        rest = subtract(b, integer(self.columns), inside)
        return tuple(
            first_lanes(b, b.add(rest, -v * tile.lanes), tile.lanes) for v in range(tile.vectors)
        )

    def load(self, b: Builder, pointer: Reg) -> Accumulators:
        """A tile's sums."""
        tile = self.tile
        places = [b.offset(pointer, i * self.step) for i in range(tile.rows * tile.vectors)]
        flat = [b.load(tile.type, place, tile.dtype.size) for place in places]
        return [flat[i : i + tile.vectors] for i in range(0, len(flat), tile.vectors)]

    def store(self, b: Builder, sums: Accumulators, pointer: Reg) -> None:
        """Stores a tile's sums."""
        for i, value in enumerate(value for row in sums for value in row):
            b.store(value, b.offset(pointer, i * self.step), self.tile.dtype.size)

    def finish(self, b: Builder, sink: Sink, at: Place, pointer: Reg, parts: int) -> None:
        """Finishes a tile of the result: sums `parts` of them, a gradient's bytes apart."""
        panel, piece, tap = at
        row, skip = self.row(b, piece)
        column, inside = self.column(b, panel)
        masks = self.masks(b, inside)
        width = integer(self.groups * self.columns)
        with b.loop(0, self.height) as y, b.loop(skip, self.rows) as i:
            run = b.add(b.mul(tap, self.height), y.index)
            line = b.add(b.add(b.mul(run, self.run), row), i.index)
            own = b.add(b.mul(y.index, self.rows), i.index)
            place = b.offset(pointer, b.mul(own, self.tile.vectors * self.step))
            for v, mask in enumerate(masks):
                total = self._added(b, b.offset(place, v * self.step), parts)
                sink.reset()
                at = line, b.add(column, v * self.tile.lanes), width
                sink.store(total, at, self.tile.lanes, mask)

    def _added(self, b: Builder, place: Reg, parts: int) -> Reg:
        tile = self.tile
        if parts == 1:
            return b.load(tile.type, place, tile.dtype.size)
        with b.loop(0, parts, 1, [constant(0, tile.type)]) as loop:
            at = b.offset(place, b.mul(loop.index, self.count * self.bytes))
            value = b.load(tile.type, at, tile.dtype.size)
            loop.next = [b.binary("fadd", loop.carried[0], value)]
        return loop.results[0]


def launch_sum(
    problem: WeightGradient, parts: int, tiling: Tiling, partial: Scratch, sink: Sink
) -> Launch:
    """Adds `parts` gradients in order, so that results do not depend on threads."""
    share = largest(1, CHUNK // (tiling.tile.rows * tiling.tile.columns * parts))
    tiles = Items(tiling.count, share)
    b = kernel_builder()
    start = b.argument(0)
    sink.bind(b, 1)
    with tiles.loop(b) as item:
        rest, tap = divide(b, item, integer(tiling.taps))
        panel, piece = divide(b, rest, integer(tiling.pieces))
        place = b.offset(start, b.mul(item, tiling.bytes))
        tiling.finish(b, sink, (panel, piece, tap), place, parts)
    kernel = Kernel(f"sum_{parts}_{problem.label}", b.module())
    moved = (parts + 1.0) * problem.rows * problem.width * tiling.tile.dtype.size
    return launch_into(sink, kernel, (partial,), (), tiles.chunks, bytes_=moved)

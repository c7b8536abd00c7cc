"""Copies of a block of g, in panels of a tile's columns.

The copy reads whole positions in order, as caches fetch ahead; a panel read in place, 128 bytes of
every 1 KB or so, comes from memory a line at a time and meets few sets of the first cache.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.codegen.builder import Builder, Reg, integer
from weft.codegen.contraction.emit import divide, read, subtract
from weft.codegen.contraction.plan import ceil_div
from weft.codegen.convolution.halo import Image
from weft.codegen.microkernel import Tile, first_lanes

Spans = list[tuple[Reg, Reg]]


@dataclass(frozen=True)
class Panels:
    """Where the panels of a block lie, one after the other."""

    tile: Tile
    columns: int  # of a group
    pitches: tuple[int, int, int, int]  # bytes in a panel between images and positions
    bytes: int  # of a panel

    @property
    def across(self) -> int:
        """Panels of a group."""
        return ceil_div(self.columns, self.tile.columns)

    def column(self, b: Builder, panel: Reg) -> tuple[Reg, Reg]:
        """The first column of a panel among those of all groups, and in its own group."""
        group, own = divide(b, panel, integer(self.across))
        inside = b.mul(own, self.tile.columns)
        return b.add(inside, b.mul(group, self.columns)), inside

    def copy(
        self, b: Builder, image: Image, source: Reg, to: Reg, spans: Spans, share: tuple[Reg, Reg]
    ) -> None:
        """Copy the positions `spans` (start and count an axis) of `share`, a run of panels."""
        first, count = share
        with (
            b.loop(0, spans[0][1]) as n,
            b.loop(0, spans[1][1]) as z,
            b.loop(0, spans[2][1]) as y,
            b.loop(0, spans[3][1]) as x,
        ):
            place, goal = source, to
            indices = (n.index, z.index, y.index, x.index)
            for i, (start, _), own, pitch in zip(
                indices, spans, image.pitches, self.pitches, strict=True
            ):
                place = b.offset(place, b.mul(b.add(start, i), own))
                goal = b.offset(goal, b.mul(i, pitch))
            with b.loop(0, count) as panel:
                column, inside = self.column(b, b.add(first, panel.index))
                run = b.offset(place, b.mul(column, image.dtype.size))
                self._vectors(b, image, run, b.offset(goal, b.mul(panel.index, self.bytes)), inside)

    def _vectors(self, b: Builder, image: Image, source: Reg, to: Reg, inside: Reg) -> None:
        tile, size = self.tile, self.tile.dtype.size
        for v in range(tile.vectors):
            mask = None
            if self.columns % tile.columns:
                rest = subtract(b, integer(self.columns - v * tile.lanes), inside)
                mask = first_lanes(b, rest, tile.lanes)
            place = b.offset(source, v * tile.lanes * image.dtype.size)
            value = read(b, place, tile.lanes, image.dtype, tile.dtype, mask)
            b.store(value, b.offset(to, v * tile.lanes * size), size)

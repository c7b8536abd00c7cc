"""Packs a block of x or g into panels of adjacent channels.

The copy reads whole positions in order, as hardware prefetching needs. A panel read in place, 128
bytes of every 1 KB or so, comes from memory line by line and falls into few L1 sets. Panels of g
are as wide as a tile, padded with zeros; panels of x have the rows of a tile, and the last one
starts early.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.codegen.builder import Builder, Reg, integer
from weft.codegen.contraction.emit import divide, smaller, subtract
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.convolution.halo import Image, pitches_of
from weft.codegen.loop.prologue import Prologue
from weft.codegen.microkernel import first_lanes
from weft.host.memory import LINE
from weft.ir.dtype import DType

Extents = tuple[int, int, int, int]
Spans = list[tuple[Reg, Reg]]


def group_of(b: Builder, panel: Reg, across: int, groups: int) -> tuple[Reg, Reg]:
    """A panel's group, and its number in the group, of `across` panels each."""
    return (integer(0), panel) if groups == 1 else divide(b, panel, integer(across))


@dataclass(frozen=True)
class Panels:
    """The layout of a block's panels, one after the other."""

    extents: Extents  # images and positions of the largest block
    columns: int  # channels of a group
    width: int  # channels of a panel
    lanes: int
    dtype: DType
    groups: int = 1
    early: bool = False  # a group's last panel starts early

    @property
    def pitches(self) -> Extents:
        """Strides in a panel in bytes, of images and positions."""
        _, z, y, x = self.extents
        return pitches_of((z, y, x), self.width * self.dtype.size)

    @property
    def bytes(self) -> int:
        """Bytes of a panel: a spare line keeps panels in different cache sets."""
        return ceil_div(self.extents[0] * self.pitches[0], LINE) * LINE + LINE

    @property
    def across(self) -> int:
        """Panels of a group."""
        return ceil_div(self.columns, self.width)

    def column(self, b: Builder, panel: Reg) -> tuple[Reg, Reg]:
        """The first channel of a panel among all channels, and within its group."""
        group, own = group_of(b, panel, self.across, self.groups)
        inside = b.mul(own, self.width)
        if self.early:
            inside = smaller(b, inside, integer(self.columns - self.width))
        return b.add(inside, b.mul(group, self.columns)), inside

    def copy(
        self,
        b: Builder,
        image: Image,
        places: tuple[Reg, Reg],
        spans: Spans,
        share: tuple[Reg, Reg],
        source: Prologue,
        steps: Extents = (1, 1, 1, 1),
    ) -> None:
        """Packs a run of panels, `share`, between `places`: the first position's in each.

        `spans` counts images and positions; consecutive ones are `steps` apart in the image.
        """
        first, count = share
        with (
            b.loop(0, spans[0][1]) as n,
            b.loop(0, spans[1][1]) as z,
            b.loop(0, spans[2][1]) as y,
            b.loop(0, spans[3][1]) as x,
        ):
            place, goal = places
            indices = (n.index, z.index, y.index, x.index)
            for i, own, step, pitch in zip(
                indices, image.pitches, steps, self.pitches, strict=True
            ):
                place = b.offset(place, b.mul(i, own * step))
                goal = b.offset(goal, b.mul(i, pitch))
            with b.loop(0, count) as panel:
                column, inside = self.column(b, b.add(first, panel.index))
                run = b.offset(place, b.mul(column, image.dtype.size))
                to = b.offset(goal, b.mul(panel.index, self.bytes))
                self._vectors(b, source, run, to, (column, inside))

    def _vectors(
        self, b: Builder, source: Prologue, run: Reg, to: Reg, at: tuple[Reg, Reg]
    ) -> None:
        column, inside = at
        for begin, lanes in self._runs():
            mask = None
            if not self.early and self.columns % self.width:
                mask = first_lanes(b, subtract(b, integer(self.columns - begin), inside), lanes)
            place = b.offset(run, begin * source.dtype.size)
            value = source.read(place, b.add(column, begin), lanes, self.dtype, mask)
            b.store(value, b.offset(to, begin * self.dtype.size), self.dtype.size)

    def _runs(self) -> list[tuple[int, int]]:
        """Where vectors of a position begin, and their lanes: whole ones, then shorter ones."""
        runs: list[tuple[int, int]] = []
        begin, lanes = 0, self.lanes
        while begin < self.width:
            while begin + lanes > self.width:
                lanes //= 2
            runs.append((begin, lanes))
            begin += lanes
        return runs

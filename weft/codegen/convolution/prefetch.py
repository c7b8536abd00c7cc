"""Prefetches the weights of the next panel while the tiles of a block multiply by this one.

The first tile of a panel would read it from memory at a fifth of the speed at which it multiplies.
If few tiles follow, as for images of 7x7 or 14x14, that dominates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weft.codegen.builder import Builder, Reg, integer
from weft.codegen.contraction.emit import divide, fixed, subtract
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.convolution.geometry import Correlation
from weft.codegen.convolution.plan import Plan
from weft.codegen.microkernel import Ahead, Tile
from weft.codegen.target import Target
from weft.host.memory import LINE
from weft.ir.extent import same

MOST_TURNS: Final = 64
"""Tiles per block and panel beyond which the first one's misses do not matter."""


def next_panel(problem: Correlation, plan: Plan, turns: int, target: Target) -> NextPanel | None:
    """What to prefetch beside `turns` tiles of a block, if it pays."""
    tile, slices = plan.tile, plan.slices
    row = tile.columns * tile.dtype.size
    own = problem.packed_taps * problem.depth * row
    panels = problem.groups * ceil_div(problem.columns, tile.columns)
    if turns > MOST_TURNS or int(panels * own) <= target.l2 // 2:
        return None
    return NextPanel(tile, own, turns, slices, problem.depth * row // slices)


@dataclass(frozen=True)
class NextPanel:
    """The address of the next panel's weights, and how many tiles share in prefetching them."""

    tile: Tile
    panel_bytes: int
    turns: int
    slices: int
    slice_bytes: int  # distance to the same tap's weights of the next slice, for one tap

    def distance(self, b: Builder, part: Reg, panel: Reg, share: tuple[Reg, Reg]) -> Reg:
        """Distance to what is needed next: the next panel of the share, or the first one's next
        slice, or the next share.
        """
        following = integer(self.panel_bytes)
        if same(self.slices, 1):
            return following
        first, count = share
        own = b.mul(b.add(count, -1), self.panel_bytes)
        sliced = subtract(b, integer(self.slice_bytes), own)
        beyond = integer(self.panel_bytes - (self.slices - 1) * self.slice_bytes)
        is_last = b.compare("icmp eq", part, integer(self.slices - 1))
        after = b.emit("i64", f"select {is_last}, {beyond}, {sliced}")
        more = b.compare("icmp slt", b.add(panel, 1), b.add(first, count))
        return b.emit("i64", f"select {more}, {following}, {after}")

    def ahead(self, b: Builder, weights: Reg, steps: int, unroll: int, position: Reg) -> Ahead:
        """What one tile prefetches during `steps` steps.

        Args:
            weights: what the next panel has in place of this one's operand.
            position: of the tile in its block; a multiple of the tile's rows.
        """
        share = ceil_div(steps * self.tile.columns * self.tile.dtype.size, LINE * self.turns)
        lines = ceil_div(int(share), max(1, int(steps) // unroll))
        turn, _ = divide(b, position, integer(self.tile.rows))
        pointer = b.offset(weights, b.mul(turn, share * LINE))
        return Ahead(pointer, lines * LINE, lines, ceil_div(share, lines))


def part_of(b: Builder, ahead: Ahead, part: Reg, parts: Reg) -> Ahead:
    """What one of several loops over steps prefetches; everything if the part is unknown."""
    count = fixed(parts)
    if not count:
        return ahead
    times = ceil_div(ahead.times, count)
    away = b.mul(b.mul(part, times), ahead.stride)
    return ahead._replace(pointer=b.offset(ahead.pointer, away), times=times)

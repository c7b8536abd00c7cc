"""What is needed next, asked for while the tiles of a block multiply.

The weights of the next panel: its first tile would read it from memory at a fifth of the speed at
which it multiplies; where few tiles follow, as of images of 7x7 or 14x14, all wait for that. And
what the next block copies, as no arithmetic goes on beside the copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from weft.codegen.builder import Builder, Reg, integer
from weft.codegen.contraction.emit import divide, fixed, subtract
from weft.codegen.contraction.plan import ceil_div
from weft.codegen.convolution.geometry import Axis, Correlation
from weft.codegen.convolution.plan import Plan
from weft.codegen.microkernel import LINE, Ahead, Tile
from weft.codegen.target import Target

MOST_TURNS: Final = 64
"""Tiles of a block and panel beyond which waiting in the first one does not matter."""

FAR: Final = 8
"""Of how many second caches the arrays are that lie in memory, or in a cache that is shared."""


def next_panel(problem: Correlation, plan: Plan, turns: int, target: Target) -> NextPanel | None:
    """What to ask for beside `turns` tiles of a block, if that is worth while."""
    tile, slices = plan.tile, plan.slices
    row = tile.columns * tile.dtype.size
    own = problem.packed_taps * problem.depth * row
    panels = problem.groups * ceil_div(problem.columns, tile.columns)
    if turns > MOST_TURNS or panels * own <= target.l2 // 2:
        return None
    return NextPanel(tile, own, turns, slices, problem.depth * row // slices)


@dataclass(frozen=True)
class NextPanel:
    """Where the weights of the next panel lie, and how many tiles share in asking for them."""

    tile: Tile
    panel_bytes: int
    turns: int
    slices: int
    slice_bytes: int  # of one tap: how far the same tap's weights of the next slice lie

    def distance(self, b: Builder, part: Reg, panel: Reg, share: tuple[Reg, Reg]) -> Reg:
        """How far on lies what is needed next: the next panel of the share, or the first one's
        next slice, or the next share.
        """
        following = integer(self.panel_bytes)
        if self.slices == 1:
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
        """What one tile asks for on its way over `steps` steps.

        Args:
            weights: what the next panel has in the place of what this one multiplies by.
            position: of the tile in its block; a multiple of the tile's rows.
        """
        share = ceil_div(steps * self.tile.columns * self.tile.dtype.size, LINE * self.turns)
        turn, _ = divide(b, position, integer(self.tile.rows))
        return _share(b, weights, turn, share, steps // unroll)


def next_block(problem: Correlation, plan: Plan, turns: int, target: Target) -> NextBlock | None:
    """What to ask for beside `turns` tiles of a block and its panels, if that is worth while."""
    again = plan.shares > 1 and not plan.shares_first  # the same block for the next share
    phases = max(len(axis.phases) for axis in problem.axes)
    if not plan.copied or plan.slices > 1 or phases > 1 or again or plan.blocks[3] > 1:
        return None
    if problem.groups > 1 and problem.columns > 1:
        return None
    if problem.bytes <= FAR * target.l2:
        return None
    extents = (problem.images, *(axis.count * axis.stride for axis in problem.axes))
    block = prod(ceil_div(e, parts) for e, parts in zip(extents, plan.blocks, strict=True))
    own = block * problem.groups * problem.depth * problem.dtype.size
    return NextBlock(own, ceil_div(own, LINE * turns))


@dataclass(frozen=True)
class NextBlock:
    """How much of the source a block copies, and how many lines of it each turn asks for."""

    bytes: int
    share: int

    def ahead(self, b: Builder, source: Reg, turn: Reg, times: int) -> Ahead:
        """What a turn asks for, in `times` parts; `source` is where this block's begins."""
        return _share(b, b.offset(source, self.bytes), turn, self.share, times)


def beginning(
    b: Builder, source: Reg, spans: Sequence[tuple[Reg, Reg]], axes: Sequence[Axis],
    pitches: Sequence[int],
) -> Reg:  # fmt: skip
    """Where a block's source begins, but for what its first taps read before that."""
    for (start, _), axis, pitch in zip(spans, axes, pitches, strict=True):
        source = b.offset(source, b.mul(start, axis.stride * pitch))
    return source


def _share(b: Builder, start: Reg, turn: Reg, share: int, times: int) -> Ahead:
    """The lines of one turn of many, `share` each, in as many as `times` parts."""
    lines = ceil_div(share, max(1, times))
    pointer = b.offset(start, b.mul(turn, share * LINE))
    return Ahead(pointer, lines * LINE, lines, ceil_div(share, lines))


def part_of(b: Builder, ahead: Ahead, part: Reg, parts: Reg) -> Ahead:
    """What one of several loops over steps asks for; all of it where that is not known."""
    count = fixed(parts)
    if not count:
        return ahead
    times = ceil_div(ahead.times, count)
    away = b.mul(b.mul(part, times), ahead.stride)
    return ahead._replace(pointer=b.offset(ahead.pointer, away), times=times)

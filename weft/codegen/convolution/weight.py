"""The loops of a weight gradient around the microkernel.

A tile's rows are elements of (tap, channel), its columns are those of g, and the microkernel's
steps are adjacent positions along the last axis: it broadcasts elements of x, at a stride, and
reads runs of g.

    (before)      all of g packed in panels of a tile's columns, if several slices need it
    chunk         a part of the positions, and a slice of the gradient, which stays in L2
      block       positions whose x fits L2, and a panel of whose g fits L1
        (copy)    x and g in panels; or x with zeros around it, where rows join taps
          tile    sums are loaded from scratch, and stored back
            image, position   microkernel along the last axis, or the whole block

Without zeros around it, positions outside x are skipped: every tap has its own range of positions.
Meanwhile each tile prefetches its share of the source of the next block, or of the next panel.
If there are parts, a second launch adds their gradients in order, so that results do not depend on
threads; a single part finishes the tiles of its last block.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from math import prod

from weft.codegen.builder import Reg, integer
from weft.codegen.contraction.emit import divide, fixed, larger, smaller, subtract
from weft.codegen.contraction.sink import Sink
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.convolution.panels import group_of
from weft.codegen.convolution.piece import each, span, unflat
from weft.codegen.convolution.weight_layout import Layout, taps_of, tiling_of
from weft.codegen.convolution.weight_nest import (
    Block,
    Corner,
    Operand,
    Operands,
    WeightNest,
    launches_of,
)
from weft.codegen.convolution.weight_plan import Plan
from weft.codegen.convolution.weight_problem import WeightGradient
from weft.codegen.microkernel import (
    UNROLL,
    Accumulators,
    Address,
    Ahead,
    Left,
    Right,
    microkernel,
)
from weft.codegen.target import Target
from weft.host.memory import LINE
from weft.ir.extent import symbolic
from weft.passes.launch import Launch


def launch_weight_gradient(
    problem: WeightGradient, plan: Plan, target: Target, operands: Operands, sink: Sink
) -> tuple[Launch, ...]:
    """The launches: sums of each part, then their sum."""
    layout = Layout(problem, plan, tiling_of(problem, plan))
    return launches_of(_Kernel, layout, target, operands, sink)


@dataclass(frozen=True)
class _Tile:
    """A tile of the gradient, for the positions of a block."""

    taps: list[Reg]
    channel: Reg
    column: Reg  # the first, from where g is read
    masks: tuple[Reg | None, ...]
    x: Operand
    g: Operand
    ahead: list[Ahead]  # what each microkernel prefetches
    turn: Reg  # its number among the tiles of its panel of columns


class _Kernel(WeightNest):
    """The kernel of a weight gradient by microkernels."""

    def _work(self, block: Block, rows: Reg, columns: Reg) -> None:
        b, plan, tiling = self.b, self.plan, self.tiling
        panel, panels = span(b, columns, self.problem.groups * tiling.across, plan.slices[1])
        piece, pieces = span(b, rows, tiling.pieces, plan.slices[0])
        corner = Corner(panel, piece)
        packed = self._pack_g(block, (panel, panels)) if plan.packed else None
        begin = self._split_x(block, (piece, pieces)) if plan.split else []
        with (
            each(b, panel, b.add(panel, panels)) as across,
            each(b, piece, b.add(piece, pieces)) as down,
            contextlib.ExitStack() as stack,
        ):
            x = block.x
            if plan.split:
                panels_of_x = self.layout.splitting
                away = b.mul(subtract(b, down, piece), panels_of_x.bytes)
                x = Operand(b.offset(self.own, away), begin, panels_of_x.pitches)
            counts = taps_of(self.problem, plan)
            taps = [stack.enter_context(each(b, integer(0), integer(n))) for n in counts]
            self._item(block, corner, (across, down), taps, x, packed)

    def _pack_g(self, block: Block, share: tuple[Reg, Reg]) -> Reg:
        """Packs the block's g, unless a launch before has; the address of the slice's panels."""
        b, layout = self.b, self.layout
        here, to = self.g, b.offset(self.own, layout.x_bytes)
        if self.plan.before:
            number = b.add(b.mul(block.part, self.plan.cuts.each), block.number)
            number = b.mul(number, self.problem.groups * self.tiling.across)
            return b.offset(here, b.mul(b.add(number, share[0]), layout.packing.bytes))
        for (start, _), pitch in zip(block.spans, layout.g_image.pitches, strict=True):
            here = b.offset(here, b.mul(start, pitch))
        layout.packing.copy(b, layout.g_image, (here, to), block.spans, share, self.sources[1])
        return to

    def _split_x(self, block: Block, share: tuple[Reg, Reg]) -> list[Reg]:
        """Packs the block's x: of positions inside x, those that some tap reads.

        Returns:
            The position at which the panels begin.
        """
        b, sides, layout = self.b, self.problem.sides, self.layout
        image, panels = layout.x_image, layout.splitting
        here = b.offset(self.x, b.mul(block.spans[0][0], image.pitches[0]))
        to = self.own
        spans, steps, corner = [block.spans[0]], [1], [block.spans[0][0]]
        for i, side in enumerate(sides):
            begin, count = block.spans[i + 1]
            if layout.folded:
                first, stop = self._range(block, i, integer(0))
                slot = subtract(b, first, begin)
                position = b.add(b.mul(first, side.stride), -side.low)
                corner.append(begin)
            else:
                start = b.add(b.mul(begin, side.stride), -side.low)
                first = position = larger(b, start, integer(0))
                window = b.add(b.mul(b.add(count, -1), side.stride), side.window(1))
                stop = larger(b, first, smaller(b, b.add(start, window), integer(side.source)))
                slot = subtract(b, first, start)
                corner.append(start)
            here = b.offset(here, b.mul(position, image.pitches[i + 1]))
            to = b.offset(to, b.mul(slot, panels.pitches[i + 1]))
            spans.append((position, subtract(b, stop, first)))
            steps.append(side.stride if layout.folded else 1)
        n, z, y, x = steps
        panels.copy(b, image, (here, to), spans, share, self.sources[0], (n, z, y, x))
        return corner

    def _item(
        self, block: Block, corner: Corner, at: tuple[Reg, Reg], taps: list[Reg], x: Operand,
        packed: Reg | None,
    ) -> None:  # fmt: skip
        """One tile of the gradient: a panel of columns, a piece of a run, its outer taps."""
        b, problem, tiling = self.b, self.problem, self.tiling
        across, piece = at
        group, _ = group_of(b, across, tiling.across, problem.groups)
        row, _ = tiling.row(b, piece)
        column, inside = tiling.column(b, across)
        tap = integer(0)
        for i, count in zip(taps, taps_of(problem, self.plan), strict=True):
            tap = b.add(b.mul(tap, count), i)
        channel = b.add(row, b.mul(group, problem.channels))
        masks: tuple[Reg | None, ...] = (None,) * self.tile.vectors
        g = block.g
        if packed is not None:
            packing = self.layout.packing
            panel = b.mul(subtract(b, across, corner.panel), packing.bytes)
            begin = [start for start, _ in block.spans]
            g = Operand(b.offset(packed, panel), begin, packing.pitches)
        else:
            masks = tiling.masks(b, inside)
        ahead = self._ahead(block, corner, at, column, channel)
        turn = b.add(b.mul(subtract(b, piece, corner.piece), tiling.taps), tap)
        place = column if packed is None else integer(0)
        tile = _Tile(taps, channel, place, masks, x, g, ahead, turn)
        with self._kept(block, corner, (across, piece, tap)) as sums:
            sums[:] = self._sum(block, tile, sums)

    def _ahead(
        self, block: Block, corner: Corner, at: tuple[Reg, Reg], column: Reg, channel: Reg
    ) -> list[Ahead]:
        """The tile's share of prefetching the next block of its panels."""
        b, problem, plan, layout = self.b, self.problem, self.plan, self.layout
        if not plan.split or not all(side.pointwise for side in problem.sides):
            return []
        start = b.add(*block.spans[3])
        across, piece = at
        rows = self.tiling.rows
        near = max(1, LINE // (rows * problem.dtype.size))
        own = subtract(b, piece, corner.piece)
        _, neighbor = divide(b, piece, integer(near))
        left = b.add(b.mul(subtract(b, across, corner.panel), near), neighbor)
        wanted = [(self.x, layout.x_image, channel, left, near * layout.panels, rows)]
        if not plan.before:
            share = self.g, layout.g_image, column, own, layout.pieces, self.tile.columns
            wanted.append(share)
        asked: list[Ahead] = []
        for base, image, place, share, shares, width in wanted:
            times = ceil_div(int(layout.largest[3]), int(shares))
            pitch = image.pitches[3]
            first = b.mul(b.add(start, b.mul(share, times)), pitch)
            pointer = b.offset(b.offset(base, first), b.mul(place, image.dtype.size))
            lines = ceil_div(width * image.dtype.size, LINE)
            asked.append(Ahead(pointer, pitch, lines, times))
        return asked

    def _next_panel(self, block: Block, tile: _Tile, at: list[Reg]) -> list[Ahead]:
        """A share of prefetching the next panel of g, as panels are contiguous."""
        b, layout = self.b, self.layout
        if not self.plan.before:
            return []
        largest, size = layout.largest, layout.packing.bytes
        calls, depth, turn = int(prod(largest[:3])), int(largest[3]), tile.turn
        if layout.flat:
            calls, depth = 1, calls * depth
        else:
            for i, (start, _), count in zip(at, block.spans, largest, strict=False):
                turn = b.add(b.mul(turn, count), subtract(b, i, start))
        share = ceil_div(int(size), LINE * int(layout.pieces) * self.tiling.taps * calls)
        lines = ceil_div(share, max(1, depth // UNROLL))
        pointer = b.offset(b.offset(tile.g.base, size), b.mul(turn, share * LINE))
        return [Ahead(pointer, lines * LINE, lines, ceil_div(share, lines))]

    def _range(self, block: Block, i: int, tap: Reg) -> tuple[Reg, Reg]:
        """The positions of the block, on one axis, for which a tap lies inside x."""
        b, side = self.b, self.problem.sides[i]
        start, count = block.spans[i + 1]
        stop = b.add(start, count)
        if self.plan.copied or side.inside:
            return start, stop
        zero, stride = integer(0), integer(side.stride)
        away = subtract(b, integer(side.low), b.mul(tap, side.dilation))
        low, _ = divide(b, b.add(larger(b, away, zero), side.stride - 1), stride)
        past = b.add(integer(side.source + side.stride - 1), away)
        high, _ = divide(b, larger(b, past, zero), stride)
        first = larger(b, start, low)
        return first, larger(b, first, smaller(b, stop, high))

    def _sum(self, block: Block, tile: _Tile, start: Accumulators) -> Accumulators:
        """Adds the contributions of the block's positions to a tile."""
        b, vectors = self.b, self.tile.vectors
        ranges = [self._range(block, i, tap) for i, tap in enumerate(tile.taps)]
        first_image, images = block.spans[0]
        bounds = [(first_image, b.add(first_image, images)), ranges[0], ranges[1]]
        along = ranges[2]

        def nest(at: list[Reg], sums: Accumulators) -> Accumulators:
            if len(at) == 3:
                return self._run(block, tile, at, along, sums)
            begin, end = bounds[len(at)]
            flat = [register for row in sums for register in row]
            with b.loop(begin, end, 1, flat) as loop:
                added = nest([*at, loop.index], unflat(loop.carried, vectors))
                loop.next = [register for row in added for register in row]
            return unflat(loop.results, vectors)

        if self.layout.flat:
            return self._run(block, tile, [first for first, _ in bounds], along, start)
        return nest([], start)

    def _run(
        self, block: Block, tile: _Tile, at: list[Reg], along: tuple[Reg, Reg], sums: Accumulators
    ) -> Accumulators:
        """Adds adjacent positions along the last axis, or the whole block."""
        b, problem, layout, tiling = self.b, self.problem, self.layout, self.tiling
        stride = 1 if layout.folded else problem.sides[2].stride
        position = [*at, along[0]]
        source = [at[0]]
        for q, tap, side in zip(position[1:], tile.taps, problem.sides, strict=True):
            moved = b.add(b.mul(q, side.stride), b.mul(tap, side.dilation))
            source.append(q if layout.folded else b.add(moved, -side.low))
        x = tile.x.at(b, source)
        if not self.plan.split:
            x = b.offset(x, b.mul(tile.channel, layout.size))
        g = b.offset(tile.g.at(b, position), b.mul(tile.column, layout.size))
        up, height = problem.sides[1].dilation * tile.x.pitches[2], tiling.height
        lines = [(b.offset(x, y * up), 0) if symbolic(up) else (x, y * up) for y in range(height)]
        rows = tuple(
            Address(line, away + i * layout.size)
            for line, away in lines
            for i in range(tiling.rows)
        )
        left = Left(rows, stride * tile.x.pitches[3])
        right = Right(g, tile.g.pitches[3], tile.masks)
        depth = integer(1)
        if layout.flat:
            for _, own in block.spans:
                depth = b.mul(depth, own)
        else:
            depth = subtract(b, along[1], along[0])
        known = fixed(depth)
        # See `correlate`: rows must not read what adjacent rows read in an unrolled step.
        apart = int(stride * tile.x.pitches[3]) // layout.size
        unroll = UNROLL if tiling.rows <= apart else 1
        steps = depth if known is None else known
        asked = [*tile.ahead, *self._next_panel(block, tile, at)]
        return microkernel(b, self.tile, left, right, steps, sums, unroll, asked)

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
from math import prod

from weft.codegen.builder import Reg, integer
from weft.codegen.contraction.emit import divide, fixed, smaller, subtract
from weft.codegen.contraction.sink import Sink
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.convolution.halo import larger
from weft.codegen.convolution.piece import each, look_up, span, unflat
from weft.codegen.convolution.weight_nest import Operand, Operands, WeightNest
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
from weft.passes.launch import Launch


def launch_weight_gradient(
    problem: WeightGradient, plan: Plan, target: Target, operands: Operands, sink: Sink
) -> tuple[Launch, ...]:
    """The launches: sums of each part, then their sum."""
    return WeightKernel(problem, plan, target).launches(operands, sink)


class WeightKernel(WeightNest):
    """The kernel of a weight gradient by microkernels."""

    def _work(self, rows: Reg, columns: Reg) -> None:
        """The tiles of a slice: `rows` and `columns` are its numbers."""
        b, slices = self.b, self.plan.slices
        panel, panels = span(b, columns, self.problem.groups * self.panels, slices[1])
        piece, pieces = span(b, rows, self.across, slices[0])
        self.first_panel, self.first_piece = panel, piece
        if self.plan.packed:
            self.panels_at = b.offset(self.own, self.x_bytes)
        if self.plan.before:
            number = b.mul(self.block, self.problem.groups * self.panels)
            self.panels_at = b.offset(self.g, b.mul(b.add(number, panel), self.packing.bytes))
        elif self.plan.packed:
            here = self.g
            for (start, _), pitch in zip(self.spans, self.g_image.pitches, strict=True):
                here = b.offset(here, b.mul(start, pitch))
            places, share = (here, self.panels_at), (panel, panels)
            self.packing.copy(b, self.g_image, places, self.spans, share, self.sources[1])
        if self.plan.split:
            self._split_x((piece, pieces))
        with (
            each(b, panel, b.add(panel, panels)) as across,
            each(b, piece, b.add(piece, pieces)) as down,
        ):
            self._piece(across, down)

    def _split_x(self, share: tuple[Reg, Reg]) -> None:
        """Packs the block's x: of positions inside x, those that some tap reads."""
        b, sides = self.b, self.problem.sides
        here = b.offset(self.x, b.mul(self.spans[0][0], self.x_image.pitches[0]))
        to = self.own
        spans, steps, corner = [self.spans[0]], [1], [self.spans[0][0]]
        for i, side in enumerate(sides):
            begin, count = self.spans[i + 1]
            if self.folded:
                first, stop = self._range(i, integer(0))
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
            here = b.offset(here, b.mul(position, self.x_image.pitches[i + 1]))
            to = b.offset(to, b.mul(slot, self.splitting.pitches[i + 1]))
            spans.append((position, subtract(b, stop, first)))
            steps.append(side.stride if self.folded else 1)
        self.corner = corner
        n, z, y, x = steps
        source, image = self.sources[0], self.x_image
        self.splitting.copy(b, image, (here, to), spans, share, source, (n, z, y, x))

    def _piece(self, across: Reg, piece: Reg) -> None:
        """A panel of channels times a panel of columns: all taps."""
        b = self.b
        if self.plan.split:
            away = b.mul(subtract(b, piece, self.first_piece), self.splitting.bytes)
            self.left = Operand(b.offset(self.own, away), self.corner, self.splitting.pitches)
        with contextlib.ExitStack() as stack:
            taps = [stack.enter_context(each(b, integer(0), integer(count))) for count in self.taps]
            self._item(across, piece, taps)

    def _item(self, across: Reg, piece: Reg, taps: list[Reg]) -> None:
        """One tile of the gradient, for the positions of the block."""
        b, problem, tile = self.b, self.problem, self.tile
        group, _ = divide(b, across, integer(self.panels))
        row, _ = self.tiling.row(b, piece)
        column, inside = self.tiling.column(b, across)
        tap = integer(0)
        for i, count in zip(taps, self.taps, strict=True):
            tap = b.add(b.mul(tap, count), i)
        channel = b.add(row, b.mul(group, problem.channels))
        masks: tuple[Reg | None, ...] = (None,) * tile.vectors
        if self.plan.packed:
            panel = b.mul(subtract(b, across, self.first_panel), self.packing.bytes)
            base = b.offset(self.panels_at, panel)
            corner = [begin for begin, _ in self.spans]
            self.right = Operand(base, corner, self.packing.pitches)
        else:
            masks = self.tiling.masks(b, inside)
        ahead = self._ahead(across, piece, column, channel)
        self.turn = b.add(b.mul(subtract(b, piece, self.first_piece), self.tiling.taps), tap)
        place = integer(0) if self.plan.packed else column
        with self._kept((across, piece, tap)) as sums:
            sums[:] = self._sum(taps, channel, place, masks, sums, ahead)

    def _ahead(self, across: Reg, piece: Reg, column: Reg, channel: Reg) -> list[Ahead]:
        """The tile's share of prefetching the next block of its panels."""
        b, problem, plan = self.b, self.problem, self.plan
        if not plan.split or not all(side.pointwise for side in problem.sides):
            return []
        start, _ = span(b, self.following, problem.pixels, prod(plan.blocks))
        near = max(1, LINE // (self.tile_run * problem.dtype.size))
        own = subtract(b, piece, self.first_piece)
        _, neighbor = divide(b, piece, integer(near))
        left = b.add(b.mul(subtract(b, across, self.first_panel), near), neighbor)
        wanted = [(self.x, self.x_image, channel, left, near * self._panels(), self.tile_run)]
        if not plan.before:
            share = self.g, self.g_image, column, own, self._pieces(), self.tile.columns
            wanted.append(share)
        found: list[Ahead] = []
        for base, image, place, share, shares, width in wanted:
            times = ceil_div(self.largest[3], shares)
            pitch = image.pitches[3]
            first = b.mul(b.add(start, b.mul(share, times)), pitch)
            pointer = b.offset(b.offset(base, first), b.mul(place, image.dtype.size))
            lines = ceil_div(width * image.dtype.size, LINE)
            found.append(Ahead(pointer, pitch, lines, times))
        return found

    def _next_panel(self, at: list[Reg]) -> list[Ahead]:
        """A share of prefetching the next panel of g, as panels are contiguous."""
        b, plan = self.b, self.plan
        if not plan.before:
            return []
        calls, depth = prod(self.largest[:3]), self.largest[3]
        turn = self.turn
        if self.flat:
            calls, depth = 1, prod(self.largest)
        else:
            for i, (start, _), count in zip(at, self.spans, self.largest, strict=False):
                turn = b.add(b.mul(turn, count), subtract(b, i, start))
        share = ceil_div(self.packing.bytes, LINE * self._pieces() * self.tiling.taps * calls)
        iterations = max(1, depth // UNROLL)
        lines = ceil_div(share, iterations)
        pointer = b.offset(self.right.base, self.packing.bytes)
        pointer = b.offset(pointer, b.mul(turn, share * LINE))
        return [Ahead(pointer, lines * LINE, lines, ceil_div(share, lines))]

    def _range(self, i: int, tap: Reg) -> tuple[Reg, Reg]:
        """The positions of the block, on one axis, for which a tap lies inside x."""
        b, side = self.b, self.problem.sides[i]
        start, count = self.spans[i + 1]
        stop = b.add(start, count)
        if self.plan.copied or side.inside:
            return start, stop
        low, high = look_up(b, f"bounds{i}", [side.bounds(t) for t in range(side.taps)], tap)
        first = larger(b, start, low)
        return first, larger(b, first, smaller(b, stop, high))

    def _sum(
        self,
        taps: list[Reg],
        channel: Reg,
        column: Reg,
        masks: tuple[Reg | None, ...],
        start: Accumulators,
        ahead: list[Ahead],
    ) -> Accumulators:
        b, problem, tile = self.b, self.problem, self.tile
        ranges = [self._range(i, tap) for i, tap in enumerate(taps)]
        images = self.spans[0]
        bounds = [(images[0], b.add(images[0], images[1])), ranges[0], ranges[1]]
        first_x, stop_x = ranges[2]
        stride = 1 if self.folded else problem.sides[2].stride

        def inner(at: list[Reg], sums: Accumulators) -> Accumulators:
            position = [*at, first_x]
            source = [at[0]]
            for q, tap, side in zip(position[1:], taps, problem.sides, strict=True):
                moved = b.add(b.mul(q, side.stride), b.mul(tap, side.dilation))
                source.append(q if self.folded else b.add(moved, -side.low))
            x = self.left.at(b, source)
            if not self.plan.split:
                x = b.offset(x, b.mul(channel, self.size))
            g = b.offset(self.right.at(b, position), b.mul(column, self.size))
            up = problem.sides[1].dilation * self.left.pitches[2]
            rows = tuple(
                Address(x, y * up + i * self.size)
                for y in range(self.height)
                for i in range(self.tile_run)
            )
            left = Left(rows, stride * self.left.pitches[3])
            right = Right(g, self.right.pitches[3], masks)
            depth = self._positions() if self.flat else subtract(b, stop_x, first_x)
            known = fixed(depth)
            # See `correlate`: rows must not read what adjacent rows read in an unrolled step.
            apart = stride * self.left.pitches[3] // self.size
            unroll = UNROLL if self.tile_run <= apart else 1
            steps = depth if known is None else known
            asked = [*ahead, *self._next_panel(at)]
            return microkernel(b, tile, left, right, steps, sums, unroll, asked)

        def nest(at: list[Reg], sums: Accumulators) -> Accumulators:
            if len(at) == 3:
                return inner(at, sums)
            begin, end = bounds[len(at)]
            flat = [register for row in sums for register in row]
            with b.loop(begin, end, 1, flat) as loop:
                found = nest([*at, loop.index], unflat(loop.carried, tile.vectors))
                loop.next = [register for row in found for register in row]
            return unflat(loop.results, tile.vectors)

        return inner([first for first, _ in bounds], start) if self.flat else nest([], start)

    def _positions(self) -> Reg:
        """Positions of the block."""
        count = integer(1)
        for _, own in self.spans:
            count = self.b.mul(count, own)
        return count

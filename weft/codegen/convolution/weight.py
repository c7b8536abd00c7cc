"""The loops of a gradient by weights around the microkernel.

A tile's rows are elements of (tap, channel), its columns are those of g, and the microkernel's
steps are neighbouring positions along the last axis: it reads x at a stride, broadcast, and runs
of g.

    chunk         a part of the positions, and a slice of the gradient, which stays in L2
      block       positions whose x and g fit L2
        (copy)    x with zeros around it, where rows join taps or the type is a half
          tile    sums are loaded from the part's gradient, and stored back
            image, position   microkernel along the last axis

Without a copy, the zeros around x are left out instead: every tap has its own range of positions.
The parts' gradients are summed in order by a second launch, so that results do not depend on
threads.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from math import prod

from weft.codegen.builder import Builder, Reg, constant, integer, kernel_builder
from weft.codegen.contraction.emit import divide, fixed, read, scaled, smaller, subtract
from weft.codegen.contraction.plan import ceil_div
from weft.codegen.contraction.sink import Sink
from weft.codegen.convolution.correlate import each, look_up, span, unflat
from weft.codegen.convolution.geometry import Triple
from weft.codegen.convolution.halo import Image, choose, copy_block, larger, pitches_of
from weft.codegen.convolution.panels import Panels
from weft.codegen.convolution.weight_plan import Plan
from weft.codegen.convolution.weight_problem import WeightGradient
from weft.codegen.convolution.weight_sum import launch_sum
from weft.codegen.kernel import Argument, Kernel, Launch, Scratch
from weft.codegen.microkernel import (
    UNROLL,
    Accumulators,
    Address,
    Left,
    Right,
    first_lanes,
    microkernel,
    store_masked,
)
from weft.codegen.target import Target

LINE = 64


def launch_weight_gradient(
    problem: WeightGradient, plan: Plan, target: Target, operands: tuple[Argument, ...], sink: Sink
) -> tuple[Launch, ...]:
    """The launches: sums of each part, then their sum."""
    return WeightNest(problem, plan, target).launches(operands, sink)


@dataclass
class Operand:
    """x or g in memory, or a block of it in scratch."""

    base: Reg
    corner: list[Reg]  # position at `base`: image and axes
    pitches: tuple[int, int, int, int]

    def at(self, b: Builder, position: list[Reg]) -> Reg:
        """Where a position lies."""
        pointer = self.base
        for i, start, pitch in zip(position, self.corner, self.pitches, strict=True):
            pointer = b.offset(pointer, b.mul(subtract(b, i, start), pitch))
        return pointer


class WeightNest:
    """The kernel of one gradient by weights under construction."""

    def __init__(self, problem: WeightGradient, plan: Plan, target: Target) -> None:
        self.problem = problem
        self.plan = plan
        self.tile = plan.tile
        self.target = target
        self.size = problem.sums.size
        self.panels = ceil_div(problem.columns, self.tile.columns)
        self.run = problem.channels * (problem.sides[2].taps if plan.joined else 1)
        self.height = problem.sides[1].taps if plan.tall else 1
        self.tile_run = self.tile.rows // self.height
        self.across = ceil_div(self.run, self.tile_run)
        z, y, x = problem.sides
        self.taps: Triple = (z.taps, 1 if plan.tall else y.taps, 1 if plan.joined else x.taps)
        self.partial = problem.rows * problem.width * self.size
        extents = (problem.images, *(side.result for side in problem.sides))
        self.largest = [max(1, ceil_div(e, n)) for e, n in zip(extents, plan.blocks, strict=True)]
        channels = problem.groups * problem.channels
        self.x_image = Image((z.source, y.source, x.source), channels, problem.dtype)
        self.g_image = Image((z.result, y.result, x.result), problem.width, problem.dtype)
        counts = self.largest[1:]
        windows = [s.window(n) for s, n in zip(problem.sides, counts, strict=True)]
        self.x_copy = pitches_of((windows[0], windows[1], windows[2]), channels * self.size)
        self.g_copy = pitches_of((counts[0], counts[1], counts[2]), problem.width * self.size)
        lanes, kind = self.tile.lanes, problem.sums
        n, a, c, d = self.largest
        self.packing = Panels((n, a, c, d), problem.columns, self.tile.columns, lanes, kind)
        # Positions that no tap meets are left out.
        self.folded = plan.split and all(side.taps == 1 for side in problem.sides)
        a, c, d = counts if self.folded else windows
        self.splitting = Panels((n, a, c, d), self.run, self.tile_run, lanes, kind, early=True)
        self.widened = problem.dtype is not problem.sums
        self.x_bytes = (self.largest[0] * self.x_copy[0] // LINE + 1) * LINE if plan.copied else 0
        if plan.split:
            self.x_bytes = ceil_div(self.across, plan.slices[0]) * self.splitting.bytes
        self.scratch = self.x_bytes
        if plan.packed:
            panels = ceil_div(problem.groups * self.panels, plan.slices[1])
            self.scratch += panels * self.packing.bytes
        elif self.widened:
            self.scratch += ceil_div(self.largest[0] * self.g_copy[0], LINE) * LINE

    def launches(self, operands: tuple[Argument, ...], sink: Sink) -> tuple[Launch, ...]:
        """The launches on x and g."""
        problem, plan = self.problem, self.plan
        partial = Scratch(max(LINE, plan.parts * self.partial))
        args: list[Argument] = [*operands, partial]
        writes = [2]
        if self.scratch:
            writes.append(3)
            args.append(Scratch(self.scratch, per_thread=True))
        kernel = Kernel(f"conv_grad_weight_{problem.label}", self._ir())
        first = Launch(
            kernel, tuple(args), tuple(writes), plan.chunks, (), problem.flops, problem.bytes
        )
        return first, launch_sum(problem, plan.parts, self.tile, partial, sink)

    def _ir(self) -> str:
        b = self.b = kernel_builder()
        self.x, self.g, self.out = b.argument(0), b.argument(1), b.argument(2)
        if self.scratch:
            self.own = b.offset(b.argument(3), b.mul(b.params[3], self.scratch))
        with b.loop(b.params[1], b.params[2]) as loop:
            rest, columns = divide(b, loop.index, integer(self.plan.slices[1]))
            part, rows = divide(b, rest, integer(self.plan.slices[0]))
            self.sums = b.offset(self.out, b.mul(part, self.partial))
            first, count = span(b, part, prod(self.plan.blocks), self.plan.parts)
            with each(b, first, b.add(first, count)) as block:
                self.fresh = b.compare("icmp eq", block, first)
                self._block(block)
                self._work(rows, columns)
        return b.module()

    def _work(self, rows: Reg, columns: Reg) -> None:
        """The tiles of a slice: `rows` and `columns` are its numbers."""
        b, slices = self.b, self.plan.slices
        panel, panels = span(b, columns, self.problem.groups * self.panels, slices[1])
        piece, pieces = span(b, rows, self.across, slices[0])
        self.first_panel, self.first_piece = panel, piece
        if self.plan.packed:
            here = self.g
            for (start, _), pitch in zip(self.spans, self.g_image.pitches, strict=True):
                here = b.offset(here, b.mul(start, pitch))
            places = here, b.offset(self.own, self.x_bytes)
            self.packing.copy(b, self.g_image, places, self.spans, (panel, panels))
        if self.plan.split:
            self._split_x((piece, pieces))
        with (
            each(b, panel, b.add(panel, panels)) as across,
            each(b, piece, b.add(piece, pieces)) as down,
        ):
            self._piece(across, down)

    def _split_x(self, share: tuple[Reg, Reg]) -> None:
        """Copy the block's x in panels: of positions inside x, those that some tap meets."""
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
        self.splitting.copy(b, self.x_image, (here, to), spans, share, (n, z, y, x))

    def _block(self, index: Reg) -> None:
        """Find the block's positions; copy its x and g if need be."""
        b, problem, plan = self.b, self.problem, self.plan
        extents = (problem.images, *(side.result for side in problem.sides))
        spans: list[tuple[Reg, Reg]] = []
        for extent, parts in zip(extents[::-1], plan.blocks[::-1], strict=True):
            index, i = divide(b, index, integer(parts))
            spans.insert(0, span(b, i, extent, parts))
        self.spans = spans
        nothing = [integer(0)] * 4
        self.left = Operand(self.x, nothing, self.x_image.pitches)
        self.right = Operand(self.g, nothing, self.g_image.pitches)
        if plan.copied:
            self.left = self._copied_x(spans)
        if self.widened and not plan.packed:
            self.right = self._copied_g(spans)

    def _copied_x(self, spans: list[tuple[Reg, Reg]]) -> Operand:
        b, sides = self.b, self.problem.sides
        corner = [
            b.add(b.mul(start, side.stride), -side.low)
            for (start, _), side in zip(spans[1:], sides, strict=True)
        ]
        z, y, x = (
            b.add(b.mul(count, side.stride), side.window(1) - side.stride)
            for (_, count), side in zip(spans[1:], sides, strict=True)
        )
        images = b.offset(self.x, b.mul(spans[0][0], self.x_image.pitches[0]))
        copy_block(
            b, self.target, self.x_image, images, self.own, (corner[0], corner[1], corner[2]),
            (spans[0][1], z, y, x), self.x_copy, self.problem.sums,
        )  # fmt: skip
        return Operand(self.own, [spans[0][0], *corner], self.x_copy)

    def _copied_g(self, spans: list[tuple[Reg, Reg]]) -> Operand:
        b = self.b
        to = b.offset(self.own, self.x_bytes)
        (n, z, y, x) = (start for start, _ in spans)
        a, c, d, e = (count for _, count in spans)
        images = b.offset(self.g, b.mul(n, self.g_image.pitches[0]))
        copy_block(
            b, self.target, self.g_image, images, to, (z, y, x), (a, c, d, e), self.g_copy,
            self.problem.sums,
        )  # fmt: skip
        return Operand(to, [n, z, y, x], self.g_copy)

    def _piece(self, across: Reg, piece: Reg) -> None:
        """A panel of channels against one of columns: all taps."""
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
        wanted_row = b.mul(piece, self.tile_run)
        row = smaller(b, wanted_row, integer(self.run - self.tile_run))
        column, inside = self.packing.column(b, across)
        masks = self._masks(inside)
        base = integer(0)
        for i, count in enumerate(self.taps):
            base = b.add(b.mul(base, count), taps[i])
        base = b.add(b.mul(base, self.run * self.height), row)
        places = self._places(base, column)
        start = [[self._start(p, v, masks) for v in range(tile.vectors)] for p in places]
        channel = b.add(row, b.mul(group, problem.channels))
        if self.plan.packed:
            panel = b.mul(subtract(b, across, self.first_panel), self.packing.bytes)
            base = b.offset(self.own, b.add(panel, self.x_bytes))
            corner = [begin for begin, _ in self.spans]
            self.right = Operand(base, corner, self.packing.pitches)
            sums = self._sum(taps, channel, integer(0), (None,) * tile.vectors, start)
        else:
            sums = self._sum(taps, channel, column, masks, start)
        skip = subtract(b, wanted_row, row)
        for i, (place, values) in enumerate(zip(places, sums, strict=True)):
            if self.run % self.tile_run == 0:
                self._store(place, values, masks)
                continue
            with b.when(b.compare("icmp sle", skip, integer(i % self.tile_run))):
                self._store(place, values, masks)

    def _masks(self, column: Reg) -> tuple[Reg | None, ...]:
        tile, b = self.tile, self.b
        if self.problem.columns % tile.columns == 0:
            return (None,) * tile.vectors
        rest = subtract(b, integer(self.problem.columns), column)
        return tuple(
            first_lanes(b, b.add(rest, -v * tile.lanes), tile.lanes) for v in range(tile.vectors)
        )

    def _places(self, row: Reg, column: Reg) -> list[Reg]:
        """Where the tile's rows lie in the part's gradient."""
        b, pitch = self.b, self.problem.width * self.size
        first = b.offset(scaled(b, self.sums, row, pitch, 1), b.mul(column, self.size))
        return [
            b.offset(first, (y * self.run + i) * pitch)
            for y in range(self.height)
            for i in range(self.tile_run)
        ]

    def _start(self, place: Reg, v: int, masks: tuple[Reg | None, ...]) -> Reg:
        b, tile, mask = self.b, self.tile, masks[v]
        place = b.offset(place, v * tile.lanes * self.size)
        value = read(b, place, tile.lanes, tile.dtype, tile.dtype, mask)
        return choose(b, self.fresh, constant(0, tile.type), value)

    def _store(self, place: Reg, values: list[Reg], masks: tuple[Reg | None, ...]) -> None:
        b, step = self.b, self.tile.lanes * self.size
        for v, (value, mask) in enumerate(zip(values, masks, strict=True)):
            if mask is None:
                b.store(value, b.offset(place, v * step), self.size)
            else:
                store_masked(b, value, b.offset(place, v * step), mask)

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
            depth = subtract(b, stop_x, first_x)
            known = fixed(depth)
            # See `correlate`: rows must not read what their neighbours read in an unrolled step.
            apart = stride * self.left.pitches[3] // self.size
            unroll = UNROLL if self.tile_run <= apart else 1
            return microkernel(
                b, tile, left, right, depth if known is None else known, sums, unroll
            )

        def nest(at: list[Reg], sums: Accumulators) -> Accumulators:
            if len(at) == 3:
                return inner(at, sums)
            begin, end = bounds[len(at)]
            flat = [register for row in sums for register in row]
            with b.loop(begin, end, 1, flat) as loop:
                found = nest([*at, loop.index], unflat(loop.carried, tile.vectors))
                loop.next = [register for row in found for register in row]
            return unflat(loop.results, tile.vectors)

        return nest([], start)

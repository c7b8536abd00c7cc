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
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from weft.codegen.builder import Builder, Reg, integer, kernel_builder
from weft.codegen.contraction.emit import divide, fixed, smaller, subtract
from weft.codegen.contraction.plan import ceil_div
from weft.codegen.contraction.sink import Sink
from weft.codegen.convolution.geometry import Triple
from weft.codegen.convolution.halo import Image, choose, copy_block, larger, pitches_of
from weft.codegen.convolution.panels import Panels, spans_of
from weft.codegen.convolution.piece import each, look_up, span, unflat
from weft.codegen.convolution.weight_plan import Plan
from weft.codegen.convolution.weight_problem import WeightGradient
from weft.codegen.convolution.weight_sum import Place, Tiling, launch_sum
from weft.codegen.loop.prologue import Prologue
from weft.codegen.microkernel import (
    UNROLL,
    Accumulators,
    Address,
    Ahead,
    Left,
    Right,
    microkernel,
    zeros,
)
from weft.codegen.target import Target
from weft.passes.launch import Argument, Kernel, Launch, Scratch

LINE = 64
Operands = tuple[Prologue, Prologue]
"""How x and g are read."""


def launch_weight_gradient(
    problem: WeightGradient, plan: Plan, target: Target, operands: Operands, sink: Sink
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
        """The address of a position."""
        pointer = self.base
        for i, start, pitch in zip(position, self.corner, self.pitches, strict=True):
            pointer = b.offset(pointer, b.mul(subtract(b, i, start), pitch))
        return pointer


class WeightNest:
    """The kernel of one weight gradient under construction."""

    def __init__(self, problem: WeightGradient, plan: Plan, target: Target) -> None:
        self.problem = problem
        self.plan = plan
        self.tile = plan.tile
        self.target = target
        self.size = problem.sums.size
        self.panels = ceil_div(problem.columns, self.tile.columns)
        z, y, x = problem.sides
        self.taps: Triple = (z.taps, 1 if plan.tall else y.taps, 1 if plan.joined else x.taps)
        self.tiling = self._tiling()
        self.height, self.tile_run = self.tiling.height, self.tiling.rows
        self.run, self.across = self.tiling.run, self.tiling.pieces
        self.extents = problem.images, z.result, y.result, x.result
        cuts = zip(self.extents, plan.blocks, strict=True)
        self.largest = [max(1, ceil_div(e, n)) for e, n in cuts]
        channels = problem.groups * problem.channels
        self.x_image = Image((z.source, y.source, x.source), channels, problem.dtype)
        self.g_image = Image((z.result, y.result, x.result), problem.width, problem.dtype)
        counts = self.largest[1:]
        windows = [s.window(n) for s, n in zip(problem.sides, counts, strict=True)]
        self.x_pixel = self._apart(channels * self.size)
        self.x_copy = pitches_of((windows[0], windows[1], windows[2]), self.x_pixel)
        self.g_copy = pitches_of((counts[0], counts[1], counts[2]), problem.width * self.size)
        lanes, kind = self.tile.lanes, problem.sums
        n, a, c, d = self.largest
        self.packing = Panels((n, a, c, d), problem.columns, self.tile.columns, lanes, kind)
        # Positions that no tap reads are skipped.
        self.folded = plan.split and all(side.taps == 1 for side in problem.sides)
        # Then the block's panels of x and g hold the same positions, one after the other.
        self.flat = self.folded and problem.inside
        a, c, d = counts if self.folded else windows
        self.splitting = Panels((n, a, c, d), self.run, self.tile_run, lanes, kind, early=True)
        self.widened = problem.dtype is not problem.sums
        self.x_bytes = (self.largest[0] * self.x_copy[0] // LINE + 1) * LINE if plan.copied else 0
        if plan.split:
            self.x_bytes = self._pieces() * self.splitting.bytes
        self.scratch = self.x_bytes
        if plan.packed and not plan.before:
            self.scratch += self._panels() * self.packing.bytes
        elif self.widened and not plan.packed:
            self.scratch += ceil_div(self.largest[0] * self.g_copy[0], LINE) * LINE
        self.sums_at = self.scratch
        if plan.parts == 1:
            across, down = self._panels(), self._pieces()
            self.scratch += across * down * self.tiling.taps * self.tiling.bytes

    def _apart(self, pixel: int) -> int:
        """Strides of a copy of x in bytes, with `pixel` bytes per position."""
        return pixel

    def _tiling(self) -> Tiling:
        problem, plan = self.problem, self.plan
        run = problem.channels * (problem.sides[2].taps if plan.joined else 1)
        height = problem.sides[1].taps if plan.tall else 1
        return Tiling(self.tile, problem.groups, problem.columns, run, height, prod(self.taps))

    def _panels(self) -> int:
        """Maximum panels of columns in a slice."""
        return ceil_div(self.tiling.groups * self.tiling.across, self.plan.slices[1])

    def _pieces(self) -> int:
        """Maximum pieces of a run in a slice."""
        return ceil_div(self.across, self.plan.slices[0])

    def launches(self, operands: Operands, sink: Sink) -> tuple[Launch, ...]:
        """The launches on x and g."""
        problem, plan = self.problem, self.plan
        self.sources = operands
        args: list[Argument] = [source.array for source in operands]
        before: tuple[Launch, ...] = ()
        if plan.before:
            copy, args[1] = self.packing.launch(
                self.g_image, self.extents, plan.blocks, operands[1]
            )
            before = (copy,)
        args += [value for source in operands for value in source.values]
        own = len(args)
        after: tuple[Launch, ...] = ()
        inplace: tuple[tuple[int, int], ...] = ()
        if self.scratch:
            args.append(Scratch(self.scratch, per_thread=True))
        if plan.parts > 1:
            partial = Scratch(plan.parts * self.tiling.count * self.tiling.bytes)
            args.append(partial)
            after = (launch_sum(problem, plan.parts, self.tiling, partial, sink),)
        kernel = Kernel(f"conv_grad_weight_{problem.label}", self._ir(sink))
        writes = tuple(range(own, len(args)))
        if plan.parts == 1:
            at = len(args)
            args += sink.values
            writes = (*writes, *(at + i for i in sink.writes))
            inplace = tuple((at + i, at + j) for i, j in sink.inplace)
        first = Launch(
            kernel, tuple(args), writes, plan.chunks, inplace, problem.flops, problem.bytes
        )
        return *before, first, *after

    def _ir(self, sink: Sink) -> str:
        b, tiling = kernel_builder(), self.tiling
        self.b, self.sink = b, sink
        self.x, self.g = b.argument(0), b.argument(1)
        at = 2
        for source in self.sources:
            source.bind(b, at)
            at += len(source.values)
        if self.scratch:
            self.own = b.offset(b.argument(at), b.mul(b.params[3], self.scratch))
            at += 1
        if self.plan.parts > 1:
            self.out = b.argument(at)
        else:
            sink.bind(b, at)
        self.zero = b.emit("ptr", f"alloca [{tiling.bytes} x i8], align 64")
        tiling.store(b, zeros(tiling.tile), self.zero)
        with b.loop(b.params[1], b.params[2]) as loop:
            rest, columns = divide(b, loop.index, integer(self.plan.slices[1]))
            part, rows = divide(b, rest, integer(self.plan.slices[0]))
            first, count = span(b, part, prod(self.plan.blocks), self.plan.parts)
            with each(b, first, b.add(first, count)) as block:
                self.part = part
                self.fresh = b.compare("icmp eq", block, first)
                self.final = b.compare("icmp eq", block, b.add(b.add(first, count), -1))
                self.following = smaller(b, b.add(block, 1), prod(self.plan.blocks) - 1)
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

    def _block(self, index: Reg) -> None:
        """Finds the block's positions; copies its x and g if needed."""
        b, plan = self.b, self.plan
        self.block = index
        self.spans = spans = spans_of(b, index, self.extents, plan.blocks)
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
        channels, load = self.sources[0].whole()
        if self.x_pixel != self.x_image.channels * self.size:
            channels = integer(self.x_image.channels)
        copy_block(
            b, self.target, self.x_image, images, self.own, (corner[0], corner[1], corner[2]),
            (spans[0][1], z, y, x), self.x_copy, self.problem.sums, channels, load,
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

    @contextlib.contextmanager
    def _kept(self, at: Place) -> Iterator[Accumulators]:
        """Loads a tile's sums of the block before for the body to change, then stores them."""
        b, tiling = self.b, self.tiling
        panel, piece, tap = at
        if self.plan.parts > 1:
            start = b.offset(self.out, b.mul(self.part, tiling.count * tiling.bytes))
            number = b.add(b.mul(panel, self.across), piece)
        else:
            start = b.offset(self.own, self.sums_at)
            number = b.mul(subtract(b, panel, self.first_panel), self._pieces())
            number = b.add(number, subtract(b, piece, self.first_piece))
        number = b.add(b.mul(number, tiling.taps), tap)
        place = b.offset(start, b.mul(number, tiling.bytes))
        sums = tiling.load(b, choose(b, self.fresh, self.zero, place))
        yield sums
        tiling.store(b, sums, place)
        if self.plan.parts == 1:
            with b.when(self.final):
                tiling.finish(b, self.sink, at, place, 1)

    def _ahead(self, across: Reg, piece: Reg, column: Reg, channel: Reg) -> list[Ahead]:
        """The tile's share of prefetching the next block of its panels."""
        b, problem, plan = self.b, self.problem, self.plan
        if not plan.split or not all(side.pointwise for side in problem.sides):
            return []
        start, _ = span(b, self.following, problem.pixels, prod(plan.blocks))
        near = max(1, LINE // (self.tile_run * problem.dtype.size))
        own = subtract(b, piece, self.first_piece)
        _, neighbour = divide(b, piece, integer(near))
        left = b.add(b.mul(subtract(b, across, self.first_panel), near), neighbour)
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

"""The loops that all weight gradient kernels share: parts, blocks, copies of operands, sums."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from weft.codegen.builder import Builder, Reg, integer, kernel_builder
from weft.codegen.contraction.emit import divide, smaller, subtract
from weft.codegen.contraction.sink import Sink
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.convolution.geometry import Triple
from weft.codegen.convolution.halo import Image, choose, copy_block, pitches_of
from weft.codegen.convolution.panels import Panels, spans_of
from weft.codegen.convolution.piece import each, span
from weft.codegen.convolution.weight_plan import Plan
from weft.codegen.convolution.weight_problem import WeightGradient
from weft.codegen.convolution.weight_sum import Place, Tiling, launch_sum
from weft.codegen.loop.prologue import Prologue
from weft.codegen.microkernel import (
    Accumulators,
    zeros,
)
from weft.codegen.target import Target
from weft.host.memory import LINE
from weft.passes.launch import Argument, Kernel, Launch, Scratch

Operands = tuple[Prologue, Prologue]
"""How x and g are read."""


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


class WeightNest(ABC):
    """The kernel of one weight gradient under construction; subclasses write its tiles."""

    first_panel: Reg
    first_piece: Reg

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

    @abstractmethod
    def _work(self, rows: Reg, columns: Reg) -> None:
        """The tiles of a slice: `rows` and `columns` are its numbers."""

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

"""The loops that all convolution kernels share: chunks, blocks, phases, lines of tiles."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from weft.codegen.builder import Reg, integer, kernel_builder
from weft.codegen.contraction.emit import Load, divide, fixed, smaller, subtract
from weft.codegen.contraction.sink import Summing, launch_into
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.convolution.geometry import Axis, Correlation, Phase
from weft.codegen.convolution.halo import Image, copy_block, pitches_of
from weft.codegen.convolution.piece import Part, each, look_up, span
from weft.codegen.convolution.plan import Plan, pixel_bytes
from weft.codegen.convolution.prefetch import next_panel
from weft.codegen.convolution.tile_store import Some, TileStore
from weft.codegen.loop.prologue import Prologue
from weft.codegen.target import Target
from weft.host.memory import LINE
from weft.ir.dtype import DType
from weft.passes.launch import Argument, Kernel, Launch, Scratch

Line = tuple[Reg, Reg, Reg]
"""An image of the block and a position on the first two axes."""


class Nest(ABC):
    """The kernel of one convolution under construction; subclasses write its tiles."""

    phase: Reg
    waits: Reg

    def __init__(self, problem: Correlation, plan: Plan, target: Target, sink: Summing) -> None:
        self.problem = problem
        self.plan = plan
        self.tile = plan.tile
        self.target = target
        self.sink = sink
        self.panels = ceil_div(problem.columns, self.tile.columns)
        self.size = problem.sums.size
        a, b, c = problem.axes
        channels = problem.groups * problem.depth
        self.image = Image((a.source, b.source, c.source), channels, problem.dtype)
        self.largest = [
            ceil_div(extent, parts)
            for extent, parts in zip(
                (problem.images, a.count, b.count, c.count), plan.blocks, strict=True
            )
        ]
        n, z, y, x = self.largest
        self.pitches = self.image.pitches
        self.scratch = 0
        if plan.copied:
            windows = a.window(z), b.window(y), c.window(x)
            self.pitches = pitches_of(windows, pixel_bytes(problem, plan.slices))
            self.scratch = (n * self.pitches[0] // LINE + 1) * LINE
        # Sums of a slice, kept for the next: tile after tile, phase after phase.
        self.copy_bytes = self.scratch
        tiles = n * z * y * ceil_div(x, self.tile.rows)
        if plan.scattered:
            tiles = ceil_div(n * z * y * x, self.tile.rows)
        self.phase_bytes = tiles * self.tile.rows * self.tile.columns * self.size
        if plan.slices > 1:
            waiting = ceil_div(problem.groups * self.panels, plan.shares) * self._phases()
            self.scratch += waiting * self.phase_bytes
        self.next = next_panel(problem, plan, tiles, target)
        # What else the kernel reads and, last, writes.
        self.also: tuple[Argument, ...] = ()

    def launch(self, source: Prologue, weights: Argument) -> Launch:
        """The launch on the source and the packed weights."""
        self.sink.cut(self.plan.chunks)
        self.reads = source
        self.image = replace(self.image, planes=source.planes)
        args: list[Argument] = [source.array, weights, *source.values, *self.also]
        own = len(args) - (1 if self.also else 0)
        if self.scratch:
            args.append(Scratch(self.scratch, per_thread=True))
        kernel = Kernel(f"conv_{self.problem.label}", self._ir(len(args)))
        return launch_into(
            self.sink, kernel, args, range(own, len(args)), self.plan.chunks,
            self.problem.flops, self.problem.bytes,
        )  # fmt: skip

    def _ir(self, slot: int) -> str:
        b = self.b = kernel_builder()
        self.source, self.weights = b.argument(0), b.argument(1)
        self.reads.bind(b, 2)
        also = 2 + len(self.reads.values)
        self._bind(also)
        if self.scratch:
            own = b.argument(also + len(self.also))
            self.own = b.offset(own, b.mul(b.params[3], self.scratch))
        self.ending = TileStore(b, self.tile, self.sink)
        self.rows = b.emit("ptr", f"alloca [{self.tile.rows} x ptr], align 8")
        self.sink.bind(b, slot)
        with b.loop(b.params[1], b.params[2]) as loop:
            self._chunk(loop.index)
        if self.sink.streams:
            b.line("fence seq_cst")  # non-temporal stores are not ordered with what follows
        return b.module()

    def _bind(self, slot: int) -> None:
        """Loads the addresses of `also`, which start in argument slot `slot`."""
        if self.also:
            raise NotImplementedError

    def _chunk(self, index: Reg) -> None:
        b, problem, plan = self.b, self.problem, self.plan
        self.sink.begin(index)
        if plan.shares_first:
            share, rest = divide(b, index, integer(prod(plan.blocks)))
        else:
            rest, share = divide(b, index, integer(plan.shares))
        extents = (problem.images, *(axis.count for axis in problem.axes))
        blocks: list[tuple[Reg, Reg]] = []
        for extent, parts in zip(extents[::-1], plan.blocks[::-1], strict=True):
            rest, i = divide(b, rest, integer(parts))
            blocks.insert(0, span(b, i, extent, parts))
        self.blocks = blocks
        with each(b, integer(0), integer(plan.slices)) as part:
            self.part = part
            self.channels = span(b, part, problem.depth, plan.slices)
            self._find_source()
            self._work(share)

    def _phases(self) -> int:
        return prod(len(axis.phases) for axis in self.problem.axes)

    @abstractmethod
    def _work(self, share: Reg) -> None:
        """A chunk's work once its source is available: its share of the panels."""

    def _find_source(self) -> None:
        """Points `self.base` at the source of the block's first position; copies it if needed."""
        b, (images, *spans) = self.b, self.blocks
        axes = self.problem.axes
        corner = [
            b.add(b.mul(start, axis.stride), axis.low)
            for (start, _), axis in zip(spans, axes, strict=True)
        ]
        here = b.offset(self.source, b.mul(images[0], self.image.pitches[0]))
        if not self.plan.copied:
            for at, pitch in zip(corner, self.pitches[1:], strict=True):
                here = b.offset(here, b.mul(at, pitch))
            self.base = here
            return
        z, y, x = (
            b.add(b.mul(b.add(count, -1), axis.stride), axis.reach + 1)
            for (_, count), axis in zip(spans, axes, strict=True)
        )
        here = b.offset(here, b.mul(self.channels[0], self.problem.dtype.size))
        copy_block(
            b, self.target, self.image, here, self.own, (corner[0], corner[1], corner[2]),
            (images[1], z, y, x), self.pitches, self.problem.sums,
            *self._loads(),
        )  # fmt: skip
        self.base = self.own

    def _loads(self) -> tuple[Reg | None, Load | None]:
        """The channels that are copied, if not whole positions, and how they are loaded."""
        first, channels = self.channels
        channels = channels if self.plan.slices > 1 else integer(self.image.channels)
        apart = self.pitches[3] != self.image.channels * self.size
        if not self.reads.steps or self.reads.planes:
            return (channels if apart else None), None

        def load(place: Reg, index: Reg, lanes: int, to: DType, mask: Reg | None) -> Reg:
            return self.reads.read(place, self.b.add(first, index), lanes, to, mask)

        return channels, load

    def _part(self, i: int, axis: Axis, phase: Reg) -> Part:
        b, (start, count) = self.b, self.blocks[i + 1]
        if len(axis.phases) == 1:
            return self._part_of(i, axis, axis.phases[0])
        rows = [self._numbers(axis, p) for p in axis.phases]
        own, first, offset, tap, taps = look_up(b, f"phases{i}", rows, phase)
        count = smaller(b, count, subtract(b, own, start))
        return Part(start, count, first, offset, tap, taps)

    def _part_of(self, i: int, axis: Axis, phase: Phase) -> Part:
        """The part of one phase, if known."""
        b, (start, count) = self.b, self.blocks[i + 1]
        own, *others = self._numbers(axis, phase)
        if own < axis.count:
            count = smaller(b, count, subtract(b, integer(own), start))
        first, offset, tap, taps = map(integer, others)
        return Part(start, count, first, offset, tap, taps)

    def _numbers(self, axis: Axis, phase: Phase) -> tuple[int, ...]:
        offset = phase.offset - axis.low if phase.taps else 0
        return phase.count, phase.first, offset, phase.tap, phase.taps

    def _rows(self, parts: list[Part], base: Reg, weights: Reg) -> None:
        """All lines of the block."""
        with self._each_line(parts) as line:
            self._row(parts, base, weights, line)

    @contextlib.contextmanager
    def _each_line(self, parts: Sequence[Part]) -> Iterator[Line]:
        """Loops over images and the first two axes."""
        b = self.b
        with (
            each(b, integer(0), self.blocks[0][1]) as n,
            each(b, integer(0), parts[0].count) as z,
            each(b, integer(0), parts[1].count) as y,
        ):
            yield n, z, y

    def _row(self, parts: list[Part], base: Reg, weights: Reg, line: Line) -> None:
        """Tiles along the last axis."""
        b, rows, count = self.b, self.tile.rows, parts[2].count
        n, z, y = line
        with b.loop(0, count, rows) as loop:
            begin, skip = loop.index, None
            known = fixed(count)
            if known is None or known % rows:
                begin = smaller(b, loop.index, b.add(count, -rows))
                skip = subtract(b, loop.index, begin)
            self.at = (z, y, begin)
            pointer = self._source_at(base, (n, z, y, begin))
            self._find_sums(n, z, y, loop.index)
            self._tile(parts, pointer, weights, self._result_at(parts, (n, z, y, begin)), skip)

    @abstractmethod
    def _tile(
        self, parts: list[Part], pointer: Reg, weights: Reg, pixel: Reg, skip: Reg | None
    ) -> None:
        """One tile of adjacent positions from `pixel` on; the first `skip` are stored already."""

    def _after(self, skip: Reg | None) -> Some | None:
        """The rows of a tile after the first `skip`, if not all are stored."""
        if skip is None:
            return None
        whole = self.b.compare("icmp eq", skip, integer(0))
        return Some(skip, integer(self.tile.rows), whole)

    def _find_sums(self, n: Reg, z: Reg, y: Reg, x: Reg) -> None:
        """Finds the tile's index in its block, and its sums: `x` is a multiple of its rows."""
        b, rows = self.b, self.tile.rows
        _, depth, height, width = self.largest
        line = b.add(b.mul(b.add(b.mul(n, depth), z), height), y)
        self.place = b.add(b.mul(line, ceil_div(width, rows) * rows), x)
        if self.plan.slices > 1:
            self.waits = b.offset(self.phase, b.mul(self.place, self.tile.columns * self.size))

    def _source_at(self, base: Reg, at: tuple[Reg, ...] | list[Reg]) -> Reg:
        """The address that the first tap of a position reads."""
        b = self.b
        strides = (1, *(axis.stride for axis in self.problem.axes))
        for i, stride, pitch in zip(at, strides, self.pitches, strict=True):
            base = b.offset(base, b.mul(i, stride * pitch))
        return base

    def _result_at(self, parts: list[Part], at: tuple[Reg, ...] | list[Reg]) -> Reg:
        """The number of a position among all of the result's."""
        b = self.b
        pixel = b.add(self.blocks[0][0], at[0])
        for i, part, axis in zip(at[1:], parts, self.problem.axes, strict=True):
            own = b.add(b.mul(b.add(part.start, i), axis.step), part.first)
            pixel = b.add(b.mul(pixel, axis.result), own)
        return pixel

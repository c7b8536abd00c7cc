"""The loops that all convolution kernels share: chunks, blocks, phases, lines of tiles."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final

from weft.codegen.builder import Reg, integer, kernel_builder
from weft.codegen.contraction.emit import Load, divide, fixed, smaller, subtract
from weft.codegen.contraction.sink import Streaming, launch_into
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.convolution.geometry import Axis, Phase
from weft.codegen.convolution.halo import copy_block
from weft.codegen.convolution.layout import Layout
from weft.codegen.convolution.panels import Spans
from weft.codegen.convolution.piece import Part, each, look_up, span
from weft.codegen.convolution.plan import UNIT
from weft.codegen.convolution.tile_store import Some, TileStore
from weft.codegen.loop.prologue import Prologue
from weft.codegen.target import Target
from weft.ir.dtype import DType
from weft.ir.extent import multiple, same
from weft.passes.launch import Argument, Kernel, Launch, Scratch

Line = tuple[Reg, Reg, Reg]
"""An image of the block and a position on the first two axes."""


@dataclass(frozen=True)
class Slice:
    """A chunk's block of positions, for some of the source's channels."""

    block: Spans  # images and positions: first, and how many
    part: Reg  # its number
    channels: tuple[Reg, Reg]  # first, and how many
    base: Reg  # the source of the block's first position


@dataclass(frozen=True)
class Spot:
    """The first position of a tile."""

    at: Line  # on the three axes of the block
    place: Reg  # its number in the block; a multiple of the tile's rows
    waits: Reg | None  # where its sums are kept between slices
    source: Reg  # what its first tap reads
    pixel: Reg  # the number of the result
    skip: Reg | None  # how many rows are stored already


Tiles = Callable[[Spot], None]
"""Writes a tile."""


class Nest(ABC):
    """Writes the kernel of one convolution; subclasses write its tiles.

    Its registers are those of the whole kernel: arguments, and memory for a tile.
    """

    def __init__(self, layout: Layout, target: Target, source: Prologue, sink: Streaming) -> None:
        self.layout: Final = layout
        self.problem: Final = layout.problem
        self.plan: Final = layout.plan
        self.tile: Final = layout.plan.tile
        self.size: Final = layout.size
        self.pitches: Final = layout.pitches
        self.target: Final = target
        self.sink: Final = sink
        self.reads: Final = source
        self.image: Final = replace(layout.image, planes=source.planes)
        b = self.b = kernel_builder()
        self.source, self.weights = b.argument(0), b.argument(1)
        source.bind(b, 2)
        slot = 2 + len(source.values)
        self.own = self.source
        if layout.scratch:
            self.own = b.offset(b.argument(slot), b.mul(b.params[3], layout.scratch))
            slot += 1
        self.ending: Final = TileStore(b, self.tile, sink)
        self.rows: Final = b.emit("ptr", f"alloca [{self.tile.rows} x ptr], align 8")
        sink.bind(b, slot)

    def launch(self, weights: Argument) -> Launch:
        """The launch on the source and the packed weights."""
        problem, layout = self.problem, self.layout
        args: list[Argument] = [self.reads.array, weights, *self.reads.values]
        own = len(args)
        if layout.scratch:
            args.append(Scratch(layout.scratch, per_thread=True))
        kernel = Kernel(f"conv_{problem.label}", self._text())
        return launch_into(
            self.sink, kernel, args, range(own, len(args)), self.plan.chunks, problem.flops,
            problem.bytes,
        )  # fmt: skip

    def _text(self) -> str:
        b = self.b
        with b.loop(b.params[1], b.params[2]) as loop:
            self._chunk(loop.index)
        if self.sink.streams:
            b.line("fence seq_cst")  # non-temporal stores are not ordered with what follows
        return b.module()

    def _chunk(self, index: Reg) -> None:
        b, plan = self.b, self.plan
        if plan.shares_first:
            share, rest = divide(b, index, integer(prod(plan.blocks)))
        else:
            rest, share = divide(b, index, integer(plan.shares))
        block: Spans = []
        for extent, parts in zip(self.layout.extents[::-1], plan.blocks[::-1], strict=True):
            rest, i = divide(b, rest, integer(parts))
            block.insert(0, span(b, i, extent, parts))
        with each(b, integer(0), integer(plan.slices)) as part:
            channels = self._channels(part)
            base = self._source_of(block, channels)
            self._work(Slice(block, part, channels, base), share)

    def _channels(self, part: Reg) -> tuple[Reg, Reg]:
        """The channels of a slice: first, and how many."""
        b, depth, slices = self.b, self.problem.depth, self.plan.slices
        if multiple(depth, UNIT * slices) or same(slices, 1):
            return b.mul(part, depth // slices), integer(depth // slices)
        units = ceil_div(depth, UNIT)
        first, _ = divide(b, b.mul(part, units), integer(slices))
        end, _ = divide(b, b.mul(b.add(part, 1), units), integer(slices))
        start = b.mul(first, UNIT)
        return start, subtract(b, smaller(b, b.mul(end, UNIT), integer(depth)), start)

    @abstractmethod
    def _work(self, own: Slice, share: Reg) -> None:
        """A chunk's work on a slice: its share of the panels."""

    def _source_of(self, block: Spans, channels: tuple[Reg, Reg]) -> Reg:
        """The source of the block's first position; copies it if needed."""
        b, (images, *spans) = self.b, block
        axes = self.problem.axes
        corner = [
            b.add(b.mul(start, axis.stride), axis.low)
            for (start, _), axis in zip(spans, axes, strict=True)
        ]
        here = b.offset(self.source, b.mul(images[0], self.image.pitches[0]))
        if not self.plan.copied:
            for at, pitch in zip(corner, self.pitches[1:], strict=True):
                here = b.offset(here, b.mul(at, pitch))
            return here
        z, y, x = (
            b.add(b.mul(b.add(count, -1), axis.stride), axis.reach + 1)
            for (_, count), axis in zip(spans, axes, strict=True)
        )
        here = b.offset(here, b.mul(channels[0], self.problem.dtype.size))
        copy_block(
            b, self.target, self.image, here, self.own, (corner[0], corner[1], corner[2]),
            (images[1], z, y, x), self.pitches, self.problem.sums, *self._loads(channels),
        )  # fmt: skip
        return self.own

    def _loads(self, channels: tuple[Reg, Reg]) -> tuple[Reg | None, Load | None]:
        """The channels that are copied, if not whole positions, and how they are loaded."""
        first, count = channels
        count = count if self.plan.slices > 1 else integer(self.image.channels)
        apart = not same(self.pitches[3], self.image.channels * self.size)
        if not self.reads.steps or self.reads.planes:
            return (count if apart else None), None

        def load(place: Reg, index: Reg, lanes: int, to: DType, mask: Reg | None) -> Reg:
            return self.reads.read(place, self.b.add(first, index), lanes, to, mask)

        return count, load

    def _part(self, block: Spans, i: int, axis: Axis, phase: Reg) -> Part:
        b, (start, count) = self.b, block[i + 1]
        if len(axis.phases) == 1:
            return self._part_of(block, i, axis, axis.phases[0])
        rows = [self._numbers(axis, p) for p in axis.phases]
        first, offset, tap, taps = look_up(b, f"phases{i}", rows, phase)
        rest = subtract(b, integer(axis.result + axis.step - 1), first)
        own, _ = divide(b, rest, integer(axis.step))
        count = smaller(b, count, subtract(b, own, start))
        return Part(start, count, first, offset, tap, taps)

    def _part_of(self, block: Spans, i: int, axis: Axis, phase: Phase) -> Part:
        """The part of one phase, if known."""
        b, (start, count) = self.b, block[i + 1]
        if not same(phase.count, axis.count):
            count = smaller(b, count, subtract(b, integer(phase.count), start))
        first, offset, tap, taps = map(integer, self._numbers(axis, phase))
        return Part(start, count, first, offset, tap, taps)

    def _numbers(self, axis: Axis, phase: Phase) -> tuple[int, ...]:
        offset = phase.offset - axis.low if phase.taps else 0
        return phase.first, offset, phase.tap, phase.taps

    @contextlib.contextmanager
    def _each_part(self, block: Spans, numbered: bool = False) -> Iterator[tuple[list[Part], Reg]]:
        """Loops over the phases: their parts, and their number, which is 0 unless `numbered`."""
        b, parts, number = self.b, list[Part](), integer(0)
        with contextlib.ExitStack() as stack:
            for i, axis in enumerate(self.problem.axes):
                phase = stack.enter_context(each(b, integer(0), integer(len(axis.phases))))
                parts.append(self._part(block, i, axis, phase))
                if numbered:
                    number = b.add(b.mul(number, len(axis.phases)), phase)
            yield parts, number

    def _base(self, base: Reg, parts: list[Part]) -> Reg:
        """The address that the first tap of a phase reads."""
        for part, pitch in zip(parts, self.pitches[1:], strict=True):
            base = self.b.offset(base, self.b.mul(part.offset, pitch))
        return base

    def _rows(
        self, block: Spans, parts: list[Part], base: Reg, tiles: Tiles, phase: Reg | None = None
    ) -> None:
        """All lines of the block; `phase` has the sums that are kept between slices."""
        with self._each_line(block, parts) as line:
            self._row(block, parts, base, line, tiles, phase)

    @contextlib.contextmanager
    def _each_line(self, block: Spans, parts: Sequence[Part]) -> Iterator[Line]:
        """Loops over images and the first two axes."""
        b = self.b
        with (
            each(b, integer(0), block[0][1]) as n,
            each(b, integer(0), parts[0].count) as z,
            each(b, integer(0), parts[1].count) as y,
        ):
            yield n, z, y

    def _row(
        self, block: Spans, parts: list[Part], base: Reg, line: Line, tiles: Tiles,
        phase: Reg | None = None,
    ) -> None:  # fmt: skip
        """Tiles along the last axis."""
        b, rows, count = self.b, self.tile.rows, parts[2].count
        n, z, y = line
        with b.loop(0, count, rows) as loop:
            begin, skip = loop.index, None
            known = fixed(count)
            if known is None or known % rows:
                begin = smaller(b, loop.index, b.add(count, -rows))
                skip = subtract(b, loop.index, begin)
            at = n, z, y, begin
            source = self._source_at(base, at)
            place = self._place((n, z, y), loop.index)
            waits = self._waits(phase, place)
            pixel = self._result_at(block, parts, at)
            tiles(Spot((z, y, begin), place, waits, source, pixel, skip))

    def _after(self, skip: Reg | None) -> Some | None:
        """The rows of a tile after the first `skip`, if not all are stored."""
        if skip is None:
            return None
        whole = self.b.compare("icmp eq", skip, integer(0))
        return Some(skip, integer(self.tile.rows), whole)

    def _place(self, line: Line, x: Reg) -> Reg:
        """The number of a tile's first position in its block: `x` is a multiple of its rows."""
        b, rows, (n, z, y) = self.b, self.tile.rows, line
        _, depth, height, width = self.layout.largest
        number = b.add(b.mul(b.add(b.mul(n, depth), z), height), y)
        return b.add(b.mul(number, ceil_div(width, rows) * rows), x)

    def _waits(self, phase: Reg | None, place: Reg) -> Reg | None:
        """Where a tile's sums are kept between slices."""
        if phase is None:
            return None
        return self.b.offset(phase, self.b.mul(place, self.tile.columns * self.size))

    def _source_at(self, base: Reg, at: Sequence[Reg]) -> Reg:
        """The address that the first tap of a position reads."""
        b = self.b
        strides = (1, *(axis.stride for axis in self.problem.axes))
        for i, stride, pitch in zip(at, strides, self.pitches, strict=True):
            base = b.offset(base, b.mul(i, stride * pitch))
        return base

    def _result_at(self, block: Spans, parts: list[Part], at: Sequence[Reg]) -> Reg:
        """The number of a position among all of the result's."""
        b = self.b
        pixel = b.add(block[0][0], at[0])
        for i, part, axis in zip(at[1:], parts, self.problem.axes, strict=True):
            own = b.add(b.mul(b.add(part.start, i), axis.step), part.first)
            pixel = b.add(b.mul(pixel, axis.result), own)
        return pixel

"""The loops of a correlation around the microkernel.

    chunk           a block of images and positions, and a share of the panels of columns
      (slice)       of the channels, if there are many: tiles' sums wait in scratch meanwhile
        (copy)      its part of the source with the zeros around it, into this thread's scratch
        panel       `tile.columns` columns: their weights stay in L2
          phase     one for each residue of a strided gradient, else one in all
            tile    `tile.rows` positions
              tap   microkernel over the channels; with the taps of the last axis if joined

A last tile that would extend beyond the edge starts early and skips what is stored already.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from weft.codegen.builder import Reg, constant, integer, kernel_builder
from weft.codegen.contraction.emit import Load, divide, fixed, smaller, subtract
from weft.codegen.contraction.plan import ceil_div
from weft.codegen.contraction.sink import Summing
from weft.codegen.convolution.ahead import next_panel, part_of
from weft.codegen.convolution.ending import Columns, Ending, Some
from weft.codegen.convolution.geometry import Axis, Correlation, Phase
from weft.codegen.convolution.halo import Image, choose, copy_block, pitches_of
from weft.codegen.convolution.piece import Part, each, look_up, span, unflat
from weft.codegen.convolution.plan import Plan, pixel_bytes
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
from weft.ir.dtype import DType
from weft.passes.launch import Argument, Kernel, Launch, Scratch

Line = tuple[Reg, Reg, Reg]
"""An image of the block and a position on the first two axes."""
LINE = 64
SHORT = 128
"""Maximum steps beside which prefetching the output pays (64: 8 to 25%, 128: 5 to 10% of the time;
256 and more lose 2 to 10%, residuals read in the epilogue or not).
"""


def launch_correlation(
    problem: Correlation,
    plan: Plan,
    target: Target,
    source: Prologue,
    weights: Argument,
    sink: Summing,
) -> Launch:
    """The launch that computes the result from the source and packed weights."""
    return Nest(problem, plan, target, sink).launch(source, weights)


class Nest:
    """The kernel of one correlation under construction."""

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
        at = len(args)
        writes = (*range(own, at), *(at + i for i in self.sink.writes))
        inplace = tuple((at + i, at + j) for i, j in self.sink.inplace)
        kernel = Kernel(f"conv_{self.problem.label}", self._ir(at))
        return Launch(
            kernel, (*args, *self.sink.values), writes, self.plan.chunks, inplace,
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
        self.ending = Ending(b, self.tile, self.sink)
        self.rows = b.emit("ptr", f"alloca [{self.tile.rows} x ptr], align 8")
        self.sink.bind(b, slot)
        with b.loop(b.params[1], b.params[2]) as loop:
            self._chunk(loop.index)
        if self.sink.streams:
            b.line("fence seq_cst")  # non-temporal stores are not ordered with what follows
        return b.module()

    def _bind(self, slot: int) -> None:
        """Loads the addresses of `also`, which start in argument slot `slot`."""

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

    def _work(self, share: Reg) -> None:
        """A chunk's work once its source is available: its share of the panels."""
        b, problem, plan = self.b, self.problem, self.plan
        total = problem.groups * self.panels
        first, count = span(b, share, total, plan.shares)
        with each(b, first, b.add(first, count)) as panel:
            if self.next is not None:
                self.away = self.next.distance(b, self.part, panel, (first, count))
            if plan.slices > 1:
                waiting = b.mul(subtract(b, panel, first), self._phases() * self.phase_bytes)
                self.waiting = b.offset(b.offset(self.own, self.copy_bytes), waiting)
            self._panel(panel)

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

    def _panel(self, panel: Reg) -> None:
        """All positions of the block for one panel of columns of one group."""
        b, problem, tile = self.b, self.problem, self.tile
        group, across = divide(b, panel, integer(self.panels))
        column = b.mul(across, tile.columns)
        column_0 = b.add(b.mul(group, problem.columns), column)
        end = None
        if problem.columns % tile.columns:
            end = subtract(b, integer(problem.columns), column)
        self.columns = Columns(column_0, problem.groups * problem.columns, end)
        step = tile.columns * self.size
        own = problem.packed_taps * problem.depth * step
        start = b.mul(self.channels[0], step)
        self.panel = b.offset(b.offset(self.weights, b.mul(panel, own)), start)
        self.group = b.mul(group, problem.depth * self.size)
        with contextlib.ExitStack() as stack:
            parts: list[Part] = []
            number = integer(0)
            for i, axis in enumerate(problem.axes):
                phase = stack.enter_context(each(b, integer(0), integer(len(axis.phases))))
                parts.append(self._part(i, axis, phase))
                number = b.add(b.mul(number, len(axis.phases)), phase)
            if self.plan.slices > 1:
                self.phase = b.offset(self.waiting, b.mul(number, self.phase_bytes))
            self._phase(parts)

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

    def _phase(self, parts: list[Part]) -> None:
        b = self.b
        weights = integer(0)
        for part, axis in zip(parts, self.problem.axes, strict=True):
            weights = b.add(b.mul(weights, len(axis.order)), part.tap)
        step = self.problem.depth * self.tile.columns * self.size
        pointer = b.offset(self.panel, b.mul(weights, step))
        base = b.offset(self.base, self.group)
        for part, pitch in zip(parts, self.pitches[1:], strict=True):
            base = b.offset(base, b.mul(part.offset, pitch))
        if self.plan.scattered:
            self._scattered(parts, base, pointer)
        else:
            self._rows(parts, base, pointer)

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

    def _tile(
        self, parts: list[Part], pointer: Reg, weights: Reg, pixel: Reg, skip: Reg | None
    ) -> None:
        """One tile of adjacent positions from `pixel` on; the first `skip` are stored already."""
        b, axis = self.b, self.problem.axes[2]
        pitch = axis.stride * self.pitches[3]
        left = tuple(Address(pointer, row * pitch) for row in range(self.tile.rows))
        stored = self._stored(pixel) if axis.step == 1 else []
        sums = self._sum(left, parts, weights, stored)
        pixels = [b.add(pixel, row * axis.step) for row in range(self.tile.rows)]
        with self._last(sums):
            self.ending.store(sums, pixels, self.columns, self._after(skip))

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

    def _places(self) -> list[Reg]:
        """The places of a tile's sums between slices, one vector after the other."""
        tile = self.tile
        step = tile.lanes * self.size
        return [self.b.offset(self.waits, i * step) for i in range(tile.rows * tile.vectors)]

    def _start(self) -> Accumulators:
        """Initial sums of a tile: those of the slice before."""
        b, tile = self.b, self.tile
        if self.plan.slices == 1:
            return zeros(tile)
        fresh = b.compare("icmp eq", self.part, integer(0))
        zero = constant(0, tile.type)
        sums = [choose(b, fresh, zero, b.load(tile.type, p, self.size)) for p in self._places()]
        return unflat(sums, tile.vectors)

    @contextlib.contextmanager
    def _last(self, sums: Accumulators) -> Iterator[None]:
        """Code for the last slice; earlier slices keep their sums."""
        b = self.b
        if self.plan.slices == 1:
            yield
            return
        last = integer(self.plan.slices - 1)
        with b.when(b.compare("icmp ne", self.part, last)):
            for place, value in zip(self._places(), (v for row in sums for v in row), strict=True):
                b.store(value, place, self.size)
        with b.when(b.compare("icmp eq", self.part, last)):
            yield

    def _scattered(self, parts: list[Part], base: Reg, weights: Reg) -> None:
        """Tiles over all positions of the block; each row's position is computed."""
        b, rows = self.b, self.tile.rows
        counts = [self.blocks[0][1], *(part.count for part in parts)]
        total = counts[0]
        for count in counts[1:]:
            total = b.mul(total, count)
        last = b.add(total, -1)
        with b.loop(0, total, rows) as loop:
            with b.loop(0, rows) as row:
                self._note(parts, base, row.index, smaller(b, b.add(loop.index, row.index), last))
            left = [Address(b.load("ptr", b.offset(self.rows, n * 8), 8)) for n in range(rows)]
            self._find_sums(integer(0), integer(0), integer(0), loop.index)
            sums = self._sum(tuple(left), parts, weights, [])
            left_over = subtract(b, total, loop.index)
            some = Some(
                integer(0),
                smaller(b, left_over, rows),
                b.compare("icmp sge", left_over, integer(rows)),
            )
            with self._last(sums):
                self.ending.store(sums, None, self.columns, some)

    def _note(self, parts: list[Part], base: Reg, row: Reg, position: Reg) -> None:
        """Records where a row of a tile reads and stores."""
        b, at = self.b, list[Reg]()
        for part in parts[::-1]:
            position, i = divide(b, position, part.count)
            at.insert(0, i)
        at.insert(0, position)
        b.store(self._source_at(base, at), b.offset(self.rows, b.mul(row, 8)), 8)
        b.store(self._result_at(parts, at), self.ending.place(row), 8)

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

    def _stored(self, pixel: Reg) -> list[Ahead]:
        """What storing the tile from `pixel` on touches, if there are few steps between stores."""
        problem = self.problem
        if problem.packed_taps * problem.depth > SHORT or self._phases() > 1:
            return []
        total = integer(problem.groups * problem.columns)
        return self.sink.ahead((pixel, self.columns.start, total), self.tile)

    def _sum(
        self,
        left: tuple[Address, ...],
        parts: list[Part],
        weights: Reg,
        ahead: list[Ahead],
    ) -> Accumulators:
        """The sums of one tile: loops over taps around the microkernel."""
        problem, b = self.problem, self.b
        step = self.tile.columns * self.size
        depth = self.channels[1]
        loops: list[tuple[Reg, int, int]] = []
        below = 1
        for i in (2, 1, 0):
            axis = problem.axes[i]
            if i == 2 and self.plan.joined:
                depth = b.mul(parts[i].taps, problem.depth)
            else:
                run = below * problem.depth * step
                loops.insert(0, (parts[i].taps, axis.dilation * self.pitches[i + 1], run))
            below *= len(axis.order)
        return self._taps(left, weights, loops, depth, self._start(), ahead)

    def _taps(
        self,
        left: tuple[Address, ...],
        weights: Reg,
        loops: list[tuple[Reg, int, int]],
        depth: Reg,
        start: Accumulators,
        ahead: list[Ahead],
    ) -> Accumulators:
        b, tile = self.b, self.tile
        if not loops:
            known = fixed(depth)
            right = Right(weights, tile.columns * self.size)
            # If a step of a row reads what a later step of an adjacent row reads, LLVM would keep
            # the values of all unrolled steps in registers, and spill sums for them.
            apart = self.problem.axes[2].stride * self.pitches[3] // self.size
            unroll = max(1, min(UNROLL, apart))
            if known is None and unroll == 3:
                unroll = 2  # a power of two where the depth is not known
            steps = depth if known is None else known
            if self.next is not None and known is not None:
                away = b.offset(weights, self.away)
                ahead = [*ahead, self.next.ahead(b, away, known, unroll, self.place)]
            return microkernel(b, tile, Left(left, self.size), right, steps, start, unroll, ahead)
        (taps, source, packed), *inner = loops
        if fixed(taps) == 1:
            return self._taps(left, weights, inner, depth, start, ahead)
        flat = [register for row in start for register in row]
        with b.loop(0, taps, 1, flat) as loop:
            sums = unflat(loop.carried, tile.vectors)
            away = b.mul(loop.index, source)
            moved = {a.pointer: b.offset(a.pointer, away) for a in left}
            rows = tuple(Address(moved[a.pointer], a.bytes) for a in left)
            place = b.offset(weights, b.mul(loop.index, packed))
            asked = [part_of(b, one, loop.index, taps) for one in ahead]
            sums = self._taps(rows, place, inner, depth, sums, asked)
            loop.next = [register for row in sums for register in row]
        return unflat(loop.results, tile.vectors)

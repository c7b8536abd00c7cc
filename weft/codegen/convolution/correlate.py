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
from collections.abc import Iterator

from weft.codegen.builder import Reg, constant, integer
from weft.codegen.contraction.emit import divide, fixed, smaller, subtract
from weft.codegen.contraction.sink import Summing
from weft.codegen.convolution.geometry import Correlation
from weft.codegen.convolution.halo import choose
from weft.codegen.convolution.nest import Nest
from weft.codegen.convolution.piece import Part, each, span, unflat
from weft.codegen.convolution.plan import Plan
from weft.codegen.convolution.prefetch import part_of
from weft.codegen.convolution.tile_store import Columns, Some
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
from weft.passes.launch import Argument, Launch

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
    return Correlate(problem, plan, target, sink).launch(source, weights)


class Correlate(Nest):
    """The kernel of a correlation by microkernels."""

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

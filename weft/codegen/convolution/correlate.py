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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from weft.codegen.builder import Reg, constant, integer
from weft.codegen.contraction.emit import divide, fixed, smaller, subtract
from weft.codegen.contraction.sink import Streaming
from weft.codegen.convolution.geometry import Correlation
from weft.codegen.convolution.halo import choose
from weft.codegen.convolution.layout import Layout
from weft.codegen.convolution.nest import Nest, Slice, Spot
from weft.codegen.convolution.panels import group_of
from weft.codegen.convolution.piece import Part, each, span, unflat
from weft.codegen.convolution.plan import Plan, slice_channels
from weft.codegen.convolution.prefetch import next_panel, part_of
from weft.codegen.convolution.tile_store import Columns, Some
from weft.codegen.loop.prologue import Prologue
from weft.codegen.microkernel import (
    Accumulators,
    Address,
    Ahead,
    Left,
    Right,
    microkernel,
    unroll_of,
    zeros,
)
from weft.codegen.target import Target
from weft.ir.extent import pinned, symbolic
from weft.passes.launch import Argument, Launch

SHORT = 128
"""Maximum steps beside which prefetching the output pays (64: 8 to 25%, 128: 5 to 10% of the time;
256 and more lose 2 to 10%, residuals read in the epilogue or not).
"""


_Microkernels = Callable[[tuple[Address, ...], Reg, Accumulators, list[Ahead]], Accumulators]
"""Adds the products of one tap: rows, weights, sums, what is prefetched meanwhile."""


def launch_correlation(
    problem: Correlation,
    plan: Plan,
    target: Target,
    source: Prologue,
    weights: Argument,
    sink: Streaming,
) -> Launch:
    """The launch that computes the result from the source and packed weights."""
    layout = Layout(problem, plan)
    return _Correlate(layout, target, source, sink).launch(weights)


@dataclass(frozen=True)
class _Panel:
    """A panel of columns of one group."""

    columns: Columns
    weights: Reg  # of the slice's channels
    group: Reg  # from the source's first channel to the group's
    away: Reg | None  # to the weights that are needed next
    waiting: Reg | None  # its sums between slices


@dataclass(frozen=True)
class _Phase:
    """One phase of a panel's positions."""

    own: Slice
    panel: _Panel
    parts: list[Part]
    weights: Reg


class _Correlate(Nest):
    """The kernel of a correlation by microkernels."""

    def __init__(self, layout: Layout, target: Target, source: Prologue, sink: Streaming) -> None:
        super().__init__(layout, target, source, sink)
        self.next: Final = next_panel(self.problem, self.plan, layout.tiles, target)

    def _work(self, own: Slice, share: Reg) -> None:
        b, plan, layout = self.b, self.plan, self.layout
        total = self.problem.groups * layout.panels
        first, count = span(b, share, total, plan.shares)
        with each(b, first, b.add(first, count)) as panel:
            away = waiting = None
            if self.next is not None:
                away = self.next.distance(b, own.part, panel, (first, count))
            if plan.slices > 1:
                before = b.mul(subtract(b, panel, first), layout.phases * layout.phase_bytes)
                waiting = b.offset(b.offset(self.own, layout.copy_bytes), before)
            self._panel(own, panel, away, waiting)

    def _panel(self, own: Slice, number: Reg, away: Reg | None, waiting: Reg | None) -> None:
        """All positions of the block for one panel of columns of one group."""
        b, problem, tile = self.b, self.problem, self.tile
        group, across = group_of(b, number, self.layout.panels, problem.groups)
        column = b.mul(across, tile.columns)
        column_0 = b.add(b.mul(group, problem.columns), column)
        end = None
        if problem.columns % tile.columns:
            end = subtract(b, integer(problem.columns), column)
        columns = Columns(column_0, problem.groups * problem.columns, end)
        step = tile.columns * self.size
        every = problem.packed_taps * problem.depth * step
        start = b.mul(own.channels[0], step)
        weights = b.offset(b.offset(self.weights, b.mul(number, every)), start)
        channel = b.mul(group, problem.depth * self.size)
        panel = _Panel(columns, weights, channel, away, waiting)
        with self._each_part(own.block, numbered=True) as (parts, phase):
            self._phase(own, panel, parts, phase)

    def _phase(self, own: Slice, panel: _Panel, parts: list[Part], number: Reg) -> None:
        b, waits = self.b, None
        if panel.waiting is not None:
            waits = b.offset(panel.waiting, b.mul(number, self.layout.phase_bytes))
        tap = integer(0)
        for part, axis in zip(parts, self.problem.axes, strict=True):
            tap = b.add(b.mul(tap, len(axis.order)), part.tap)
        step = self.problem.depth * self.tile.columns * self.size
        weights = b.offset(panel.weights, b.mul(tap, step))
        base = self._base(b.offset(own.base, panel.group), parts)
        phase = _Phase(own, panel, parts, weights)
        if self.plan.scattered:
            self._scattered(phase, base, waits)
        else:
            self._rows(own.block, parts, base, lambda spot: self._tile(phase, spot), waits)

    def _tile(self, phase: _Phase, spot: Spot) -> None:
        """One tile of adjacent positions."""
        b, axis = self.b, self.problem.axes[2]
        pitch = axis.stride * self.pitches[3]
        if symbolic(pitch):
            left = tuple(
                Address(b.offset(spot.source, row * pitch)) for row in range(self.tile.rows)
            )
        else:
            left = tuple(Address(spot.source, row * pitch) for row in range(self.tile.rows))
        columns = phase.panel.columns
        stored = self._stored(spot.pixel, columns) if axis.step == 1 else []
        sums = self._sum(phase, left, spot.place, spot.waits, stored)
        pixels = [b.add(spot.pixel, row * axis.step) for row in range(self.tile.rows)]
        with self._last(phase.own, spot.waits, sums):
            self.ending.store(sums, pixels, columns, self._after(spot.skip))

    def _places(self, waits: Reg) -> list[Reg]:
        """The places of a tile's sums between slices, one vector after the other."""
        tile = self.tile
        step = tile.lanes * self.size
        return [self.b.offset(waits, i * step) for i in range(tile.rows * tile.vectors)]

    def _start(self, own: Slice, waits: Reg | None) -> Accumulators:
        """Initial sums of a tile: those of the slice before."""
        b, tile = self.b, self.tile
        if waits is None:
            return zeros(tile)
        fresh = b.compare("icmp eq", own.part, integer(0))
        zero = constant(0, tile.type)
        places = self._places(waits)
        sums = [choose(b, fresh, zero, b.load(tile.type, p, self.size)) for p in places]
        return unflat(sums, tile.vectors)

    @contextlib.contextmanager
    def _last(self, own: Slice, waits: Reg | None, sums: Accumulators) -> Iterator[None]:
        """Code for the last slice; earlier slices keep their sums."""
        b = self.b
        if waits is None:
            yield
            return
        last = integer(self.plan.slices - 1)
        with b.when(b.compare("icmp ne", own.part, last)):
            values = (value for row in sums for value in row)
            for place, value in zip(self._places(waits), values, strict=True):
                b.store(value, place, self.size)
        with b.when(b.compare("icmp eq", own.part, last)):
            yield

    def _scattered(self, phase: _Phase, base: Reg, waits: Reg | None) -> None:
        """Tiles over all positions of the block; each row's position is computed."""
        b, rows, own = self.b, self.tile.rows, phase.own
        counts = [own.block[0][1], *(part.count for part in phase.parts)]
        total = counts[0]
        for count in counts[1:]:
            total = b.mul(total, count)
        last = b.add(total, -1)
        with b.loop(0, total, rows) as loop:
            with b.loop(0, rows) as row:
                position = smaller(b, b.add(loop.index, row.index), last)
                self._note(phase, base, row.index, position)
            left = [Address(b.load("ptr", b.offset(self.rows, n * 8), 8)) for n in range(rows)]
            zero = integer(0)
            place = self._place((zero, zero, zero), loop.index)
            kept = self._waits(waits, place)
            sums = self._sum(phase, tuple(left), place, kept, [])
            left_over = subtract(b, total, loop.index)
            some = Some(
                integer(0),
                smaller(b, left_over, rows),
                b.compare("icmp sge", left_over, integer(rows)),
            )
            with self._last(own, kept, sums):
                self.ending.store(sums, None, phase.panel.columns, some)

    def _note(self, phase: _Phase, base: Reg, row: Reg, position: Reg) -> None:
        """Records where a row of a tile reads and stores."""
        b, at = self.b, list[Reg]()
        for part in phase.parts[::-1]:
            position, i = divide(b, position, part.count)
            at.insert(0, i)
        at.insert(0, position)
        b.store(self._source_at(base, at), b.offset(self.rows, b.mul(row, 8)), 8)
        result = self._result_at(phase.own.block, phase.parts, at)
        b.store(result, self.ending.place(row), 8)

    def _stored(self, pixel: Reg, columns: Columns) -> list[Ahead]:
        """What storing the tile from `pixel` on touches, if there are few steps between stores."""
        problem = self.problem
        if int(problem.packed_taps * problem.depth) > SHORT or self.layout.phases > 1:
            return []
        total = integer(problem.groups * problem.columns)
        return self.sink.ahead((pixel, columns.start, total), self.tile)

    def _sum(
        self, phase: _Phase, left: tuple[Address, ...], place: Reg, waits: Reg | None,
        ahead: list[Ahead],
    ) -> Accumulators:  # fmt: skip
        """The sums of one tile: loops over taps around the microkernel."""
        problem, b = self.problem, self.b
        step = self.tile.columns * self.size
        depth = phase.own.channels[1]
        loops: list[tuple[Reg, int, int]] = []
        below = 1
        for i in (2, 1, 0):
            axis, taps = problem.axes[i], phase.parts[i].taps
            if i == 2 and self.plan.joined:
                depth = b.mul(taps, problem.depth)
            else:
                run = below * problem.depth * step
                loops.insert(0, (taps, axis.dilation * self.pitches[i + 1], run))
            below *= len(axis.order)
        start = self._start(phase.own, waits)
        known = fixed(depth)

        def microkernels(
            rows: tuple[Address, ...], weights: Reg, sums: Accumulators, asked: list[Ahead]
        ) -> Accumulators:
            right = Right(weights, step)
            # If a step of a row reads what a later step of an adjacent row reads, LLVM would keep
            # the values of all unrolled steps in registers, and spill sums for them.
            apart = problem.axes[2].stride * self.pitches[3] // self.size
            unroll = pinned(max(1, min(unroll_of(problem.depth), apart)))
            if known is None and unroll == 3:
                unroll = 2  # a power of two where the depth is not known
            away = phase.panel.away
            count = self._most_steps(phase)
            if self.next is not None and away is not None and count is not None:
                following = b.offset(weights, away)
                asked = [*asked, self.next.ahead(b, following, count, unroll, place)]
            steps = depth if known is None else known
            even = problem.depth % unroll == 0
            return microkernel(
                b, self.tile, Left(rows, self.size), right, steps, sums, unroll, asked, even
            )

        return self._taps(left, phase.weights, loops, start, ahead, microkernels)

    def _most_steps(self, phase: _Phase) -> int | None:
        """The steps of one microkernel on the widest slice, if taps do not depend on the phase."""
        taps = fixed(phase.parts[2].taps) if self.plan.joined else 1
        return None if taps is None else taps * slice_channels(self.problem, self.plan.slices)

    def _taps(
        self, left: tuple[Address, ...], weights: Reg, loops: list[tuple[Reg, int, int]],
        start: Accumulators, ahead: list[Ahead], inside: _Microkernels,
    ) -> Accumulators:  # fmt: skip
        """Loops over taps: how many, and the bytes between them in the source and the weights."""
        b, tile = self.b, self.tile
        if not loops:
            return inside(left, weights, start, ahead)
        (taps, source, packed), *inner = loops
        if fixed(taps) == 1:
            return self._taps(left, weights, inner, start, ahead, inside)
        flat = [register for row in start for register in row]
        with b.loop(0, taps, 1, flat) as loop:
            sums = unflat(loop.carried, tile.vectors)
            away = b.mul(loop.index, source)
            moved = {a.pointer: b.offset(a.pointer, away) for a in left}
            rows = tuple(Address(moved[a.pointer], a.bytes) for a in left)
            place = b.offset(weights, b.mul(loop.index, packed))
            asked = [part_of(b, one, loop.index, taps) for one in ahead]
            sums = self._taps(rows, place, inner, sums, asked, inside)
            loop.next = [register for row in sums for register in row]
        return unflat(loop.results, tile.vectors)

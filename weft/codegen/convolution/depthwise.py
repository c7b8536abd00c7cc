"""Convolutions with one channel in and out of every group: vectors run along the channels.

    chunk         a block of images and positions
      (copy)      its part of the source with the zeros around it
        phase     one for each residue of a strided gradient, else one in all
          tile    adjacent positions along the last axis
            channels   a vector at a time: contiguous in the source, the weights and the result
              tap      each vector of the source is loaded once for all results that it serves

There are few multiply-adds for every element, so registers hold a tile's results for one vector of
channels; weights come from L1. A copy would take longer than these few, so usually there is none:
taps above or below the image are skipped, and masks replace the zeros to its left and right. If
positions are a multiple of 4096 bytes apart, the copy saves more than it takes.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from dataclasses import replace
from math import prod

from weft.codegen.builder import Reg, constant, integer
from weft.codegen.contraction.emit import larger, read, smaller, subtract
from weft.codegen.contraction.sink import Summing
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.convolution.geometry import Correlation
from weft.codegen.convolution.nest import Nest
from weft.codegen.convolution.piece import Part, each, look_up
from weft.codegen.convolution.plan import CHUNK_FLOPS, Plan, cut, one_set
from weft.codegen.convolution.tile_store import Columns
from weft.codegen.loop.prologue import Prologue
from weft.codegen.microkernel import SECOND, Tile, first_lanes, fma, prefetch
from weft.codegen.target import Target
from weft.passes.launch import Argument, Launch
from weft.passes.pair import PHASES, UNROLLED

LONGEST = 8
"""Maximum results of a tile: with 3 taps each source vector is then loaded once for 2.4 uses."""


def suits(problem: Correlation) -> bool:
    """Whether the problem is of this kind."""
    return problem.groups > 1 and problem.depth == problem.columns == 1


def launch_depthwise(
    problem: Correlation, target: Target, source: Prologue, weights: Argument, sink: Summing
) -> Launch:
    """The launch of a depthwise convolution or its input gradient, with unpacked weights."""
    plan = plan_of(problem, target, source.steps, target.registers // 2)
    return Depthwise(problem, plan, target, sink).launch(source, weights)


def plan_of(problem: Correlation, target: Target, steps: bool, rows: int) -> Plan:
    """The blocking; with tiles of `rows` rows at most."""
    lanes = target.lanes(problem.sums.size)
    last = problem.axes[2]
    shortest = min(p.count for p in last.phases)
    most = max(1, min(LONGEST, rows, shortest))
    rows = min(range(1, most + 1), key=lambda n: (ceil_div(last.count, n) * (n + 1.5), -n))
    other = problem.dtype is not problem.sums or steps
    copied = other or one_set(problem) or not (problem.inside or _clips(problem))
    tile = Tile(rows, 1, lanes, problem.sums)
    # Memory bound: a chunk does a tenth of the flops of other kernels' chunks.
    blocks, _ = cut(problem, tile, False, 1, target, CHUNK_FLOPS / 10)
    missing = last.count - shortest
    if last.count // blocks[3] - missing < rows:
        tile = replace(tile, rows=1)
    return Plan(tile, False, blocks, 1, copied, False)


def _written(problem: Correlation) -> bool:
    """Whether all taps of all phases are unrolled."""
    phases = prod(len(axis.phases) for axis in problem.axes)
    return problem.packed_taps <= UNROLLED and phases <= PHASES


def _clips(problem: Correlation) -> bool:
    """Whether taps outside the source can be skipped, as those inside are adjacent."""
    return _written(problem) and all(axis.dilation == 1 or axis.inside for axis in problem.axes)


class Depthwise(Nest):
    """The nest of a depthwise convolution."""

    def _work(self, share: Reg) -> None:
        axes = self.problem.axes
        if _written(self.problem):
            for phases in itertools.product(axes[0].phases, axes[1].phases):
                parts = [self._part_of(i, axes[i], phase) for i, phase in enumerate(phases)]
                with self._each_line(parts) as line:
                    for last in axes[2].phases:  # a line's phases while it is in cache
                        self.phases = (*phases, last)
                        whole = [*parts, self._part_of(2, axes[2], last)]
                        self._row(whole, self._base(whole), self.weights, line)
            return
        with contextlib.ExitStack() as stack:
            parts: list[Part] = []
            for i, axis in enumerate(axes):
                phase = stack.enter_context(each(self.b, integer(0), integer(len(axis.phases))))
                parts.append(self._part(i, axis, phase))
            self._rows(parts, self._base(parts), self.weights)

    def _base(self, parts: list[Part]) -> Reg:
        """The address that the first tap of a phase reads."""
        base = self.base
        for part, pitch in zip(parts, self.pitches[1:], strict=True):
            base = self.b.offset(base, self.b.mul(part.offset, pitch))
        return base

    def _tile(
        self, parts: list[Part], pointer: Reg, weights: Reg, pixel: Reg, skip: Reg | None
    ) -> None:
        b, lanes, channels = self.b, self.tile.lanes, self.problem.groups
        step = self.problem.axes[2].step
        known = _written(self.problem)
        if known:
            self._clip(parts)
        with b.loop(0, channels, lanes) as loop:
            mask = None
            if channels % lanes:
                mask = first_lanes(b, subtract(b, integer(channels), loop.index), lanes)
            if step > 1:
                self._ask(b.add(pixel, self.tile.rows * step), loop.index)
            source = b.offset(pointer, b.mul(loop.index, self.size))
            own = b.offset(weights, b.mul(loop.index, self.problem.dtype.size))
            self._meet(pixel, loop.index, mask, skip)
            if known:
                zero = constant(0, self.tile.type)
                sums = self._lines(0, source, own, integer(0), mask, [zero] * self.tile.rows)
            else:
                sums = self._looped(parts, source, own, mask)
            pixels = [b.add(pixel, row * step) for row in range(len(sums))]
            end = subtract(b, integer(channels), loop.index) if channels % lanes else None
            columns = Columns(loop.index, channels, end)
            self.ending.store([[value] for value in sums], pixels, columns, self._after(skip))

    def _meet(self, pixel: Reg, column: Reg, mask: Reg | None, skip: Reg | None) -> None:
        """Begins a vector of columns."""

    def _ask(self, pixel: Reg, column: Reg) -> None:
        """Prefetches what storing the next tile touches: the hardware does not recognize phases.

        With batch norm's sums, 64 at 112x112: 8.0 to 6.5 ms. Without phases one image loses 5%.
        """
        b, step = self.b, self.problem.axes[2].step
        for touched in self.sink.ahead((pixel, column, integer(self.problem.groups)), self.tile):
            for row in range(self.tile.rows):
                place = b.offset(touched.pointer, b.mul(integer(row * step), touched.stride))
                prefetch(b, place, SECOND)

    def _source(self, pointer: Reg, mask: Reg | None) -> Reg:
        sums = self.problem.sums
        return read(self.b, pointer, self.tile.lanes, sums, sums, mask)

    def _weight(self, weights: Reg, tap: Reg | int, mask: Reg | None) -> Reg:
        b, problem = self.b, self.problem
        tap = integer(tap) if isinstance(tap, int) else tap
        place = b.offset(weights, b.mul(tap, problem.groups * problem.dtype.size))
        return read(b, place, self.tile.lanes, problem.dtype, problem.sums, mask)

    def _clip(self, parts: list[Part]) -> None:
        """Finds which taps of a tile lie inside the source, and which vectors along a line."""
        b = self.b
        self.inside: dict[int, tuple[Reg, Reg]] = {}  # axis -> its first tap, and their end
        self.beside: dict[int, Reg] = {}  # vector of a line -> whether it lies inside
        if self.plan.copied:
            return
        axes = zip(self.problem.axes, self.phases, parts, self.at, strict=True)
        for i, (axis, phase, part, at) in enumerate(axes):
            if axis.inside:
                continue
            first = b.add(b.mul(b.add(part.start, at), axis.stride), phase.offset)
            if i < 2:
                before = larger(b, b.mul(first, -1), integer(0))
                behind = smaller(b, subtract(b, integer(axis.source), first), phase.taps)
                self.inside[i] = before, behind
                continue
            span = (self.tile.rows - 1) * axis.stride + phase.taps
            right = phase.offset + (phase.count - 1) * axis.stride + phase.taps - axis.source
            for place in range(span):
                if -phase.offset <= place < span - right:
                    continue
                here = b.add(first, place)
                # As an unsigned number, a position to the left is large.
                self.beside[place] = b.compare("icmp ult", here, integer(axis.source))

    def _order(self, i: int) -> Sequence[int]:
        """The phase's taps along an axis."""
        phase = self.phases[i]
        return self.problem.axes[i].order[phase.tap : phase.tap + phase.taps]

    def _lines(
        self, i: int, source: Reg, weights: Reg, tap: Reg, mask: Reg | None, sums: list[Reg]
    ) -> list[Reg]:
        """Adds the taps of axis `i` and of the axes after it to the sums."""
        if i == 2:
            return self._line(source, weights, tap, mask, sums)
        b, axis = self.b, self.problem.axes[i]
        order, pitch = self._order(i), axis.dilation * self.pitches[i + 1]
        tap = b.mul(tap, self.problem.taps[i])
        if i not in self.inside or not order:
            for number, own in enumerate(order):
                line = b.offset(source, number * pitch)
                sums = self._lines(i + 1, line, weights, b.add(tap, own), mask, sums)
            return sums
        with b.loop(*self.inside[i], 1, sums) as loop:
            line = b.offset(source, b.mul(loop.index, pitch))
            step = order[1] - order[0] if len(order) > 1 else 0  # a gradient's taps are reversed
            tap = b.add(b.add(tap, order[0]), b.mul(loop.index, step))
            loop.next = self._lines(i + 1, line, weights, tap, mask, loop.carried)
        return loop.results

    def _line(
        self, line: Reg, weights: Reg, tap: Reg, mask: Reg | None, sums: list[Reg]
    ) -> list[Reg]:
        """All taps of a line, unrolled: a source vector contributes to several results."""
        b, axis = self.b, self.problem.axes[2]
        first = b.mul(tap, self.problem.taps[2])
        taps = [self._weight(weights, b.add(first, tap), mask) for tap in self._order(2)]
        found, loaded = list(sums), dict[int, Reg]()
        for row, (x, weight) in itertools.product(range(len(sums)), enumerate(taps)):
            place = row * axis.stride + x * axis.dilation
            if place not in loaded:
                pointer = b.offset(line, place * self.pitches[3])
                loaded[place] = self._source(pointer, self._mask(place, mask))
            found[row] = self._product(row, x, loaded[place], weight, found[row])
        return found

    def _product(self, row: int, tap: int, source: Reg, weight: Reg, total: Reg) -> Reg:
        """A row's sum with one more of the line's taps."""
        return fma(self.b, source, weight, total)

    def _mask(self, place: int, mask: Reg | None) -> Reg | None:
        """The lanes to load of a vector of a line."""
        if place not in self.beside:
            return mask
        inside = self.b.splat(self.beside[place], self.tile.lanes)
        return inside if mask is None else self.b.binary("and", inside, mask)

    def _looped(self, parts: list[Part], source: Reg, weights: Reg, mask: Reg | None) -> list[Reg]:
        """Loops over the taps of a phase."""
        zero = constant(0, self.tile.type)
        return self._loop(parts, [], source, weights, mask, [zero] * self.tile.rows)

    def _loop(
        self,
        parts: list[Part],
        taps: list[Reg],
        source: Reg,
        weights: Reg,
        mask: Reg | None,
        sums: list[Reg],
    ) -> list[Reg]:
        b, axes, i = self.b, self.problem.axes, len(taps)
        if i == 3:
            _, height, width = self.problem.taps
            tap = b.add(b.mul(b.add(b.mul(taps[0], height), taps[1]), width), taps[2])
            weight = self._weight(weights, tap, mask)
            pitch = axes[2].stride * self.pitches[3]
            return [
                fma(b, self._source(b.offset(source, row * pitch), mask), weight, total)
                for row, total in enumerate(sums)
            ]
        with b.loop(0, parts[i].taps, 1, sums) as loop:
            place = b.offset(source, b.mul(loop.index, axes[i].dilation * self.pitches[i + 1]))
            order = [(tap,) for tap in axes[i].order] or [(0,)]
            (tap,) = look_up(b, f"taps{i}", order, b.add(parts[i].tap, loop.index))
            loop.next = self._loop(parts, [*taps, tap], place, weights, mask, loop.carried)
        return loop.results

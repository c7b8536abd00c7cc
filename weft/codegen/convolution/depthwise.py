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

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from weft.codegen.builder import Reg, constant, integer
from weft.codegen.contraction.emit import larger, read, smaller, subtract
from weft.codegen.contraction.sink import Streaming
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.convolution.geometry import Correlation, Phase
from weft.codegen.convolution.layout import Layout
from weft.codegen.convolution.nest import Nest, Slice, Spot
from weft.codegen.convolution.piece import Part, look_up
from weft.codegen.convolution.plan import CHUNK_FLOPS, Plan, cut, for_many, one_set
from weft.codegen.convolution.tile_store import Columns
from weft.codegen.loop.prologue import Prologue
from weft.codegen.microkernel import SECOND, Tile, first_lanes, fma, prefetch
from weft.codegen.target import Target
from weft.passes.launch import Argument, Launch

UNROLLED = 49
"""Maximum taps that a kernel unrolls."""
PHASES = 4
"""Maximum stride phases that a kernel unrolls."""
LONGEST = 8
"""Maximum results of a tile: with 3 taps each source vector is then loaded once for 2.4 uses."""


def suits(problem: Correlation) -> bool:
    """Whether the problem is of this kind."""
    return problem.groups > 1 and problem.depth == 1 and problem.columns == 1


def launch_depthwise(
    problem: Correlation, target: Target, source: Prologue, weights: Argument, sink: Streaming
) -> Launch:
    """The launch of a depthwise convolution or its input gradient, with unpacked weights."""
    plan = plan_of(problem, target, source.steps, target.registers // 2)
    return Depthwise(Layout(problem, plan), target, source, sink).launch(weights)


def plan_of(problem: Correlation, target: Target, steps: bool, rows: int) -> Plan:
    """The blocking; with tiles of `rows` rows at most."""
    lanes = target.lanes(problem.sums.size)
    other = problem.dtype is not problem.sums or steps
    copied = other or one_set(problem) or not (problem.inside or _clips(problem))
    real, problem = problem, problem.planned()
    last = problem.axes[2]
    most = max(1, min(LONGEST, rows, last.fewest))
    rows = min(range(1, most + 1), key=lambda n: (ceil_div(last.count, n) * (n + 1.5), -n))
    tile = Tile(rows, 1, lanes, problem.sums)
    # Memory bound: a chunk does a tenth of the flops of other kernels' chunks.
    blocks, _ = cut(problem, tile, False, 1, target, CHUNK_FLOPS / 10)
    missing = last.count - last.fewest
    if last.count // blocks[3] - missing < rows:
        tile = replace(tile, rows=1)
    return for_many(Plan(tile, False, blocks, 1, copied, False), real)


def _written(problem: Correlation) -> bool:
    """Whether all taps of all phases are unrolled."""
    phases = prod(len(axis.phases) for axis in problem.axes)
    return problem.packed_taps <= UNROLLED and phases <= PHASES


def _clips(problem: Correlation) -> bool:
    """Whether taps outside the source can be skipped, as those inside are adjacent."""
    return _written(problem) and all(axis.dilation == 1 or axis.inside for axis in problem.axes)


@dataclass(frozen=True)
class Inside:
    """Which taps of a tile lie inside the source, of phases that are known."""

    phases: tuple[Phase, ...]
    taps: dict[int, tuple[Reg, Reg]]  # axis -> its first tap, and their end
    vectors: dict[int, Reg]  # vector of a line -> whether it lies inside


@dataclass(frozen=True)
class Channels:
    """A tile's vector of channels."""

    weights: Reg
    mask: Reg | None
    inside: Inside


class Depthwise(Nest):
    """The nest of a depthwise convolution."""

    def _work(self, own: Slice, share: Reg) -> None:
        axes, block = self.problem.axes, own.block
        if not _written(self.problem):
            with self._each_part(block) as (parts, _):
                base = self._base(own.base, parts)
                self._rows(block, parts, base, lambda spot: self._tile(parts, (), spot))
            return
        for phases in itertools.product(axes[0].phases, axes[1].phases):
            parts = [self._part_of(block, i, axes[i], phase) for i, phase in enumerate(phases)]
            with self._each_line(block, parts) as line:
                for last in axes[2].phases:  # a line's phases while it is in cache
                    whole = [*parts, self._part_of(block, 2, axes[2], last)]
                    base, every = self._base(own.base, whole), (*phases, last)
                    tiles = functools.partial(self._tile, whole, every)
                    self._row(block, whole, base, line, tiles)

    def _tile(self, parts: list[Part], phases: tuple[Phase, ...], spot: Spot) -> None:
        """One tile of adjacent positions, of phases that are known or not."""
        b, lanes, channels, pixel = self.b, self.tile.lanes, self.problem.groups, spot.pixel
        step = self.problem.axes[2].step
        inside = self._inside(parts, phases, spot)
        with b.loop(0, channels, lanes) as loop:
            mask = None
            if channels % lanes:
                mask = first_lanes(b, subtract(b, integer(channels), loop.index), lanes)
            if step > 1:
                self._ask(b.add(pixel, self.tile.rows * step), loop.index)
            source = b.offset(spot.source, b.mul(loop.index, self.size))
            weights = b.offset(self.weights, b.mul(loop.index, self.problem.dtype.size))
            vector = Channels(weights, mask, inside)
            start = [constant(0, self.tile.type)] * self.tile.rows
            if phases:
                sums = self._lines(vector, 0, source, integer(0), start)
            else:
                sums = self._loop(vector, parts, [], source, start)
            pixels = [b.add(pixel, row * step) for row in range(len(sums))]
            end = subtract(b, integer(channels), loop.index) if channels % lanes else None
            columns = Columns(loop.index, channels, end)
            some = self._after(spot.skip)
            self.ending.store([[value] for value in sums], pixels, columns, some)

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

    def _weight(self, vector: Channels, tap: Reg) -> Reg:
        b, problem = self.b, self.problem
        place = b.offset(vector.weights, b.mul(tap, problem.groups * problem.dtype.size))
        return read(b, place, self.tile.lanes, problem.dtype, problem.sums, vector.mask)

    def _inside(self, parts: list[Part], phases: tuple[Phase, ...], spot: Spot) -> Inside:
        """Finds which taps of a tile lie inside the source, and which vectors along a line."""
        b = self.b
        inside = Inside(phases, {}, {})
        if self.plan.copied or not phases:
            return inside
        axes = zip(self.problem.axes, phases, parts, spot.at, strict=True)
        for i, (axis, phase, part, at) in enumerate(axes):
            if axis.inside:
                continue
            first = b.add(b.mul(b.add(part.start, at), axis.stride), phase.offset)
            if i < 2:
                before = larger(b, b.mul(first, -1), integer(0))
                behind = smaller(b, subtract(b, integer(axis.source), first), phase.taps)
                inside.taps[i] = before, behind
                continue
            span = (self.tile.rows - 1) * axis.stride + phase.taps
            right = phase.offset + (phase.count - 1) * axis.stride + phase.taps - axis.source
            for place in range(span):
                if -phase.offset <= place < span - right:
                    continue
                here = b.add(first, place)
                # As an unsigned number, a position to the left is large.
                inside.vectors[place] = b.compare("icmp ult", here, integer(axis.source))
        return inside

    def _order(self, vector: Channels, i: int) -> Sequence[int]:
        """The phase's taps along an axis."""
        phase = vector.inside.phases[i]
        return self.problem.axes[i].order[phase.tap : phase.tap + phase.taps]

    def _lines(self, vector: Channels, i: int, source: Reg, tap: Reg, sums: list[Reg]) -> list[Reg]:
        """Adds the taps of axis `i` and of the axes after it to the sums."""
        if i == 2:
            return self._line(vector, source, tap, sums)
        b, axis, inside = self.b, self.problem.axes[i], vector.inside.taps
        order, pitch = self._order(vector, i), axis.dilation * self.pitches[i + 1]
        tap = b.mul(tap, self.problem.taps[i])
        if i not in inside or not order:
            for number, own in enumerate(order):
                line = b.offset(source, number * pitch)
                sums = self._lines(vector, i + 1, line, b.add(tap, own), sums)
            return sums
        with b.loop(*inside[i], 1, sums) as loop:
            line = b.offset(source, b.mul(loop.index, pitch))
            step = order[1] - order[0] if len(order) > 1 else 0  # a gradient's taps are reversed
            tap = b.add(b.add(tap, order[0]), b.mul(loop.index, step))
            loop.next = self._lines(vector, i + 1, line, tap, loop.carried)
        return loop.results

    def _line(self, vector: Channels, line: Reg, tap: Reg, sums: list[Reg]) -> list[Reg]:
        """All taps of a line, unrolled: a source vector contributes to several results."""
        b, axis = self.b, self.problem.axes[2]
        first = b.mul(tap, self.problem.taps[2])
        taps = [self._weight(vector, b.add(first, tap)) for tap in self._order(vector, 2)]
        loaded, sums = dict[int, Reg](), list(sums)
        for row, (x, weight) in itertools.product(range(len(sums)), enumerate(taps)):
            place = row * axis.stride + x * axis.dilation
            if place not in loaded:
                pointer = b.offset(line, place * self.pitches[3])
                loaded[place] = self._source(pointer, self._mask(vector, place))
            sums[row] = fma(b, loaded[place], weight, sums[row])
        return sums

    def _mask(self, vector: Channels, place: int) -> Reg | None:
        """The lanes to load of a vector of a line."""
        mask, vectors = vector.mask, vector.inside.vectors
        if place not in vectors:
            return mask
        inside = self.b.splat(vectors[place], self.tile.lanes)
        return inside if mask is None else self.b.binary("and", inside, mask)

    def _loop(
        self, vector: Channels, parts: list[Part], taps: list[Reg], source: Reg, sums: list[Reg]
    ) -> list[Reg]:
        """Loops over the taps of a phase."""
        b, axes, i = self.b, self.problem.axes, len(taps)
        if i == 3:
            _, height, width = self.problem.taps
            tap = b.add(b.mul(b.add(b.mul(taps[0], height), taps[1]), width), taps[2])
            weight = self._weight(vector, tap)
            pitch = axes[2].stride * self.pitches[3]
            return [
                fma(b, self._source(b.offset(source, row * pitch), vector.mask), weight, total)
                for row, total in enumerate(sums)
            ]
        with b.loop(0, parts[i].taps, 1, sums) as loop:
            place = b.offset(source, b.mul(loop.index, axes[i].dilation * self.pitches[i + 1]))
            order = [(tap,) for tap in axes[i].order] or [(0,)]
            (tap,) = look_up(b, f"taps{i}", order, b.add(parts[i].tap, loop.index))
            loop.next = self._loop(vector, parts, [*taps, tap], place, loop.carried)
        return loop.results

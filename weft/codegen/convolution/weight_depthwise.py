"""The weight gradient of a depthwise convolution: vectors run along the channels.

Registers hold the sums of all taps, or of one row of them, for one vector of channels. At every
position one vector of g is multiplied by a vector of x for each tap.
"""

from __future__ import annotations

from dataclasses import replace

from weft.codegen.builder import Reg, integer
from weft.codegen.contraction.emit import divide, read
from weft.codegen.contraction.sink import Sink
from weft.codegen.convolution.piece import each, span, unflat
from weft.codegen.convolution.weight_layout import Layout
from weft.codegen.convolution.weight_nest import Block, Corner, Operands, WeightNest, launches_of
from weft.codegen.convolution.weight_parts import Cuts, cuts_of, parts_of
from weft.codegen.convolution.weight_plan import Plan, cut, planned_parts
from weft.codegen.convolution.weight_problem import WeightGradient
from weft.codegen.convolution.weight_sum import Tiling
from weft.codegen.microkernel import Tile, fma
from weft.codegen.target import Target
from weft.host.memory import LINE
from weft.passes.launch import Launch

SET = 1024
"""A stride of positions with which many of them share an L1 set."""


def suits(problem: WeightGradient) -> bool:
    """Whether the problem is of this kind."""
    return problem.groups > 1 and problem.channels == 1 and problem.columns == 1


def launch_depthwise_gradient(
    problem: WeightGradient, target: Target, operands: Operands, sink: Sink
) -> tuple[Launch, ...]:
    """The launches: sums of each part, then their sum."""
    lanes = target.lanes(problem.sums.size)
    copied = not problem.inside or problem.dtype is not problem.sums or operands[0].steps
    tall = problem.sides[1].taps * problem.sides[2].taps <= target.registers - 4
    # Two vectors are a run of 128 bytes of each position, if their sums fit the registers.
    inner = problem.sides[2].taps * (problem.sides[1].taps if tall else 1)
    vectors = 2 if 2 * inner <= target.registers - 4 and problem.width > lanes else 1
    tile = Tile(problem.sides[1].taps if tall else 1, vectors, lanes, problem.sums)
    parts, now = parts_of(problem), problem.planned()
    cuts = Cuts(now.extents, planned_parts(parts), (1, 1, 1, 1), now.extents)
    plan = cut(Plan(tile, tall, False, copied, False, False, False, cuts), now, 1, 1, target)
    plan = replace(plan, cuts=cuts_of(problem, parts, plan.cuts.sizes))
    # Two spare lines if the positions of a vector would fall into few sets.
    spare = 0 if problem.width * problem.sums.size % SET else 2 * LINE
    layout = Layout(problem, plan, _tiling_of(problem, plan), spare)
    return launches_of(_DepthwiseNest, layout, target, operands, sink)


def _tiling_of(problem: WeightGradient, plan: Plan) -> Tiling:
    """A tile holds the taps of a plane, or of a line of it; all channels are one group."""
    z, y, x = (side.taps for side in problem.sides)
    inner, outer = (y * x, z) if plan.tall else (x, z * y)
    return Tiling(replace(plan.tile, rows=inner), 1, problem.width, inner, 1, outer)


class _DepthwiseNest(WeightNest):
    """The nest of a depthwise gradient."""

    def _work(self, block: Block, rows: Reg, columns: Reg) -> None:
        b = self.b
        first, count = span(b, columns, self.tiling.across, self.plan.slices[1])
        corner, outer = Corner(first, integer(0)), integer(self.tiling.taps)
        with each(b, integer(0), outer) as taps, b.loop(first, b.add(first, count)) as v:
            self._vectors(block, corner, taps, v.index)

    def _vectors(self, block: Block, corner: Corner, outer: Reg, panel: Reg) -> None:
        """The sums of some taps for adjacent vectors of channels."""
        b, problem = self.b, self.problem
        channel, inside = self.tiling.column(b, panel)
        masks = self.tiling.masks(b, inside)
        height, width = problem.sides[1].taps, problem.sides[2].taps
        if self.plan.tall:
            first = outer, integer(0)
            inner = [(y, x) for y in range(height) for x in range(width)]
        else:
            first = divide(b, outer, integer(height))
            inner = [(0, x) for x in range(width)]
        with self._kept(block, corner, (panel, integer(0), outer)) as sums:
            start = [value for row in sums for value in row]
            added = self._add(block, first, inner, channel, list(masks), start)
            sums[:] = unflat(added, self.tile.vectors)

    @property
    def step(self) -> int:
        """Bytes of a vector."""
        return self.tile.lanes * self.layout.size

    def _add(
        self, block: Block, first: tuple[Reg, Reg], inner: list[tuple[int, int]], channel: Reg,
        masks: list[Reg | None], start: list[Reg],
    ) -> list[Reg]:  # fmt: skip
        """Adds the contributions of the block's positions."""
        b = self.b
        images, planes, lines, _ = block.spans
        with b.loop(images[0], b.add(*images), 1, start) as n:
            with b.loop(planes[0], b.add(*planes), 1, n.carried) as z:
                with b.loop(lines[0], b.add(*lines), 1, z.carried) as y:
                    at = [n.index, z.index, y.index]
                    y.next = self._add_line(block, at, first, inner, channel, masks, y.carried)
                z.next = y.results
            n.next = z.results
        return n.results

    def _add_line(
        self, block: Block, at: list[Reg], first: tuple[Reg, Reg], inner: list[tuple[int, int]],
        channel: Reg, masks: list[Reg | None], start: list[Reg],
    ) -> list[Reg]:  # fmt: skip
        """Adds the contributions of adjacent positions along the last axis."""
        b, sides = self.b, self.problem.sides
        begin, count = block.spans[3]
        source = [at[0]]
        for q, tap, side in zip((*at[1:], begin), (*first, integer(0)), sides, strict=True):
            moved = b.add(b.mul(q, side.stride), b.mul(tap, side.dilation))
            source.append(b.add(moved, -side.low))
        x = b.offset(block.x.at(b, source), b.mul(channel, self.layout.size))
        g = b.offset(block.g.at(b, [*at, begin]), b.mul(channel, self.layout.size))
        up, along = block.x.pitches[2:]
        places = [
            tap_y * sides[1].dilation * up + tap_x * sides[2].dilation * along
            for tap_y, tap_x in inner
        ]
        with b.loop(0, count, 1, [x, g, *start]) as loop:
            x, g, *sums = loop.carried
            factors = [self._read(b.offset(g, v * self.step), m) for v, m in enumerate(masks)]
            values = [
                (self._read(b.offset(x, place + v * self.step), mask), factors[v])
                for place in places
                for v, mask in enumerate(masks)
            ]
            loop.next = [
                b.offset(x, sides[2].stride * along),
                b.offset(g, block.g.pitches[3]),
                *(fma(b, *pair, total) for pair, total in zip(values, sums, strict=True)),
            ]
        return loop.results[2:]

    def _read(self, pointer: Reg, mask: Reg | None) -> Reg:
        sums = self.problem.sums
        return read(self.b, pointer, self.tile.lanes, sums, sums, mask)

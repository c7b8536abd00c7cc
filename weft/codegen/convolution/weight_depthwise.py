"""The gradient by weights of a depthwise convolution: vectors go along the channels.

Registers hold the sums of all taps, or of one row of them, for one vector of channels; for every
position one vector of g meets a vector of x for each tap.
"""

from __future__ import annotations

from weft.codegen.builder import Reg, constant, integer
from weft.codegen.contraction.emit import divide, read, subtract
from weft.codegen.contraction.plan import ceil_div
from weft.codegen.contraction.sink import Sink
from weft.codegen.convolution.correlate import each, span
from weft.codegen.convolution.halo import choose
from weft.codegen.convolution.weight import WeightNest
from weft.codegen.convolution.weight_plan import Plan, cut
from weft.codegen.convolution.weight_problem import WeightGradient
from weft.codegen.kernel import Argument, Launch
from weft.codegen.microkernel import Tile, first_lanes, fma, store_masked
from weft.codegen.target import Target


def suits(problem: WeightGradient) -> bool:
    """Whether the problem is of this kind."""
    return problem.groups > 1 and problem.channels == problem.columns == 1


def launch_depthwise_gradient(
    problem: WeightGradient, target: Target, operands: tuple[Argument, ...], sink: Sink
) -> tuple[Launch, ...]:
    """The launches: sums of each part, then their sum."""
    lanes = target.lanes(problem.sums.size)
    copied = not problem.inside or problem.dtype is not problem.sums
    tall = problem.sides[1].taps * problem.sides[2].taps <= target.registers - 4
    tile = Tile(problem.sides[1].taps if tall else 1, 1, lanes, problem.sums)
    plan = Plan(tile, tall, False, copied, False, (1, 1, 1, 1), 1, (1, 1))
    plan = cut(plan, problem, 1, 1, target)
    return _DepthwiseNest(problem, plan, target).launches(operands, sink)


class _DepthwiseNest(WeightNest):
    """The nest of a depthwise gradient."""

    def _work(self, rows: Reg, columns: Reg) -> None:
        b, problem = self.b, self.problem
        outer = problem.sides[0].taps * (1 if self.plan.tall else problem.sides[1].taps)
        vectors = ceil_div(problem.width, self.tile.lanes)
        first, count = span(b, columns, vectors, self.plan.slices[1])
        with each(b, integer(0), integer(outer)) as taps, b.loop(first, b.add(first, count)) as v:
            channel = b.mul(v.index, self.tile.lanes)
            mask = None
            if problem.width % self.tile.lanes:
                rest = subtract(b, integer(problem.width), channel)
                mask = first_lanes(b, rest, self.tile.lanes)
            self._vector(taps, channel, mask)

    def _vector(self, outer: Reg, channel: Reg, mask: Reg | None) -> None:
        """The sums of some taps for one vector of channels."""
        b, problem, tile = self.b, self.problem, self.tile
        height, width = problem.sides[1].taps, problem.sides[2].taps
        if self.plan.tall:
            first = outer, integer(0)
            inner = [(y, x) for y in range(height) for x in range(width)]
        else:
            first = divide(b, outer, integer(height))
            inner = [(0, x) for x in range(width)]
        pitch = problem.width * self.size
        place = b.offset(self.sums, b.mul(b.mul(outer, len(inner)), pitch))
        place = b.offset(place, b.mul(channel, self.size))
        start = [
            choose(
                b, self.fresh, constant(0, tile.type),
                self._read(b.offset(place, i * pitch), mask),
            )
            for i in range(len(inner))
        ]  # fmt: skip
        for i, total in enumerate(self._add(first, inner, channel, mask, start)):
            if mask is None:
                b.store(total, b.offset(place, i * pitch), self.size)
            else:
                store_masked(b, total, b.offset(place, i * pitch), mask)

    def _add(
        self,
        first: tuple[Reg, Reg],
        inner: list[tuple[int, int]],
        channel: Reg,
        mask: Reg | None,
        start: list[Reg],
    ) -> list[Reg]:
        """Add what the positions of the block give."""
        b = self.b
        images, planes, lines, _ = self.spans
        with b.loop(images[0], b.add(*images), 1, start) as n:
            with b.loop(planes[0], b.add(*planes), 1, n.carried) as z:
                with b.loop(lines[0], b.add(*lines), 1, z.carried) as y:
                    at = [n.index, z.index, y.index]
                    y.next = self._add_line(at, first, inner, channel, mask, y.carried)
                z.next = y.results
            n.next = z.results
        return n.results

    def _add_line(
        self,
        at: list[Reg],
        first: tuple[Reg, Reg],
        inner: list[tuple[int, int]],
        channel: Reg,
        mask: Reg | None,
        start: list[Reg],
    ) -> list[Reg]:
        """Add what neighbours along the last axis give."""
        b, sides = self.b, self.problem.sides
        begin, count = self.spans[3]
        source = [at[0]]
        for q, tap, side in zip((*at[1:], begin), (*first, integer(0)), sides, strict=True):
            moved = b.add(b.mul(q, side.stride), b.mul(tap, side.dilation))
            source.append(b.add(moved, -side.low))
        x = b.offset(self.left.at(b, source), b.mul(channel, self.size))
        g = b.offset(self.right.at(b, [*at, begin]), b.mul(channel, self.size))
        up, along = self.left.pitches[2:]
        places = [
            tap_y * sides[1].dilation * up + tap_x * sides[2].dilation * along
            for tap_y, tap_x in inner
        ]
        with b.loop(0, count, 1, [x, g, *start]) as loop:
            x, g, *sums = loop.carried
            factor = self._read(g, mask)
            loop.next = [
                b.offset(x, sides[2].stride * along),
                b.offset(g, self.right.pitches[3]),
                *(
                    fma(b, self._read(b.offset(x, place), mask), factor, total)
                    for place, total in zip(places, sums, strict=True)
                ),
            ]
        return loop.results[2:]

    def _read(self, pointer: Reg, mask: Reg | None) -> Reg:
        sums = self.problem.sums
        return read(self.b, pointer, self.tile.lanes, sums, sums, mask)

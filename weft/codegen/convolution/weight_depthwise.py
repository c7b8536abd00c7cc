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
    # Two vectors are a run of 128 bytes of each position, where their sums fit the registers.
    inner = problem.sides[2].taps * (problem.sides[1].taps if tall else 1)
    vectors = 2 if 2 * inner <= target.registers - 4 and problem.width > lanes else 1
    tile = Tile(problem.sides[1].taps if tall else 1, vectors, lanes, problem.sums)
    plan = Plan(tile, tall, False, copied, False, False, (1, 1, 1, 1), 1, (1, 1))
    plan = cut(plan, problem, 1, 1, target)
    return _DepthwiseNest(problem, plan, target).launches(operands, sink)


class _DepthwiseNest(WeightNest):
    """The nest of a depthwise gradient."""

    def _work(self, rows: Reg, columns: Reg) -> None:
        b, problem = self.b, self.problem
        outer = problem.sides[0].taps * (1 if self.plan.tall else problem.sides[1].taps)
        lanes, wide = self.tile.lanes, self.tile.columns
        first, count = span(b, columns, ceil_div(problem.width, wide), self.plan.slices[1])
        with each(b, integer(0), integer(outer)) as taps, b.loop(first, b.add(first, count)) as v:
            channel = b.mul(v.index, wide)
            masks: list[Reg | None] = [None] * self.tile.vectors
            if problem.width % wide:
                rest = subtract(b, integer(problem.width), channel)
                masks = [first_lanes(b, b.add(rest, -i * lanes), lanes) for i in range(len(masks))]
            self._vectors(taps, channel, masks)

    def _vectors(self, outer: Reg, channel: Reg, masks: list[Reg | None]) -> None:
        """The sums of some taps for neighbouring vectors of channels."""
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
        places = [
            (b.offset(place, i * pitch + v * self.step), mask)
            for i in range(len(inner))
            for v, mask in enumerate(masks)
        ]
        zero = constant(0, tile.type)
        start = [choose(b, self.fresh, zero, self._read(at, mask)) for at, mask in places]
        sums = self._add(first, inner, channel, masks, start)
        for (at, mask), total in zip(places, sums, strict=True):
            if mask is None:
                b.store(total, at, self.size)
            else:
                store_masked(b, total, at, mask)

    @property
    def step(self) -> int:
        """Bytes of a vector."""
        return self.tile.lanes * self.size

    def _add(
        self,
        first: tuple[Reg, Reg],
        inner: list[tuple[int, int]],
        channel: Reg,
        masks: list[Reg | None],
        start: list[Reg],
    ) -> list[Reg]:
        """Add what the positions of the block give."""
        b = self.b
        images, planes, lines, _ = self.spans
        with b.loop(images[0], b.add(*images), 1, start) as n:
            with b.loop(planes[0], b.add(*planes), 1, n.carried) as z:
                with b.loop(lines[0], b.add(*lines), 1, z.carried) as y:
                    at = [n.index, z.index, y.index]
                    y.next = self._add_line(at, first, inner, channel, masks, y.carried)
                z.next = y.results
            n.next = z.results
        return n.results

    def _add_line(
        self,
        at: list[Reg],
        first: tuple[Reg, Reg],
        inner: list[tuple[int, int]],
        channel: Reg,
        masks: list[Reg | None],
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
            factors = [self._read(b.offset(g, v * self.step), m) for v, m in enumerate(masks)]
            values = [
                (self._read(b.offset(x, place + v * self.step), mask), factors[v])
                for place in places
                for v, mask in enumerate(masks)
            ]
            loop.next = [
                b.offset(x, sides[2].stride * along),
                b.offset(g, self.right.pitches[3]),
                *(fma(b, *pair, total) for pair, total in zip(values, sums, strict=True)),
            ]
        return loop.results[2:]

    def _read(self, pointer: Reg, mask: Reg | None) -> Reg:
        sums = self.problem.sums
        return read(self.b, pointer, self.tile.lanes, sums, sums, mask)

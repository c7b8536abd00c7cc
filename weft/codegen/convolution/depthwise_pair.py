"""Both gradients of a depthwise convolution in one kernel.

The input gradient is a depthwise convolution of the cotangent. Each vector of the cotangent that it
multiplies by a weight is also multiplied by the element of x at the result's position, for that
weight's gradient. Each chunk has its own weight sums, in its part of scratch memory, and they are
kept there between two lines of taps: all taps of a tile of several rows do not fit the registers.

Neither gradient is bound by arithmetic, so this takes as long as the input gradient alone.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Final

from weft.codegen.builder import Reg, constant, integer
from weft.codegen.contraction.sink import Sink, Summing
from weft.codegen.convolution.depthwise import Depthwise, plan_of
from weft.codegen.convolution.geometry import Correlation
from weft.codegen.convolution.halo import choose
from weft.codegen.convolution.plan import Plan
from weft.codegen.convolution.weight_problem import WeightGradient
from weft.codegen.convolution.weight_sum import Tiling, launch_sum
from weft.codegen.loop.prologue import Prologue
from weft.codegen.microkernel import fma
from weft.codegen.target import Target
from weft.passes.launch import Argument, Launch, Scratch

LIVE: Final = 4
"""Registers for each row of a tile: its sum, x, and a temporary."""


def launch_both_gradients(
    problem: Correlation,
    by_weights: WeightGradient,
    target: Target,
    operands: tuple[Prologue, Argument, Prologue],
    sinks: tuple[Summing, Sink],
) -> tuple[Launch, ...]:
    """The launches: both gradients, with weight sums in parts, then the sum of the parts.

    Args:
        problem: the input gradient.
        by_weights: the weight gradient, of one size of elements.
        target: the instruction set.
        operands: how the cotangent is read, the weights, how x is read.
        sinks: destinations of the input gradient and the weight gradient.
    """
    g, weights, x = operands
    plan = plan_of(problem, target, g.steps, target.registers // LIVE)
    nest = _Both(problem, plan, target, sinks[0], x)
    first = nest.launch(g, weights)
    more = by_weights.flops, by_weights.bytes
    first = replace(first, flops=first.flops + more[0], bytes=first.bytes + more[1])
    return first, launch_sum(by_weights, plan.chunks, nest.tiling, nest.partial, sinks[1])


class _Both(Depthwise):
    """The nest of both gradients."""

    def __init__(
        self, problem: Correlation, plan: Plan, target: Target, sink: Summing, x: Prologue
    ) -> None:
        super().__init__(problem, plan, target, sink)
        self.x = x
        taps = prod(problem.taps)
        tile = replace(plan.tile, rows=taps)
        self.tiling = Tiling(tile, 1, problem.groups, taps, 1, 1)
        self.part_bytes = self.tiling.count * self.tiling.bytes
        self.partial = Scratch(plan.chunks * self.part_bytes)
        self.also = x.array, *x.values, self.partial

    def _bind(self, slot: int) -> None:
        b = self.b
        self.x_base = b.argument(slot)
        self.x.bind(b, slot + 1)
        self.parts_at = b.argument(slot + len(self.also) - 1)

    def _chunk(self, index: Reg) -> None:
        b, tile = self.b, self.tile
        self.sums_at = b.offset(self.parts_at, b.mul(index, self.part_bytes))
        with b.loop(0, self.part_bytes, self.tiling.step) as loop:
            b.store(constant(0, tile.type), b.offset(self.sums_at, loop.index), self.size)
        super()._chunk(index)

    def _meet(self, pixel: Reg, column: Reg, mask: Reg | None, skip: Reg | None) -> None:
        """Finds x for the tile's rows, and the sums of its columns' weights."""
        b, lanes, channels = self.b, self.tile.lanes, self.problem.groups
        step = self.problem.axes[2].step
        self.met: list[Reg] = []
        for row in range(self.tile.rows):
            place = b.mul(b.add(pixel, row * step), channels * self.size)
            pointer = b.offset(self.x_base, b.add(place, b.mul(column, self.size)))
            value = self.x.read(pointer, column, lanes, self.problem.sums, mask)
            if skip is not None:  # an earlier tile has found it
                wanted = b.compare("icmp sle", skip, integer(row))
                value = choose(b, wanted, value, constant(0, value.type))
            self.met.append(value)
        # All taps of a vector of columns, then those of the next: `tile.rows` of `tiling`.
        self.taps_at = b.offset(self.sums_at, b.mul(column, prod(self.problem.taps) * self.size))

    def _line(
        self, line: Reg, weights: Reg, tap: Reg, mask: Reg | None, sums: list[Reg]
    ) -> list[Reg]:
        b, step = self.b, self.tiling.step
        first = b.mul(tap, self.problem.taps[2])
        places = [b.offset(self.taps_at, b.mul(b.add(first, t), step)) for t in self._order(2)]
        self.gathered = [b.load(self.tile.type, place, self.size) for place in places]
        found = super()._line(line, weights, tap, mask, sums)
        for value, place in zip(self.gathered, places, strict=True):
            b.store(value, place, self.size)
        return found

    def _product(self, row: int, tap: int, source: Reg, weight: Reg, total: Reg) -> Reg:
        self.gathered[tap] = fma(self.b, source, self.met[row], self.gathered[tap])
        return super()._product(row, tap, source, weight, total)

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
from weft.codegen.contraction.sink import Sink, Streaming
from weft.codegen.convolution.depthwise import Channels, Depthwise, plan_of
from weft.codegen.convolution.geometry import Correlation
from weft.codegen.convolution.halo import choose
from weft.codegen.convolution.layout import Layout
from weft.codegen.convolution.nest import Slice, Spot
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
    sinks: tuple[Streaming, Sink],
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
    taps = prod(problem.taps)
    tiling = Tiling(replace(plan.tile, rows=taps), 1, problem.groups, taps, 1, 1)
    partial = Scratch(plan.chunks * tiling.count * tiling.bytes)
    nest = _Both(Layout(problem, plan), target, g, sinks[0], x, tiling, partial)
    first = nest.launch(weights)
    flops, moved = first.flops + by_weights.flops, first.bytes + by_weights.bytes
    first = replace(first, flops=flops, bytes=moved)
    return first, launch_sum(by_weights, plan.chunks, tiling, partial, sinks[1])


class _Both(Depthwise):
    """The nest of both gradients."""

    x_base: Reg
    parts_at: Reg

    def __init__(
        self, layout: Layout, target: Target, source: Prologue, sink: Streaming, x: Prologue,
        tiling: Tiling, partial: Scratch,
    ) -> None:  # fmt: skip
        self.x: Final = x
        self.tiling: Final = tiling
        super().__init__(layout, target, source, sink, (x.array, *x.values, partial))

    def bind(self, slot: int) -> None:
        """Loads the addresses of x and of the sums of weights."""
        b = self.b
        self.x_base = b.argument(slot)
        self.x.bind(b, slot + 1)
        self.parts_at = b.argument(slot + len(self.also) - 1)

    def begin_chunk(self, index: Reg) -> Reg:
        """Clears the chunk's sums of weights; returns where they are."""
        b, size = self.b, self.tiling.count * self.tiling.bytes
        sums = b.offset(self.parts_at, b.mul(index, size))
        with b.loop(0, size, self.tiling.step) as loop:
            b.store(constant(0, self.tile.type), b.offset(sums, loop.index), self.size)
        return sums

    def _meet(self, own: Slice, spot: Spot, column: Reg, mask: Reg | None) -> tuple[list[Reg], Reg]:
        """Finds x for the tile's rows, and the sums of its columns' weights."""
        b, lanes, channels = self.b, self.tile.lanes, self.problem.groups
        step, sums = self.problem.axes[2].step, own.sums
        assert sums is not None
        met: list[Reg] = []
        for row in range(self.tile.rows):
            place = b.mul(b.add(spot.pixel, row * step), channels * self.size)
            pointer = b.offset(self.x_base, b.add(place, b.mul(column, self.size)))
            value = self.x.read(pointer, column, lanes, self.problem.sums, mask)
            if spot.skip is not None:  # an earlier tile has found it
                wanted = b.compare("icmp sle", spot.skip, integer(row))
                value = choose(b, wanted, value, constant(0, value.type))
            met.append(value)
        # All taps of a vector of columns, then those of the next: `tile.rows` of `tiling`.
        return met, b.offset(sums, b.mul(column, prod(self.problem.taps) * self.size))

    def _line(self, vector: Channels, line: Reg, tap: Reg, sums: list[Reg]) -> list[Reg]:
        """All taps of a line, and their weights' gradients."""
        b, step = self.b, self.tiling.step
        first = b.mul(tap, self.problem.taps[2])
        order = self._order(vector, 2)
        places = [b.offset(vector.sums, b.mul(b.add(first, t), step)) for t in order]
        gathered = [b.load(self.tile.type, place, self.size) for place in places]
        sums = list(sums)
        for row, x, source, weight in self._products(vector, line, tap, len(sums)):
            gathered[x] = fma(b, source, vector.met[row], gathered[x])
            sums[row] = fma(b, source, weight, sums[row])
        for value, place in zip(gathered, places, strict=True):
            b.store(value, place, self.size)
        return sums

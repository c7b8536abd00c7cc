"""Convolutions with very few columns, such as one or three output channels: vectors run along the
input channels.

A vector of columns would be nearly empty. Here a sum is a vector of partial sums over the source's
channels, reduced at the end, for `rows` positions and all columns at once. The weights are first
transposed to `[group, tap, tap, column, tap of the last axis, depth]`, so that both operands are
contiguous runs.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from math import prod

from weft.codegen.builder import Reg, constant, element, integer, kernel_builder
from weft.codegen.contraction.emit import divide, fixed, read, subtract
from weft.codegen.contraction.sink import Streaming
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.convolution.geometry import Correlation
from weft.codegen.convolution.layout import Layout
from weft.codegen.convolution.nest import Nest, Slice, Spot
from weft.codegen.convolution.piece import Part, each, look_up
from weft.codegen.convolution.plan import Plan, cut, for_many
from weft.codegen.loop.prologue import Prologue
from weft.codegen.microkernel import Tile, first_lanes, fma, suffix
from weft.codegen.target import Target
from weft.ir.extent import pinned
from weft.passes.launch import Argument, Kernel, Launch, Scratch

COLUMNS = 4
"""Maximum columns."""
REDUCTION = 12
"""Estimated cycles to reduce the lanes of one sum."""
LONGEST = 8
"""Maximum rows of a tile."""


def suits(problem: Correlation, target: Target) -> bool:
    """Whether this kernel takes fewer cycles than a tile with one vector of columns."""
    if problem.columns > COLUMNS:
        return False
    problem = replace(problem, depth=pinned(problem.depth), columns=pinned(problem.columns))
    lanes = target.lanes(problem.sums.size)
    steps = problem.depth * problem.packed_taps
    run = problem.depth * (len(problem.axes[2].order) if _joined(problem) else 1)
    narrow = steps * problem.columns / (2 * lanes) + REDUCTION * problem.columns
    return run >= lanes // 2 and narrow < steps / 2


def _joined(problem: Correlation) -> bool:
    return problem.groups == 1 and problem.axes[2].dilation == 1


def launch_narrow(
    problem: Correlation, target: Target, source: Prologue, weights: Argument, sink: Streaming
) -> tuple[Launch, ...]:
    """The launches: transposing the weights, then the convolution."""
    problem = replace(problem, depth=pinned(problem.depth), columns=pinned(problem.columns))
    turn, turned = _turned(problem, weights)
    plan = _plan_of(problem, target)
    return turn, _Narrow(Layout(problem, plan), target, source, sink).launch(turned)


def _plan_of(problem: Correlation, target: Target) -> Plan:
    copied = not problem.inside or problem.dtype is not problem.sums
    real, problem = problem, problem.planned()
    last = problem.axes[2]
    most = max(1, min(LONGEST, (target.registers - 6) // problem.columns, last.fewest))
    rows = min(range(1, most + 1), key=lambda n: (ceil_div(last.count, n) * (n + 1), -n))
    tile = Tile(rows, 1, target.lanes(problem.sums.size), problem.sums)
    blocks, _ = cut(problem, tile, False, 1, target)
    if last.count // blocks[3] - (last.count - last.fewest) < rows:
        tile = replace(tile, rows=1)
    return for_many(Plan(tile, False, blocks, 1, copied, _joined(problem)), real)


def _turned(problem: Correlation, weights: Argument) -> tuple[Launch, Scratch]:
    """The launch that transposes the weights, one element at a time: there are few."""
    b = kernel_builder()
    source, to = b.argument(0), b.argument(1)
    lengths = [len(axis.order) for axis in problem.axes]
    extents = (problem.groups, *lengths[:2], problem.columns, lengths[2], problem.depth)
    orders = [axis.order for axis in problem.axes]
    _, height, width = problem.taps
    with b.loop(b.params[1], b.params[2]) as chunk, b.loop(0, prod(extents[1:])) as loop:
        rest, k = divide(b, loop.index, integer(problem.depth))
        found: list[Reg] = []
        for extent in (lengths[2], problem.columns, lengths[1], lengths[0]):
            rest, i = divide(b, rest, integer(extent))
            found.append(i)
        x, column, y, z = found
        tap = integer(0)
        for i, (order, at, extent) in enumerate(
            zip(orders, (z, y, x), (1, height, width), strict=True)
        ):
            (own,) = look_up(b, f"taps{i}", [(t,) for t in order], at)
            tap = b.add(b.mul(tap, extent), own)
        group = chunk.index
        if problem.turned:
            place = b.add(b.mul(b.add(b.mul(tap, problem.columns), column), problem.groups), group)
            place = b.add(b.mul(place, problem.depth), k)
        else:
            place = b.add(b.mul(b.add(b.mul(tap, problem.depth), k), problem.groups), group)
            place = b.add(b.mul(place, problem.columns), column)
        pointer = b.offset(source, b.mul(place, problem.dtype.size))
        value = read(b, pointer, 1, problem.dtype, problem.sums, None)
        goal = b.add(b.mul(group, prod(extents[1:])), loop.index)
        b.store(value, b.offset(to, b.mul(goal, problem.sums.size)), problem.sums.size)
    scratch = Scratch(prod(extents) * problem.sums.size)
    kernel = Kernel(f"turn_{problem.label}", b.module())
    moved = 2.0 * scratch.size
    return Launch(kernel, (weights, scratch), (1,), problem.groups, bytes=moved), scratch


class _Narrow(Nest):
    """The nest of such a convolution."""

    def _work(self, own: Slice, share: Reg) -> None:
        b, problem = self.b, self.problem
        every = problem.packed_taps * problem.columns * problem.depth * self.size
        with (
            each(b, integer(0), integer(problem.groups)) as group,
            self._each_part(own.block) as (parts, _),
        ):
            base = self._base(b.offset(own.base, b.mul(group, problem.depth * self.size)), parts)
            column = b.mul(group, problem.columns)
            weights = b.offset(self.weights, b.mul(group, every))
            self._rows(
                own.block, parts, base, lambda spot: self._tile(parts, weights, column, spot)
            )

    def _tile(self, parts: list[Part], weights: Reg, first: Reg, spot: Spot) -> None:
        """One tile of adjacent positions, for the columns from `first` on."""
        b, columns, skip = self.b, self.problem.columns, spot.skip
        start = [constant(0, self.tile.type)] * (self.tile.rows * columns)
        sums = [self._added(s) for s in self._loop(parts, [], spot.source, weights, start)]
        total = integer(self.problem.groups * columns)
        self.sink.reset()
        for row in range(self.tile.rows):
            at = b.add(spot.pixel, row * self.problem.axes[2].step)
            wanted = None
            if skip is not None and row < self.tile.rows - 1:
                wanted = b.compare("icmp sle", skip, integer(row))
            with contextlib.nullcontext() if wanted is None else b.when(wanted):
                for column in range(columns):
                    self.sink.reset()
                    place = (at, b.add(first, column), total)
                    self.sink.store(sums[row * columns + column], place, 1, None)

    def _added(self, value: Reg) -> Reg:
        """The sum of a vector's lanes, in a fixed order that the target chooses."""
        scalar = element(value.type)
        name = f"@llvm.vector.reduce.fadd.{suffix(value.type)}"
        self.b.declarations.add(f"declare {scalar} {name}({scalar}, {value.type})")
        return self.b.emit(scalar, f"call reassoc {scalar} {name}({scalar} 0.0, {value})")

    def _loop(
        self, parts: list[Part], taps: list[Reg], source: Reg, weights: Reg, sums: list[Reg]
    ) -> list[Reg]:
        """Loops over the taps, then over their channels."""
        b, problem, i = self.b, self.problem, len(taps)
        if i == 2 and self.plan.joined:
            taps = [*taps, parts[2].tap]
            return self._run(taps, source, weights, b.mul(parts[2].taps, problem.depth), sums)
        if i == 3:
            return self._run(taps, source, weights, integer(problem.depth), sums)
        with b.loop(0, parts[i].taps, 1, sums) as loop:
            pitch = problem.axes[i].dilation * self.pitches[i + 1]
            place = b.offset(source, b.mul(loop.index, pitch))
            at = [*taps, b.add(parts[i].tap, loop.index)]
            loop.next = self._loop(parts, at, place, weights, loop.carried)
        return loop.results

    def _run(
        self, taps: list[Reg], source: Reg, weights: Reg, count: Reg, sums: list[Reg]
    ) -> list[Reg]:
        """Adds the products of `count` contiguous source elements."""
        b, problem, lanes = self.b, self.problem, self.tile.lanes
        _, height, width = (len(axis.order) for axis in problem.axes)
        line = b.mul(b.add(b.mul(taps[0], height), taps[1]), problem.columns * width)
        weights = b.offset(weights, b.mul(b.add(line, taps[2]), problem.depth * self.size))
        known = fixed(count)
        whole = 0 if known is None else known - known % lanes
        with b.loop(0, whole, lanes, sums) as loop:
            loop.next = self._step(source, weights, loop.index, None, loop.carried)
        sums = loop.results
        if known == whole:
            return sums
        with b.loop(whole, count, lanes, sums) as loop:
            mask = first_lanes(b, subtract(b, count, loop.index), lanes)
            loop.next = self._step(source, weights, loop.index, mask, loop.carried)
        return loop.results

    def _step(
        self, source: Reg, weights: Reg, k: Reg, mask: Reg | None, sums: list[Reg]
    ) -> list[Reg]:
        """One vector of channels for all rows and columns of the tile."""
        b, problem = self.b, self.problem
        along = b.mul(k, self.size)
        pitch = problem.axes[2].stride * self.pitches[3]
        between = len(problem.axes[2].order) * problem.depth * self.size
        factors = [
            self._read(b.offset(b.offset(weights, along), column * between), mask)
            for column in range(problem.columns)
        ]
        result: list[Reg] = []
        for row in range(self.tile.rows):
            value = self._read(b.offset(b.offset(source, along), row * pitch), mask)
            own = sums[row * problem.columns : (row + 1) * problem.columns]
            result.extend(fma(b, value, f, s) for f, s in zip(factors, own, strict=True))
        return result

    def _read(self, pointer: Reg, mask: Reg | None) -> Reg:
        sums = self.problem.sums
        return read(self.b, pointer, self.tile.lanes, sums, sums, mask)

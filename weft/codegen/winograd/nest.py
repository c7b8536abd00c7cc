"""The loops of a Winograd convolution.

chunk           a block of squares; a group of panels, or all of them in turn
  (source)      its windows transformed into this thread's scratch, if not done before
  group         panels whose products are kept
    point       16 to 64; its part of the source and of the panels comes into L2 once
      panel
        tile    microkernel over the channels, sums into scratch
    square      transformed back, stored through the epilogue
"""

from __future__ import annotations

from weft.codegen.builder import Reg, integer, kernel_builder, number
from weft.codegen.contraction.emit import divide, read, smaller, subtract
from weft.codegen.contraction.sink import Sink, launch_into
from weft.codegen.convolution.geometry import Correlation
from weft.codegen.microkernel import Right, first_lanes, microkernel, strided, unroll_of
from weft.codegen.target import Target
from weft.codegen.winograd.plan import Plan
from weft.codegen.winograd.source import launch_source, windows_of
from weft.codegen.winograd.transform import both_axes
from weft.codegen.winograd.weights import launch_weights
from weft.codegen.winograd.window import WindowTransform, square_at
from weft.host.memory import LINE
from weft.ir.dtype import float32
from weft.ir.extent import multiple
from weft.passes.launch import Argument, Kernel, Launch, Scratch

SIZE = float32.size
Place = tuple[Reg, Reg | None]
"""First column of a vector of results, and which lanes exist if not all."""


def launch_winograd(
    problem: Correlation, plan: Plan, target: Target, operands: tuple[Argument, Argument],
    sink: Sink,
) -> tuple[Launch, ...]:  # fmt: skip
    """The launches: weight transform, source transform if separate, then matmuls and results."""
    source, weights = operands
    first, transformed = launch_weights(problem, plan, target, weights)
    before = [first]
    if plan.staged:
        second, source = launch_source(problem, plan, source)
        before.append(second)
    return (*before, _Nest(problem, plan, sink).launch(source, transformed))


class _Nest:
    def __init__(self, problem: Correlation, plan: Plan, sink: Sink) -> None:
        self.problem = problem
        self.plan = plan
        self.tile = plan.tile
        self.sink = sink
        self.products = plan.group * plan.points * plan.product_point
        self.block = plan.points * plan.source_point(problem.depth)
        self.scratch = self.products + (0 if plan.staged else self.block)
        side = plan.transform.outputs
        self.square_bytes = side * side * plan.tile.lanes * SIZE
        self.whole = all(multiple(axis.result, side) for axis in problem.axes[1:])

    def launch(self, source: Argument, weights: Argument) -> Launch:
        """The launch on the source, transformed if staged, and the transformed weights."""
        args = (source, weights, Scratch(self.scratch, per_thread=True))
        problem, plan = self.problem, self.plan
        name = f"winograd{plan.transform.outputs}_{problem.label}"
        kernel = Kernel(name, self._ir(len(args)))
        return launch_into(self.sink, kernel, args, (2,), plan.chunks, problem.flops, problem.bytes)

    def _ir(self, slot: int) -> str:
        b = self.b = kernel_builder()
        self.source, self.weights = b.argument(0), b.argument(1)
        self.own = b.offset(b.argument(2), b.mul(b.params[3], self.scratch))
        if not self.whole:
            self.square = b.emit("ptr", f"alloca [{self.square_bytes} x i8], align {LINE}")
        if not self.plan.staged:
            self.windows = WindowTransform(b, windows_of(self.problem, self.plan))
        self.sink.bind(b, slot)
        with b.loop(b.params[1], b.params[2]) as loop:
            self._chunk(loop.index)
        return b.module()

    def _chunk(self, index: Reg) -> None:
        b, plan = self.b, self.plan
        group, block = divide(b, index, integer(plan.blocks))
        first = b.mul(block, plan.tiles)
        count = smaller(b, subtract(b, integer(plan.total), first), plan.tiles)
        if plan.staged:
            self._group(b.offset(self.source, b.mul(block, self.block)), group, first, count)
            return
        source = b.offset(self.own, self.products)
        self.windows.write(self.source, source, first, count)
        with b.loop(0, plan.groups) as loop:
            self._group(source, loop.index, first, count)

    def _group(self, source: Reg, group: Reg, first: Reg, count: Reg) -> None:
        """Multiplies a block by a group of panels, then computes its results in their columns."""
        b, plan = self.b, self.plan
        start = b.mul(group, plan.group)
        panels: Reg = integer(plan.group)
        if not multiple(plan.panels, plan.group):
            panels = smaller(b, subtract(b, integer(plan.panels), start), plan.group)
        with b.loop(0, plan.points) as point, b.loop(0, panels) as panel:
            self._multiply(source, point.index, b.add(start, panel.index), panel.index, count)
        with b.loop(0, panels) as panel:
            own = b.offset(self.own, b.mul(panel.index, plan.points * plan.product_point))
            column = b.mul(b.add(start, panel.index), self.tile.columns)
            with b.loop(0, count) as square:
                place = b.offset(own, b.mul(square.index, self.tile.columns * SIZE))
                self._results(place, b.add(first, square.index), column)

    def _multiply(self, source: Reg, point: Reg, panel: Reg, own: Reg, count: Reg) -> None:
        """All squares of the block at one point times one panel."""
        b, plan, tile, depth = self.b, self.plan, self.tile, self.problem.depth
        weights = b.add(b.mul(panel, plan.points), point)
        right = Right(
            b.offset(self.weights, b.mul(weights, plan.weight_point(depth))), tile.columns * SIZE
        )
        to = b.offset(self.own, b.mul(b.add(b.mul(own, plan.points), point), plan.product_point))
        source = b.offset(source, b.mul(point, plan.source_point(depth)))
        pitch = number(plan.source_pitch(depth))
        with b.loop(0, count, tile.rows, at_least_once=True) as loop:
            left = strided(b, b.offset(source, b.mul(loop.index, pitch)), pitch, tile.rows, SIZE)
            unroll = unroll_of(depth)
            even = depth % unroll == 0
            sums = microkernel(b, tile, left, right, number(depth), None, unroll, (), even)
            goal = b.offset(to, b.mul(loop.index, tile.columns * SIZE))
            for row, values in enumerate(sums):
                for v, value in enumerate(values):
                    away = row * tile.columns + v * tile.lanes
                    b.store(value, b.offset(goal, away * SIZE), SIZE)

    def _results(self, products: Reg, index: Reg, column: Reg) -> None:
        """One square of a panel's columns, transformed back and stored."""
        b, plan, lanes = self.b, self.plan, self.tile.lanes
        side = plan.transform.outputs
        image, row, across = square_at(b, (integer(plan.down), integer(plan.across)), index)
        y, x = b.mul(row, side), b.mul(across, side)
        rooms = [
            smaller(b, subtract(b, integer(axis.result), at), side)
            for axis, at in zip(self.problem.axes[1:], (y, x), strict=True)
        ]
        down, along = (axis.result for axis in self.problem.axes[1:])
        pixel = b.add(b.mul(b.add(b.mul(image, down), y), along), x)
        with b.loop(0, self.tile.vectors) as v:
            at = b.add(column, b.mul(v.index, lanes))
            mask = None
            if self.problem.columns % self.tile.columns:
                mask = first_lanes(b, subtract(b, integer(self.problem.columns), at), lanes)
            square = self._back(b.offset(products, b.mul(v.index, lanes * SIZE)))
            self._store(square, pixel, (at, mask), rooms)

    def _store(self, square: list[list[Reg]], pixel: Reg, place: Place, rooms: list[Reg]) -> None:
        b = self.b
        if self.whole:
            self._store_whole(square, pixel, place)
            return
        tests = [b.compare("icmp eq", room, integer(len(square))) for room in rooms]
        full = b.binary("and", tests[0], tests[1])
        with b.when(full):
            self._store_whole(square, pixel, place)
        with b.when(b.binary("xor", full, Reg("i1", "true"))):
            self._store_part(square, pixel, place, rooms)

    def _back(self, products: Reg) -> list[list[Reg]]:
        b, plan = self.b, self.plan
        side, lanes = plan.transform.points, self.tile.lanes
        places = [[(i * side + j) * plan.product_point for j in range(side)] for i in range(side)]
        values = [
            [read(b, b.offset(products, at), lanes, float32, float32, None) for at in row]
            for row in places
        ]
        return both_axes(b, plan.transform.result, values)

    def _store_whole(self, square: list[list[Reg]], pixel: Reg, place: Place) -> None:
        b, along = self.b, self.problem.axes[2].result
        column, mask = place
        total = integer(self.problem.columns)
        self.sink.reset()
        for i, row in enumerate(square):
            line = b.add(pixel, i * along)
            for j, value in enumerate(row):
                at = b.add(line, j)
                self.sink.store(value, (at, column, total), self.tile.lanes, mask)

    def _store_part(
        self, square: list[list[Reg]], pixel: Reg, place: Place, rooms: list[Reg]
    ) -> None:
        """Stores a square that extends beyond the edge, through memory."""
        b, lanes = self.b, self.tile.lanes
        column, mask = place
        flat = [value for row in square for value in row]
        for i, value in enumerate(flat):
            b.store(value, b.offset(self.square, i * lanes * SIZE), SIZE)
        with b.loop(0, rooms[0]) as i, b.loop(0, rooms[1]) as j:
            away = b.mul(b.add(b.mul(i.index, len(square)), j.index), lanes * SIZE)
            value = b.load(flat[0].type, b.offset(self.square, away), SIZE)
            at = b.add(b.add(pixel, b.mul(i.index, self.problem.axes[2].result)), j.index)
            self.sink.reset()
            self.sink.store(value, (at, column, integer(self.problem.columns)), lanes, mask)
        self.sink.reset()

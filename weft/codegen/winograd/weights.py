"""The transformed weights: for each panel of columns and each point, depth x columns."""

from __future__ import annotations

from weft.codegen.builder import Reg, integer, kernel_builder
from weft.codegen.contraction.emit import divide, read, subtract
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.contraction.transpose import transpose
from weft.codegen.convolution.geometry import Correlation
from weft.codegen.microkernel import first_lanes
from weft.codegen.target import Target
from weft.codegen.winograd.plan import Plan
from weft.codegen.winograd.transform import both_axes
from weft.host.memory import LINE
from weft.ir.dtype import float32
from weft.passes.launch import Argument, Kernel, Launch, Scratch

SIZE = float32.size


def launch_weights(
    problem: Correlation, plan: Plan, target: Target, weights: Argument
) -> tuple[Launch, Scratch]:
    """The launch that transforms all weights, and their layout."""
    return _Weights(problem, plan, target).launch(weights)


class _Weights:
    """A chunk is `lanes` steps of depth of one panel."""

    def __init__(self, problem: Correlation, plan: Plan, target: Target) -> None:
        self.problem = problem
        self.plan = plan
        self.lanes = plan.tile.lanes
        self.taps = plan.transform.taps**2
        self.parts = ceil_div(problem.depth, self.lanes)
        self.masked = problem.columns % plan.tile.columns != 0

    def launch(self, weights: Argument) -> tuple[Launch, Scratch]:
        problem, plan = self.problem, self.plan
        size = plan.panels * plan.points * plan.weight_point(problem.depth)
        scratch = Scratch(size)
        name = f"winograd{plan.transform.outputs}_weights_{problem.label}"
        moved = float(size + self.taps * problem.depth * problem.columns * SIZE)
        launch = Launch(
            Kernel(f"{name}{'_turned' * problem.turned}", self._ir()), (weights, scratch), (1,),
            plan.panels * self.parts, bytes=moved,
        )  # fmt: skip
        return launch, scratch

    def _ir(self) -> str:
        b = self.b = kernel_builder()
        source, to = b.argument(0), b.argument(1)
        square = self.lanes * self.lanes * SIZE
        if self.problem.turned:
            self.buffer = b.emit("ptr", f"alloca [{self.taps * square} x i8], align {LINE}")
        point = self.plan.weight_point(self.problem.depth)
        with b.loop(b.params[1], b.params[2]) as chunk:
            panel, part = divide(b, chunk.index, integer(self.parts))
            goal = b.offset(to, b.mul(panel, self.plan.points * point))
            step = b.mul(part, self.lanes)
            with b.loop(0, self.plan.tile.columns, self.lanes) as inner:
                column = b.add(b.mul(panel, self.plan.tile.columns), inner.index)
                place = b.add(b.mul(step, self.plan.tile.columns), inner.index)
                self._square(source, b.offset(goal, b.mul(place, SIZE)), step, column)
        return b.module()

    def _square(self, source: Reg, to: Reg, step: Reg, column: Reg) -> None:
        """`lanes` steps of depth by `lanes` columns."""
        b, problem, lanes = self.b, self.problem, self.lanes
        room = subtract(b, integer(problem.columns), column)
        steps: Reg = integer(lanes)
        if problem.depth % lanes:
            rest = subtract(b, integer(problem.depth), step)
            steps = b.call("i64", "llvm.smin.i64", (rest, steps))
        if problem.turned:
            self._turn(source, step, column, steps, room)
        pitch = problem.columns * SIZE
        mask = first_lanes(b, room, lanes) if self.masked else None
        with b.loop(0, steps) as k:
            if problem.turned:
                base = b.offset(self.buffer, b.mul(k.index, lanes * SIZE))
                taps = [b.offset(base, t * lanes * lanes * SIZE) for t in self._order()]
                values = [read(b, tap, lanes, float32, float32, None) for tap in taps]
            else:
                base = b.offset(source, b.mul(b.add(step, k.index), pitch))
                base = b.offset(base, b.mul(column, SIZE))
                taps = [b.offset(base, t * problem.depth * pitch) for t in self._order()]
                values = [read(b, tap, lanes, float32, float32, mask) for tap in taps]
            goal = b.offset(to, b.mul(k.index, self.plan.tile.columns * SIZE))
            self._store(values, goal)

    def _order(self) -> list[int]:
        """The order of taps in memory that gives ascending source positions."""
        _, rows, columns = self.problem.axes
        return [y * len(columns.order) + x for y in rows.order for x in columns.order]

    def _store(self, values: list[Reg], to: Reg) -> None:
        side = self.plan.transform.taps
        square = [values[i : i + side] for i in range(0, self.taps, side)]
        found = both_axes(self.b, self.plan.transform.weights, square)
        point = self.plan.weight_point(self.problem.depth)
        for i, value in enumerate(v for row in found for v in row):
            self.b.store(value, self.b.offset(to, i * point), SIZE)

    def _turn(self, source: Reg, step: Reg, column: Reg, steps: Reg, room: Reg) -> None:
        """Transposes the square of each tap if steps run along vectors in memory."""
        b, problem, lanes = self.b, self.problem, self.lanes
        pitch = problem.depth * SIZE
        base = b.offset(source, b.mul(column, pitch))
        base = b.offset(base, b.mul(step, SIZE))
        whole = problem.depth % lanes == 0 and not self.masked
        masks: list[Reg | None] = [None] * lanes
        if not whole:
            for i in range(lanes):
                inside = b.compare("icmp slt", integer(i), room)
                some = b.emit("i64", f"select {inside}, {steps}, i64 0")
                masks[i] = first_lanes(b, some, lanes)
        with b.loop(0, self.taps) as tap:
            place = b.offset(base, b.mul(tap.index, problem.columns * pitch))
            rows = [
                read(b, b.offset(place, i * pitch), lanes, float32, float32, mask)
                for i, mask in enumerate(masks)
            ]
            goal = b.offset(self.buffer, b.mul(tap.index, lanes * lanes * SIZE))
            for i, value in enumerate(transpose(b, rows, lanes)):
                b.store(value, b.offset(goal, i * lanes * SIZE), SIZE)

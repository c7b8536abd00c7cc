"""The transformed source: windows of a block of squares, taken apart into points.

Inside the image a window's places are constant distances from its corner. At the border they come
from a table of pointers, made once a window, in which places outside point at zeros.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.codegen.builder import Builder, Reg, integer, kernel_builder
from weft.codegen.contraction.emit import divide, read, smaller, subtract
from weft.codegen.contraction.plan import ceil_div
from weft.codegen.convolution.geometry import Correlation
from weft.codegen.kernel import Argument, Kernel, Launch, Scratch
from weft.codegen.microkernel import first_lanes
from weft.codegen.winograd.plan import Plan
from weft.codegen.winograd.transform import both_axes
from weft.ir.dtype import float32

SIZE = float32.size
PARTS = 8
"""Parts of a block where the source is transformed before."""
Places = Callable[[int, int], Reg]


def launch_source(problem: Correlation, plan: Plan, source: Argument) -> tuple[Launch, Scratch]:
    """The launch that transforms all of the source, and where its blocks lie."""
    b = kernel_builder()
    scratch = Scratch(plan.blocks * plan.points * plan.source_point(problem.depth))
    x, to = b.argument(0), b.argument(1)
    windows = SourceTransform(b, problem, plan)
    share = ceil_div(plan.tiles, PARTS)
    with b.loop(b.params[1], b.params[2]) as chunk:
        block, part = divide(b, chunk.index, integer(PARTS))
        goal = b.offset(to, b.mul(block, plan.points * plan.source_point(problem.depth)))
        own = b.mul(part, share)
        first = b.add(b.mul(block, plan.tiles), own)
        rest = smaller(b, subtract(b, integer(plan.total), first), share)
        count = smaller(b, subtract(b, integer(plan.tiles), own), rest)
        windows.write(x, b.offset(goal, b.mul(own, plan.source_pitch(problem.depth))), first, count)
    name = f"winograd{plan.transform.outputs}_source_{problem.label}"
    moved = float(scratch.size + problem.bytes)
    launch = Launch(
        Kernel(name, b.module()), (source, scratch), (1,), plan.blocks * PARTS, bytes=moved
    )
    return launch, scratch


def square_at(b: Builder, plan: Plan, index: Reg) -> tuple[Reg, Reg, Reg]:
    """Image, row and column of a square."""
    rest, column = divide(b, index, integer(plan.across))
    image, row = divide(b, rest, integer(plan.down))
    return image, row, column


class SourceTransform:
    """Writes the transform of windows inside a kernel; made at its entry."""

    def __init__(self, b: Builder, problem: Correlation, plan: Plan) -> None:
        self.b = b
        self.problem = problem
        self.plan = plan
        self.side = plan.transform.points
        self.lanes = plan.tile.lanes
        self.pitch = plan.source_pitch(problem.depth)
        self.point = plan.source_point(problem.depth)
        self.pixel = problem.depth * SIZE
        self.table = b.emit("ptr", f"alloca [{plan.points} x ptr], align 64")
        b.declarations.add(f"@zeros = private constant [{self.pixel} x i8] zeroinitializer")

    def write(self, source: Reg, to: Reg, first: Reg, count: Reg) -> None:
        """Transform `count` windows from the square `first` on; they follow each other in `to`."""
        b, outputs = self.b, self.plan.transform.outputs
        _, down, across = self.problem.axes
        with b.loop(0, count) as loop:
            image, row, column = square_at(b, self.plan, b.add(first, loop.index))
            y = b.add(b.mul(row, outputs), down.phases[0].offset)
            x = b.add(b.mul(column, outputs), across.phases[0].offset)
            line = b.add(b.mul(image, down.source), y)
            corner = b.mul(b.add(b.mul(line, across.source), x), self.pixel)
            goal = b.offset(to, b.mul(loop.index, self.pitch))
            inside = self._inside(y, x)
            with b.when(inside):
                self._from_corner(b.offset(source, corner), goal)
            with b.when(b.binary("xor", inside, Reg("i1", "true"))):
                self._from_table(source, corner, (y, x), goal)

    def _inside(self, y: Reg, x: Reg) -> Reg:
        b = self.b
        _, down, across = self.problem.axes
        tests = [
            b.compare("icmp sle", integer(0), y),
            b.compare("icmp sle", integer(0), x),
            b.compare("icmp sle", y, integer(down.source - self.side)),
            b.compare("icmp sle", x, integer(across.source - self.side)),
        ]
        found = tests[0]
        for test in tests[1:]:
            found = b.binary("and", found, test)
        return found

    def _from_corner(self, corner: Reg, goal: Reg) -> None:
        line = self.problem.axes[2].source * self.pixel
        self._channels(lambda i, j: self.b.offset(corner, i * line + j * self.pixel), goal)

    def _from_table(self, source: Reg, corner: Reg, at: tuple[Reg, Reg], goal: Reg) -> None:
        b = self.b
        _, down, across = self.problem.axes
        rows, columns = (
            [b.compare("icmp ult", b.add(start, i), integer(axis.source)) for i in range(self.side)]
            for start, axis in zip(at, (down, across), strict=True)
        )
        entries = [(i, j) for i in range(self.side) for j in range(self.side)]
        for i, j in entries:
            some = b.binary("and", rows[i], columns[j])
            away = b.add(corner, (i * across.source + j) * self.pixel)
            place = b.offset(source, b.emit("i64", f"select {some}, {away}, i64 0"))
            place = b.emit("ptr", f"select {some}, {place}, ptr @zeros")
            b.store(place, self._entry(i, j), 8)
        self._channels(lambda i, j: b.load("ptr", self._entry(i, j), 8), goal)

    def _entry(self, i: int, j: int) -> Reg:
        return self.b.offset(self.table, (i * self.side + j) * 8)

    def _channels(self, places: Places, goal: Reg) -> None:
        """All channels of one window, by vectors."""
        b, depth = self.b, self.problem.depth
        whole = depth - depth % self.lanes
        if whole:
            with b.loop(0, whole, self.lanes) as loop:
                self._vector(places, goal, loop.index, None)
        if whole < depth:
            mask = first_lanes(b, integer(depth - whole), self.lanes)
            self._vector(places, goal, integer(whole), mask)

    def _vector(self, places: Places, goal: Reg, channel: Reg, mask: Reg | None) -> None:
        b, side = self.b, range(self.side)
        away = b.mul(channel, SIZE)
        window = [
            [
                read(b, b.offset(places(i, j), away), self.lanes, float32, float32, mask)
                for j in side
            ]
            for i in side
        ]
        found = both_axes(b, self.plan.transform.source, window)
        goal = b.offset(goal, away)
        for i, value in enumerate(v for row in found for v in row):
            b.store(value, b.offset(goal, i * self.point), SIZE)

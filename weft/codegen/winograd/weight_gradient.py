"""The weight gradient of a convolution, F(r x r, m x m).

Here squares of the cotangent g play the taps, and the weights the outputs. Windows of x and squares
of g are transformed, and for each point channels x columns are summed over all windows, a matmul.
The few sums, 16 to 64 numbers each, are transformed back at the end.

Windows are processed in rounds, which stay in cache between the launches that transform them and
the one that multiplies. A chunk of a matmul is one point.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final

from weft.codegen.builder import Reg, integer, kernel_builder
from weft.codegen.contraction.emit import divide, read, smaller, subtract
from weft.codegen.contraction.sink import Sink, launch_into
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.convolution.geometry import Correlation
from weft.codegen.convolution.halo import choose
from weft.codegen.microkernel import Address, Left, Right, Tile, first_lanes, max_rows, microkernel
from weft.codegen.target import Target
from weft.codegen.winograd.plan import (
    FAR,
    LEAST_PRODUCTS,
    TILE_COST,
    decisive,
    sizes,
    square_problem,
)
from weft.codegen.winograd.transform import Matrix, Transform, both_axes, transform
from weft.codegen.winograd.window import Windows, WindowTransform, zeros_for
from weft.host.memory import LINE
from weft.ir.decision import decision
from weft.ir.dtype import float32
from weft.ir.extent import largest, pinned, smallest
from weft.passes.launch import Argument, Kernel, Launch, Scratch

SIZE = float32.size
CHUNKS: Final = 16
"""Minimum chunks of a round's transforms: panels, or parts of them."""
ROUND: Final = 3
"""Bytes of a round, in L2 of one core: 4 MB took 10 to 30% less time than 25 MB."""
DIRECT_SHARE: Final = 0.7
"""Fraction of the peak that the direct kernel reaches on these layers."""


@dataclass(frozen=True)
class WeightPlan:
    """One weight gradient by F(r x r, m x m)."""

    problem: Correlation  # the convolution's
    transform: Transform
    tile: Tile
    images: int
    grid: tuple[int, int]
    tiles: int  # windows of a round
    rounds: int

    @property
    def points(self) -> int:
        """Multiplications of a window."""
        return self.transform.points**2

    @property
    def total(self) -> int:
        """Windows in all."""
        return self.images * self.grid[0] * self.grid[1]

    @property
    def panel_bytes(self) -> int:
        """Bytes of a panel: its channels of all windows of a round."""
        return self.tiles * self.tile.columns * SIZE + LINE

    def panels(self, channels: int) -> int:
        """Panels of so many channels."""
        return ceil_div(channels, self.tile.columns)

    def point_bytes(self, channels: int) -> int:
        """Bytes between points of an operand."""
        return self.panels(channels) * self.panel_bytes

    @property
    def sum_pitch(self) -> int:
        """Bytes between channels of a point's sums."""
        return self.panels(self.problem.columns) * self.tile.columns * SIZE

    @property
    def sum_bytes(self) -> int:
        """Bytes between points of the sums."""
        return self.panels(self.problem.depth) * self.tile.columns * self.sum_pitch + LINE


def plan_of(problem: Correlation, target: Target) -> WeightPlan | None:
    """The best plan for the weights of a convolution, or nothing if direct is faster."""
    wanted = sizes(problem, target)
    outputs = min(wanted, default=0)
    if wanted and target.winograd == "auto":
        outputs = _outputs(*decisive(problem, target))
    return candidate(problem, target, outputs) if outputs else None


@decision
@functools.lru_cache(maxsize=1024)
def _outputs(bits: int, registers: int, l2: int, taps: int, images: int, *others: int) -> int:
    """The output tile size; 0 if the direct kernel is expected to be faster."""
    target = Target("", "", bits, registers, False, False, l2=l2)
    problem = square_problem(taps, images, *others)
    if problem.products < LEAST_PRODUCTS:
        return 0
    found = [(problem.flops / (4 * target.lanes(4)) / DIRECT_SHARE, 0)]
    for outputs in sizes(problem, target):
        found.append((cycles(candidate(problem, target, outputs)), outputs))
    return min(found)[1]


def candidate(problem: Correlation, target: Target, outputs: int) -> WeightPlan:
    """The plan for squares of `outputs` x `outputs`.

    A round's windows of one point of x and a panel of g fill at most half of L2; all its windows a
    few L2, but no less than the sums, which each round reads and writes. Rows of the tile divide
    the panel, so that both operands lie in panels of the same width.
    """
    first, down, across = problem.axes
    lanes = target.lanes(SIZE)
    vectors = 2
    rows = 1
    while 2 * rows <= max_rows(target, vectors):
        rows *= 2
    tile = Tile(rows, vectors, lanes, float32)
    grid = ceil_div(down.result, outputs), ceil_div(across.result, outputs)
    images = problem.images * first.result
    total = images * grid[0] * grid[1]
    depth, columns = problem.depth, problem.columns
    near = target.l2 // 2 // ((depth + tile.columns) * SIZE)
    form = transform(problem.taps[-1], outputs)
    kept = ROUND * target.l2 // (form.points**2 * (depth + columns) * SIZE)
    most = smallest(near, largest(kept, 2 * depth * columns // (depth + columns)))
    rounds = pinned(ceil_div(total, largest(1, most)))
    return WeightPlan(problem, form, tile, images, grid, ceil_div(total, rounds), rounds)


def cycles(plan: WeightPlan) -> float:
    """Estimated cycles on one core."""
    problem, tile = plan.problem, plan.tile
    depth, columns = plan.panels(problem.depth), plan.panels(problem.columns)
    products = plan.points * depth * columns * tile.columns / tile.rows
    step = max(tile.rows * tile.vectors, tile.rows + tile.vectors, 8) / 2
    product = products * (plan.total * step + plan.rounds * TILE_COST)
    vectors = ceil_div(problem.depth, tile.lanes), ceil_div(problem.columns, tile.lanes)
    transforms = 4.0 * plan.points * (plan.total * sum(vectors) + problem.depth * vectors[1])
    sums = plan.points * plan.sum_bytes * (1.0 + 2.0 * plan.rounds)
    apart = 2.0 * plan.points * plan.rounds * plan.panel_bytes * (depth + columns)
    return product + transforms + (sums + apart + problem.bytes) / FAR


def launch_weight_gradient(
    plan: WeightPlan, operands: tuple[Argument, Argument], sink: Sink
) -> tuple[Launch, ...]:
    """The launches: for each round both transforms and the matmul; then the weights."""
    return _WeightGradient(plan, sink).launches(operands)


class _WeightGradient:
    def __init__(self, plan: WeightPlan, sink: Sink) -> None:
        self.plan = plan
        self.problem = plan.problem
        self.tile = plan.tile
        self.sink = sink
        self.name = f"winograd{plan.transform.taps}"
        self.sums = Scratch(plan.points * plan.sum_bytes)

    def launches(self, operands: tuple[Argument, Argument]) -> tuple[Launch, ...]:
        plan, problem = self.plan, self.problem
        _, down, across = problem.axes
        low = down.phases[0].offset, across.phases[0].offset
        extents = (down.source, across.source), (down.result, across.result)
        channels = problem.depth, problem.columns
        kernels = [
            Kernel(f"{self.name}_{what}_{problem.label}", self._apart(matrix, own, count))
            for what, matrix, own, count in zip(
                ("x", "g"), (plan.transform.source, plan.transform.weights), (low, (0, 0)),
                channels, strict=True,
            )
        ]  # fmt: skip
        parts = [Scratch(plan.points * plan.point_bytes(count)) for count in channels]
        numbers = [self._numbers(own, count) for own, count in zip(extents, channels, strict=True)]
        shares = [plan.panels(count) * self._parts(count) for count in channels]
        multiply = Kernel(f"{self.name}_products_{problem.label}", self._products())
        found: list[Launch] = []
        for number in range(plan.rounds):
            first = number * plan.tiles
            count = largest(0, smallest(plan.tiles, plan.total - first))
            for kernel, own, to, rest, chunks in zip(
                kernels, operands, parts, numbers, shares, strict=True
            ):
                args = own, to, first, count, *rest
                found.append(Launch(kernel, args, (1,), chunks, bytes=float(to.size)))
            found.append(Launch(
                multiply, (*parts, self.sums, count, int(number == 0)), (2,), plan.points,
                flops=problem.flops * count / plan.total,
                bytes=float(sum(p.size for p in parts) + self.sums.size),
            ))  # fmt: skip
        return (*found, self._finish())

    def _parts(self, channels: int) -> int:
        return ceil_div(CHUNKS, self.plan.panels(channels))

    def _numbers(self, extents: tuple[int, int], channels: int) -> tuple[int, ...]:
        """What a transform kernel needs to know of an operand."""
        plan, parts = self.plan, self._parts(channels)
        return (
            *plan.grid, *extents, channels, plan.panel_bytes, plan.point_bytes(channels), parts,
            ceil_div(plan.tiles, parts),
        )  # fmt: skip

    def _apart(self, matrix: Matrix, low: tuple[int, int], channels: int) -> str:
        """The kernel that transforms a round's windows; a chunk is a part of them, of one panel.

        So the lines that it writes at a time are one of each point, and follow each other.
        """
        b, tile = kernel_builder(), self.tile
        source, to = b.argument(0), b.argument(1)
        first, count, down, across, height, width, depth, panel_bytes, point_bytes, parts, share = (
            b.argument(slot, "i64") for slot in range(2, 13)
        )
        transformed = WindowTransform(b, Windows(
            matrix, (down, across), self.plan.transform.taps, low, (height, width), depth,
            tile.columns, tile.lanes, tile.columns * SIZE, panel_bytes, point_bytes,
            zeros_for(channels), channels % tile.lanes == 0,
        ))  # fmt: skip
        with b.loop(b.params[1], b.params[2]) as chunk:
            panel, part = divide(b, chunk.index, parts)
            start = b.mul(panel, tile.columns)
            end = smaller(b, b.add(start, tile.columns), depth)
            own = b.mul(part, share)
            rest = smaller(b, subtract(b, count, own), share)
            goal = b.offset(to, b.mul(own, tile.columns * SIZE))
            transformed.write(source, goal, b.add(first, own), rest, (start, end))
        return b.module()

    def _products(self) -> str:
        """The kernel that adds a round's matmul of one point to the sums."""
        b, plan, tile = kernel_builder(), self.plan, self.tile
        x, g, sums = (b.argument(slot) for slot in range(3))
        count, fresh = b.argument(3, "i64"), b.argument(4, "i64")
        begins = b.compare("icmp ne", fresh, integer(0))
        step = tile.columns * SIZE
        zero = Reg(tile.type, "zeroinitializer")
        with b.loop(b.params[1], b.params[2]) as point:
            own_x = b.offset(x, b.mul(point.index, plan.point_bytes(self.problem.depth)))
            own_g = b.offset(g, b.mul(point.index, plan.point_bytes(self.problem.columns)))
            own = b.offset(sums, b.mul(point.index, plan.sum_bytes))
            with (
                b.loop(0, plan.panels(self.problem.columns)) as across,
                b.loop(0, plan.panels(self.problem.depth)) as down,
                b.loop(0, tile.columns, tile.rows) as row,
            ):
                left = b.offset(own_x, b.mul(down.index, plan.panel_bytes))
                left = b.offset(left, b.mul(row.index, SIZE))
                rows = tuple(Address(left, r * SIZE) for r in range(tile.rows))
                right = Right(b.offset(own_g, b.mul(across.index, plan.panel_bytes)), step)
                channel = b.add(b.mul(down.index, tile.columns), row.index)
                to = b.offset(own, b.mul(channel, plan.sum_pitch))
                to = b.offset(to, b.mul(across.index, step))
                places = [
                    [r * plan.sum_pitch + v * tile.lanes * SIZE for v in range(tile.vectors)]
                    for r in range(tile.rows)
                ]
                start = [
                    [choose(b, begins, zero, b.load(tile.type, b.offset(to, at), SIZE)) for at in r]
                    for r in places
                ]
                found = microkernel(b, tile, Left(rows, step), right, count, start)
                for values, own_places in zip(found, places, strict=True):
                    for value, at in zip(values, own_places, strict=True):
                        b.store(value, b.offset(to, at), SIZE)
        return b.module()

    def _finish(self) -> Launch:
        """The launch that transforms the sums to weights; a chunk is one channel."""
        b, plan, problem, lanes = kernel_builder(), self.plan, self.problem, self.tile.lanes
        sums, side = b.argument(0), range(plan.transform.points)
        self.sink.bind(b, 1)
        total, apart = integer(problem.columns), integer(plan.sum_bytes)
        with b.loop(b.params[1], b.params[2]) as channel:
            own = b.offset(sums, b.mul(channel.index, plan.sum_pitch))
            with b.loop(0, problem.columns, lanes) as loop:
                mask = None
                if problem.columns % lanes:
                    mask = first_lanes(b, subtract(b, total, loop.index), lanes)
                place = b.offset(own, b.mul(loop.index, SIZE))
                values = [
                    [
                        read(
                            b, b.offset(place, b.mul(apart, i * len(side) + j)), lanes,
                            float32, float32, None,
                        )
                        for j in side
                    ]
                    for i in side
                ]  # fmt: skip
                taps = both_axes(b, plan.transform.result, values)
                self.sink.reset()
                for tap, value in enumerate(v for row in taps for v in row):
                    row = b.add(channel.index, b.mul(integer(problem.depth), tap))
                    self.sink.store(value, (row, loop.index, total), lanes, mask)
                self.sink.reset()
        kernel = Kernel(f"{self.name}_weights_{problem.label}", b.module())
        moved = float(self.sums.size)
        return launch_into(self.sink, kernel, (self.sums,), (), problem.depth, bytes_=moved)

"""The blocking of a Winograd convolution, and whether it pays for its transforms."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Final

from weft.codegen.contraction.tile import ceil_div
from weft.codegen.convolution.geometry import Axis, Correlation, forward_axis
from weft.codegen.convolution.plan import most_rows
from weft.codegen.microkernel import Tile
from weft.codegen.target import Target
from weft.codegen.winograd.transform import POINTS, Transform, transform
from weft.host.memory import LINE
from weft.ir.decision import decision
from weft.ir.dtype import float32
from weft.ir.extent import assume, symbolic

OUTPUTS: Final = (2, 4)
"""Output tile sizes, along either axis."""
TILE_COST: Final = 30
"""Overhead cycles of a tile of sums beside its multiply-adds."""
BLOCKS: Final = 8
"""Minimum blocks of tiles to give whole ones to threads; with fewer, panels are divided."""
LEAST_PRODUCTS: Final = 25_000_000
"""Minimum time to save: below some 0.4 ms it is not worth two more kernels and rounding errors."""
DIRECT_SHARE: Final = 0.85
"""Fraction of the peak that the direct kernel reaches on these layers."""
POINTERS: Final = 8
"""Maximum rows of a tile if each has its own pointer: the channels differ from run to run."""
FAR: Final = 6.0
"""Bytes per cycle from beyond L2, for one core of those that share it."""


@dataclass(frozen=True)
class Plan:
    """One convolution by F(m x m, r x r).

    Results are cut into squares of m x m, counted row by row through all images. A block of `tiles`
    squares is multiplied at a time, by `group` panels of columns, for each of the points in turn,
    so that the products of a chunk stay in L2. If there are enough blocks, each transforms its own
    source; else (`staged`) all of it is transformed before, and panels are divided.
    """

    transform: Transform
    tile: Tile
    images: int
    down: int
    across: int
    tiles: int
    group: int
    panels: int
    staged: bool

    @property
    def points(self) -> int:
        """Multiplications of a square: one for each pair of points."""
        return self.transform.points**2

    @property
    def total(self) -> int:
        """Squares in all."""
        return self.images * self.down * self.across

    @property
    def blocks(self) -> int:
        """Blocks of squares."""
        return ceil_div(self.total, self.tiles)

    @property
    def groups(self) -> int:
        """Groups of panels."""
        return ceil_div(self.panels, self.group)

    @property
    def chunks(self) -> int:
        """Parts that may run concurrently."""
        return self.blocks * (self.groups if self.staged else 1)

    def source_pitch(self, depth: int) -> int:
        """Bytes between squares of one point: a spare line keeps rows in different cache sets."""
        lanes, size = self.tile.lanes, self.tile.dtype.size
        return ceil_div(depth, lanes) * lanes * size + LINE

    def source_point(self, depth: int) -> int:
        """Bytes between points of a block's transformed source."""
        return self.tiles * self.source_pitch(depth) + LINE

    @property
    def product_point(self) -> int:
        """Bytes between points of a panel's products."""
        return self.tiles * self.tile.columns * self.tile.dtype.size + LINE

    def weight_point(self, depth: int) -> int:
        """Bytes between points of a panel of transformed weights."""
        return depth * self.tile.columns * self.tile.dtype.size + LINE


def sizes(problem: Correlation, target: Target) -> tuple[int, ...]:
    """The output tile sizes that minimal filtering may use: none if it does not apply."""
    first, down, across = problem.axes
    applies = (
        problem.groups == 1
        and problem.pixels > 0
        and problem.dtype is float32
        and first.pointwise
        and _neighbors(down) == _neighbors(across) > 1
    )
    if not applies or target.winograd == "off":
        return ()
    wanted = OUTPUTS if target.winograd == "auto" else (int(target.winograd),)
    return tuple(m for m in wanted if m + _neighbors(down) - 1 in POINTS)


def _neighbors(axis: Axis) -> int:
    """How many adjacent source positions a result reads, if they are adjacent."""
    plain = axis.stride == axis.step == axis.dilation == 1 and len(axis.phases) == 1
    return axis.phases[0].taps if plain and len(axis.order) == axis.phases[0].taps else 0


def plan_of(problem: Correlation, target: Target, kept: bool = False) -> Plan | None:
    """The best plan, or nothing if the direct kernel is expected to be faster.

    Depends on shapes and target only, never on threads.

    Args:
        kept: whether transformed weights are cached between runs.
    """
    outputs = outputs_of(problem, target)
    if not outputs:
        return None
    most = POINTERS if symbolic(problem.depth) else target.registers
    plan = candidate(problem.planned(), target, outputs, kept, most)
    first, down, across = problem.axes
    found = replace(
        plan, images=problem.images * first.result, down=ceil_div(down.result, outputs),
        across=ceil_div(across.result, outputs),
        panels=ceil_div(problem.columns, plan.tile.columns),
    )  # fmt: skip
    assume(found.blocks < BLOCKS)
    return found


def outputs_of(problem: Correlation, target: Target) -> int:
    """The output tile size; 0 if the direct kernel is expected to be faster.

    It decides the bits of results, so it does not depend on whether weights are kept.
    """
    wanted = sizes(problem, target)
    if not wanted or target.winograd != "auto":
        return min(wanted, default=0)
    return _outputs(*decisive(problem, target))


def decisive(problem: Correlation, target: Target) -> tuple[int, ...]:
    """The numbers on which the choice depends: of the target, then of the problem."""
    first, down, across = problem.axes
    return (
        target.vector_bits, target.registers, target.l2, problem.taps[-1],
        problem.images * first.result, down.source, down.result, across.source, across.result,
        problem.depth, problem.columns,
    )  # fmt: skip


@decision
@functools.lru_cache(maxsize=1024)
def _outputs(bits: int, registers: int, l2: int, taps: int, images: int, *others: int) -> int:
    target = Target("", "", bits, registers, False, False, l2=l2)
    problem = square_problem(taps, images, *others)
    if problem.products < LEAST_PRODUCTS:
        return 0
    found = [(problem.flops / (4 * target.lanes(4)) / DIRECT_SHARE, 0)]
    for outputs in sizes(problem, target):
        both = [
            cycles(problem, candidate(problem, target, outputs, kept, registers), target, kept)
            for kept in (False, True)
        ]
        found.append((sum(both) / 2, outputs))
    return min(found)[1]


def square_problem(
    taps: int, images: int, height: int, down: int, width: int, across: int, depth: int,
    columns: int,
) -> Correlation:  # fmt: skip
    """A convolution of `taps` x `taps` adjacent positions: images to results, in numbers."""
    unit = forward_axis(1, 1, 1, 1, 1, 0)
    rows, row = (forward_axis(*ends, taps, 1, 1, 0) for ends in ((height, down), (width, across)))
    return Correlation(
        images, (unit, rows, row), 1, depth, columns, (1, taps, taps), False, float32
    )


@functools.lru_cache(maxsize=256)
def candidate(problem: Correlation, target: Target, outputs: int, kept: bool, longest: int) -> Plan:
    """The best blocking for squares of `outputs` x `outputs`; tiles have at most `longest` rows."""
    first, *spatial = problem.axes
    down, across = (ceil_div(axis.result, outputs) for axis in spatial)
    images = problem.images * first.result
    total = images * down * across
    lanes = target.lanes(4)
    vectors = min(2, ceil_div(problem.columns, lanes))
    panels = ceil_div(problem.columns, vectors * lanes)
    form = transform(outputs, problem.taps[-1])
    best: tuple[float, Plan] | None = None
    for rows in range(min(longest, most_rows(target, vectors)), 0, -1):  # the first of equal ones
        tile = Tile(rows, vectors, lanes, float32)
        whole = Plan(form, tile, images, down, across, total, 1, panels, staged=False)
        if best is not None and _least(problem, whole, kept) > best[0]:
            continue
        for group in (1, 2, 4):
            if group > panels:
                continue
            most = target.l2 * 5 // 8 // (form.points**2 * group * tile.columns * 4)
            most = max(rows, min(most, total + rows - 1))
            by_blocks = {ceil_div(total, t): t for t in range(most // rows * rows, 0, -rows)}
            for blocks, tiles in reversed(by_blocks.items()):  # the smallest for as many blocks
                staged = blocks < BLOCKS
                plan = Plan(form, tile, images, down, across, tiles, group, panels, staged)
                cost = cycles(problem, plan, target, kept)
                if best is None or cost < best[0]:
                    best = cost, plan
    assert best is not None
    return best[1]


def cycles(problem: Correlation, plan: Plan, target: Target, kept: bool) -> float:
    """Estimated cycles on one core; `kept` weights are transformed already."""
    tile, points = plan.tile, plan.points
    last = plan.total - (plan.blocks - 1) * plan.tiles
    down = (plan.blocks - 1) * ceil_div(plan.tiles, tile.rows) + ceil_div(last, tile.rows)
    arithmetic = _arithmetic(problem, plan, down, kept)
    block = points * plan.source_point(problem.depth)
    weights = points * plan.panels * plan.weight_point(problem.depth)
    products = points * plan.group * plan.product_point
    far = 0.0 if kept else 2.0 * weights
    far += weights * plan.blocks if weights + products + block > target.l2 else 0
    if block // points * plan.group + products > target.l2 or block + products > target.l2:
        far += float(block) * plan.blocks * plan.groups
    if plan.staged:
        far += 2.0 * block * plan.blocks
    return arithmetic + (far + problem.bytes) / FAR


def _least(problem: Correlation, plan: Plan, kept: bool) -> float:
    """A lower bound for any blocking with the plan's tile."""
    down = ceil_div(plan.total, plan.tile.rows)
    return _arithmetic(problem, plan, down, kept) + problem.bytes / FAR


def _arithmetic(problem: Correlation, plan: Plan, down: int, kept: bool) -> float:
    """Cycles of matmuls, in `down` tiles per panel and point, and of the transforms."""
    tile, points, depth = plan.tile, plan.points, problem.depth
    step = max(tile.rows * tile.vectors, tile.rows + tile.vectors, 8) / 2
    product = points * down * plan.panels * (step * depth + TILE_COST)
    vectors = ceil_div(depth, tile.lanes), ceil_div(problem.columns, tile.lanes)
    transforms = 4.0 * points * plan.total * (vectors[0] + vectors[1])
    if not kept:
        transforms += 4.0 * points * depth * vectors[1]
    return product + transforms

"""The blocking of a weight gradient: tile, slices of the gradient, blocks of positions."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from math import prod

from weft.codegen.contraction.tile import ceil_div
from weft.codegen.convolution.plan import EVEN, expect, most_rows
from weft.codegen.convolution.weight_parts import TEAM, Blocks, Cuts, cuts_of, parts_of
from weft.codegen.convolution.weight_problem import WeightGradient
from weft.codegen.microkernel import Tile
from weft.codegen.target import Target
from weft.ir.extent import assume, pinned, symbolic

CHUNK_FLOPS = 2e6
"""Minimum work of a chunk, some 10 us."""
CHUNK_BYTES = 4e5
"""Minimum bytes of x and g that a chunk reads, where that takes longer: depthwise."""
CHUNKS = 32
"""Target number of chunks: even shares for up to 8 threads."""
JOINED = 8
"""Minimum channels that fill a tile's rows well enough without joining taps."""

PACKED = 24
"""Minimum rows for which panels of g pay: each packed vector is used in half as many cycles."""

COPY = 1.2
"""Estimated cycles to copy an element of x or g from L3; the following are estimates, too."""
BEFORE, PASS = 1.5, 0.15
"""Effective number of copies of g if a launch packs it: once through memory, plus what each slice
of the channels takes to read the panels.
"""
WAIT = 0.1
"""The fraction of a chunk's time that is lost at the end."""
NEAR, FAR = 0.2, 0.6
"""Cycles to load an element of a gradient before a block, and to store it after: L2, L3."""


@dataclass(frozen=True)
class Plan:
    """The blocking of one gradient."""

    tile: Tile
    tall: bool  # a tile holds the rows of all taps of the middle axis
    joined: bool  # taps of the last axis and channels are one run of rows
    copied: bool  # each block's x is copied, with the zeros around it
    packed: bool  # each block's g is packed
    split: bool  # each block's x is packed
    before: bool  # a launch before packs all of g
    cuts: Cuts  # parts of the positions, and their blocks
    slices: tuple[int, int] = (1, 1)  # of the gradient: of its panels of channels and of columns

    @property
    def parts(self) -> int:
        """Parts of the positions; each has a gradient of its own."""
        return self.cuts.count

    @property
    def chunks(self) -> int:
        """Parts that may run concurrently."""
        return self.parts * prod(self.slices)


@dataclass
class _Cut:
    """A slice of the gradient, in elements, while it is being halved."""

    problem: WeightGradient
    rows: int = 1  # slices
    columns: int = 1

    @property
    def bytes(self) -> int:
        own = self.problem.rows * self.problem.width * self.problem.sums.size
        return own // (self.rows * self.columns)

    def pixel(self) -> tuple[float, float]:
        """Elements of x and of g of one position that a slice needs."""
        channels = self.problem.groups * self.problem.channels
        return channels / self.rows, self.problem.width / self.columns

    def halve(self, most_rows: int, most_columns: int) -> bool:
        """Halves the wider side; returns whether that was possible."""
        x, g = self.pixel()
        by_rows = self.rows * 2 <= most_rows and (x >= g or self.columns * 2 > most_columns)
        if by_rows:
            self.rows *= 2
        elif self.columns * 2 <= most_columns:
            self.columns *= 2
        else:
            return False
        return True


def plan_of(problem: WeightGradient, target: Target) -> Plan:
    """Chooses the blocking; depends on shapes and target only, never on threads."""
    half = problem.dtype is not problem.sums
    last = problem.sides[2]
    joinable = problem.groups == 1 and last.dilation == 1 and last.taps > 1
    joined = joinable and (problem.channels < JOINED or problem.inside or half)
    if joined and problem.channels < JOINED:
        problem = replace(problem, channels=pinned(problem.channels))
    copied = half or (joined and not problem.inside)
    # The rows of a tall tile are one run of the gradient, and its taps have the same positions.
    tall = (copied or problem.inside) and (joined or last.taps == 1)
    now = problem.planned()
    run = now.channels * (last.taps if joined else 1)
    tile, tall = _choose_tile(now, run, tall, target)
    pieces, panels = ceil_div(run, tile.rows), tiles_of(now, tile, tall, run)[1]
    packed = half or (now.rows >= PACKED and now.width > tile.columns)
    split = packed and not joined and not tall and problem.groups == 1
    parts = parts_of(problem)
    cuts = Cuts(now.extents, planned_parts(parts), (1, 1, 1, 1), now.extents)
    plan = Plan(tile, tall, joined, copied and not split, packed, split, False, cuts)
    if split:
        plan = _shared(plan, now, pieces, panels, target)
    else:
        plan = cut(plan, now, pieces, panels, target)
    return for_many(plan, problem, parts)


def planned_parts(parts: Blocks) -> Blocks:
    """The parts for the planned sizes."""
    a, b, c, d = map(int, parts)
    return a, b, c, d


def for_many(plan: Plan, problem: WeightGradient, parts: Blocks) -> Plan:
    """The plan for the planned sizes as one for other sizes too: how large blocks and slices are
    stays, and their number follows.
    """
    tile, tall = plan.tile, plan.tall
    run = problem.channels * (problem.sides[2].taps if plan.joined else 1)
    rows = tile.rows // (problem.sides[1].taps if tall else 1)
    if tall:
        run = pinned(run)
    pieces = ceil_div(run, rows)
    panels = problem.groups * ceil_div(problem.columns, tile.columns)
    assume(run >= rows)
    cuts = cuts_of(problem, parts, plan.cuts.sizes)
    slices = plan.slices
    if symbolic(pieces, panels):
        rows, columns = ceil_div(int(pieces), slices[0]), ceil_div(int(panels), slices[1])
        slices = ceil_div(pieces, rows), ceil_div(panels, columns)
    found = replace(plan, cuts=cuts, slices=slices)
    expect(found.chunks, EVEN)
    return found


def _shared(plan: Plan, problem: WeightGradient, pieces: int, panels: int, target: Target) -> Plan:
    """The slices that cost least beside the multiply-adds, if x and g are copied.

    Each slice copies its x and g, once for all of the other side's slices, unless g is packed
    before; and all wait for the last chunk.
    """
    chunks = max(1, min(CHUNKS, int(problem.flops / CHUNK_FLOPS)))
    own = problem.rows * problem.width
    work = problem.flops / (4 * target.lanes(problem.sums.size))
    most = max(1, target.l1 // (plan.tile.columns * problem.sums.size))
    options: list[tuple[float, int, int, bool]] = []
    for j, k, before in itertools.product(range(6), range(6), (False, True)):
        rows, columns = 32 >> j, 32 >> k
        count = plan.parts * rows * columns
        if rows > pieces or columns > panels:
            continue
        if options and (count > 2 * chunks or count < min(chunks, TEAM)):
            continue
        passes = BEFORE + rows * PASS if before else rows
        copied = problem.pixels * (columns * problem.channels + passes * problem.width) * COPY
        near = own * problem.sums.size // (rows * columns) <= target.l2 // 2
        kept = own * ceil_div(problem.pixels, most) * (NEAR if near else FAR)
        options.append((copied + kept + work / count * WAIT, rows, columns, before))
    _, rows, columns, before = min(options)
    across = panels if before else columns  # of packed panels one is in use at a time
    sizes = _sizes(problem, plan, _Cut(problem, rows, across), target, most)
    return replace(
        plan, cuts=replace(plan.cuts, sizes=sizes), slices=(rows, columns), before=before
    )


def cut(plan: Plan, problem: WeightGradient, rows: int, panels: int, target: Target) -> Plan:
    """Slices that stay in L2, and blocks.

    A copy is done once for every slice, so copied ones are not sliced.
    """
    work = max(problem.flops / CHUNK_FLOPS, problem.bytes / CHUNK_BYTES)
    chunks = max(1, min(CHUNKS, int(work)))
    slices = _Cut(problem)
    while slices.bytes > target.l2 // 4 or plan.parts * slices.rows * slices.columns < chunks:
        if plan.copied or not slices.halve(rows, panels):
            break
    sizes = _sizes(problem, plan, slices, target)
    cuts = replace(plan.cuts, sizes=sizes)
    return replace(plan, cuts=cuts, slices=(slices.rows, slices.columns))


def tiles_of(problem: WeightGradient, tile: Tile, tall: bool, run: int) -> tuple[int, int]:
    """Tiles down and across the gradient."""
    height = problem.sides[1].taps if tall else 1
    outer = problem.rows // max(1, run * height)
    panels = problem.groups * ceil_div(problem.columns, tile.columns)
    return outer * ceil_div(run, tile.rows // height), panels


def _choose_tile(
    problem: WeightGradient, run: int, may_be_tall: bool, target: Target
) -> tuple[Tile, bool]:
    """The tile with the fewest cycles."""
    lanes = target.lanes(problem.sums.size)
    narrow = ceil_div(problem.columns, lanes)
    height = problem.sides[1].taps
    options: list[tuple[float, int, Tile, bool]] = []
    for vectors in range(1, min(narrow, target.registers // 4) + 1):
        most = most_rows(target, vectors)
        sizes = [(rows, False) for rows in range(1, min(most, run) + 1)]
        if may_be_tall and height > 1 and height * run <= most:
            sizes.append((height * run, True))
        for rows, tall in sizes:
            tile = Tile(rows, vectors, lanes, problem.sums)
            step = max(rows * vectors, vectors + rows * (vectors if vectors == 1 else 1), 8) / 2
            down, across = tiles_of(problem, tile, tall, run)
            options.append((down * across * step, -rows, tile, tall))
    _, _, tile, tall = min(options, key=lambda option: option[:2])
    return tile, tall


def _sizes(
    problem: WeightGradient, plan: Plan, slices: _Cut, target: Target, longest: int = 1 << 62
) -> Blocks:
    """Blocks of up to `longest` positions; x and g of each fit a quarter of L2."""
    boxes = zip(problem.extents, plan.cuts.parts, strict=True)
    sizes = [max(1, ceil_div(extent, parts)) for extent, parts in boxes]
    x_pixel, g_pixel = slices.pixel()
    while True:
        window = prod(s.window(n) for s, n in zip(problem.sides, sizes[1:], strict=True))
        touched = min(sizes[0] * window, prod(sizes) * prod(side.taps for side in problem.sides))
        most = max(touched * x_pixel, prod(sizes) * g_pixel) * problem.sums.size
        axis = next((i for i in range(4) if sizes[i] > 1), None)
        if axis is None or (most <= target.l2 // 4 and prod(sizes) <= longest):
            return sizes[0], sizes[1], sizes[2], sizes[3]
        sizes[axis] = ceil_div(sizes[axis], 2)

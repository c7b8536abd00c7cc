"""The blocking of a correlation: the tile, the blocks of positions and columns, and the chunks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from weft.codegen.contraction.tile import ceil_div
from weft.codegen.convolution.geometry import Correlation
from weft.codegen.microkernel import Tile, max_rows
from weft.codegen.target import Target
from weft.host.memory import LINE
from weft.ir.extent import assume, largest, same, smallest, symbolic

TILE_COST = 40
"""Estimated overhead cycles of a tile beside its multiply-adds: zeroing, stores, loops."""
LOAD = 0.1
"""Cycles that a load costs beside multiply-adds: it makes 6x4 better than 13x2, as measured."""
SCATTER_COST = 60
"""Estimated further cycles if each row's position is computed: divisions by constants."""
SCATTERED = 8
"""Maximum rows if each has its own pointer: scattered ones, or if the channels differ from run to
run. 14 take 80 ms to compile, 28 take 200.
"""
UNIT = 16
"""Slices begin at multiples of so many channels."""
BROAD = 4
"""Vectors across a tile for which slices are cut. Slices decide the order of sums, so they depend
on the shapes of the weights alone, never on the tile.
"""
EVEN = 8
"""Chunks that keep several threads busy."""
CHUNK_FLOPS = 2e6
"""Minimum work of a chunk, some 10 us: less is not worth waking another thread for."""
CHUNKS = 32
"""Target number of chunks: even shares for up to 8 threads."""
WIDE = 256
"""Minimum columns to divide among chunks rather than positions."""
WAY = 4096
"""Bytes of one way of L1: 64 sets of 64 bytes."""
POSITIONS = 96
"""Minimum positions of a block: each block reads all weights."""

Blocks = tuple[int, int, int, int]


@dataclass(frozen=True)
class Plan:
    """The blocking of one correlation.

    A tile's rows are adjacent along the last axis or, if that is short, `scattered` over all axes
    of the block. `blocks` are the numbers of parts of the images and the three axes, `shares` that
    of the panels of columns; their product is the number of chunks.
    """

    tile: Tile
    scattered: bool
    blocks: Blocks
    shares: int
    copied: bool  # each chunk copies its part of the source, with the zeros around it
    joined: bool  # taps of the last axis and channels are one run in the source
    slices: int = 1  # of the channels; one after the other, with copies of the source
    shares_first: bool = False  # all blocks of a share of the panels, then the next share
    sizes: Blocks | None = None  # of the largest block, if the blocks' number follows from it

    @property
    def chunks(self) -> int:
        """Parts that may run concurrently."""
        return prod(self.blocks) * self.shares


def plan_of(problem: Correlation, target: Target, steps: bool = False) -> Plan:
    """Chooses the blocking; depends on shapes and target only, never on threads.

    With `steps` the source is computed from another array while it is copied.
    """
    slices = slices_of(problem, target)
    copied = not problem.inside or problem.dtype is not problem.sums or slices > 1 or steps
    joined = problem.groups == 1 and problem.axes[2].dilation == 1 and slices == 1
    most = SCATTERED if symbolic(problem.depth) else target.registers
    now = problem.planned()
    tile, scattered = choose_tile(now, target, 1, most)
    panels = now.groups * ceil_div(now.columns, tile.columns)
    if slices > 1:
        blocks, shares = cut_slices(now, tile, scattered, int(slices), target)
    else:
        blocks, shares = cut(now, tile, scattered, panels, target, copied=copied)
    if blocks[3] > 1:  # again, now that the length of a row is known
        tile, scattered = choose_tile(now, target, blocks[3], most)
    first = shares_first(now, blocks, shares, target)
    plan = Plan(tile, scattered, blocks, shares, copied, joined, slices, first)
    return for_many(plan, problem)


def for_many(plan: Plan, problem: Correlation) -> Plan:
    """The plan for the planned sizes as one for other sizes too: how large blocks and shares are
    stays, and their number follows.
    """
    extents = (problem.images, *(axis.count for axis in problem.axes))
    panels = problem.groups * ceil_div(problem.columns, plan.tile.columns)
    if not symbolic(*extents, panels):
        return plan
    sizes = [ceil_div(int(e), parts) for e, parts in zip(extents, plan.blocks, strict=True)]
    blocks = [ceil_div(e, size) for e, size in zip(extents, sizes, strict=True)]
    share = ceil_div(int(panels), plan.shares)
    last, rows = problem.axes[2], plan.tile.rows
    if not plan.scattered:
        assume(last.count // blocks[3] - (last.count - last.fewest) >= rows)
        expect(5 * last.count, 4 * rows * ceil_div(last.count, rows))  # few rows twice
    a, b, c, d = blocks
    n, z, y, x = sizes
    found = replace(plan, blocks=(a, b, c, d), shares=ceil_div(panels, share), sizes=(n, z, y, x))
    expect(found.chunks, EVEN)
    return found


def expect(value: int, least: int) -> None:
    """A guard that a number is as large as needed for speed, if it is for the planned sizes."""
    if int(value) >= int(least):
        assume(value >= least)


def shares_first(problem: Correlation, blocks: Blocks, shares: int, target: Target) -> bool:
    """Whether a thread that processes all blocks share by share reads less from beyond L2.

    Then it reads its panels once and the source for every share, else the other way round.
    """
    whole = target.l2 // 2
    weights = problem.packed_taps * problem.depth * problem.groups * problem.columns
    source = problem.images * prod(axis.source for axis in problem.axes)
    weights, source = weights * problem.sums.size, source * pixel_bytes(problem, 1)
    by_blocks = source + weights * (prod(blocks) if weights > whole else 1)
    by_shares = weights + source * (shares if source > whole else 1)
    return by_shares < by_blocks


def slices_of(problem: Correlation, target: Target) -> int:
    """How many slices of the channels keep a panel's weights in L2 while tiles pass by."""
    if problem.groups > 1:
        return 1
    size = problem.sums.size
    lanes = target.lanes(size)
    row = smallest(BROAD, ceil_div(problem.columns, lanes)) * lanes * size
    most = target.l2 // 4 // (row * max(1, problem.packed_taps)) // UNIT
    slices = ceil_div(ceil_div(problem.depth, UNIT), largest(BROAD, most))
    return slices if slices > 1 else 1


def slice_channels(problem: Correlation, slices: int) -> int:
    """Channels of the widest slice of a group."""
    if same(slices, 1):
        return problem.depth
    return smallest(problem.depth, ceil_div(ceil_div(problem.depth, UNIT), slices) * UNIT)


def pixel_bytes(problem: Correlation, slices: int) -> int:
    """Bytes from one position to the next in a copy of a slice of the source.

    A spare line keeps the rows of a tile in different L1 sets.
    """
    own = problem.groups * slice_channels(problem, slices) * problem.sums.size
    if one_set(problem):
        return own + LINE
    return own if same(slices, 1) else own + largest(0, 1 - own % (4 * LINE)) * LINE


def one_set(problem: Correlation) -> bool:
    """Whether a depthwise vector's source at all positions falls into one L1 set."""
    pixel = problem.groups * problem.sums.size
    return problem.groups > 1 and problem.depth == 1 and pixel % WAY == 0


def cut_slices(
    problem: Correlation, tile: Tile, scattered: bool, slices: int, target: Target
) -> tuple[Blocks, int]:
    """Blocks and shares if the channels are cut too.

    Every share copies the source and every block reads all weights, so both stay large.
    """
    extents = (problem.images, *(axis.count for axis in problem.axes))
    least = (1, 1, 1, 1 if scattered else min(2 * tile.rows, extents[3]))
    sizes, shares = list(extents), 1
    panels = ceil_div(problem.columns, tile.columns)
    pixel = pixel_bytes(problem, slices)
    while True:
        blocks = [ceil_div(e, s) for e, s in zip(extents, sizes, strict=True)]
        chunks, positions = prod(blocks) * shares, prod(sizes)
        large = source_bytes(problem, (sizes[0], sizes[1], sizes[2], sizes[3]), pixel)
        axis = next((i for i in range(4) if sizes[i] >= 2 * least[i] and sizes[i] > 1), None)
        if large > target.l2 // 4 and axis is not None:
            sizes[axis] = ceil_div(sizes[axis], 2)
            continue
        sums = positions * problem.columns * problem.sums.size // shares
        few = chunks < CHUNKS and problem.flops / chunks > 2 * CHUNK_FLOPS
        if sums <= target.l2 // 2 and not few:
            break
        wide = problem.columns // shares >= WIDE
        if axis is not None and (not wide or shares == panels) and positions >= 2 * POSITIONS:
            sizes[axis] = ceil_div(sizes[axis], 2)
        elif shares < panels and (wide or axis is None or positions < 2 * POSITIONS):
            shares = min(2 * shares, panels)
        else:
            break
    a, b, c, d = blocks
    return (a, b, c, d), shares


def most_rows(target: Target, vectors: int) -> int:
    """Maximum rows of a tile inside loops over taps.

    With all registers taken LLVM spills a sum in these loops: on ResNet-50's 3x3 layers 14x2
    reaches 83% of the peak, 13x2 95%. Three spare registers are enough; of 16 that is too many.
    """
    most = max_rows(target, vectors)
    if vectors == 1 or target.registers <= 16:
        return most
    return max(1, min(most, (target.registers - vectors - 4) // vectors))


def step_cycles(rows: int, vectors: int) -> float:
    """Cycles of one step of a tile, two multiply-adds or loads at a time.

    Loads that are not the bottleneck still cost something.
    """
    loads = vectors + rows * (vectors if vectors == 1 else 1)
    return max(rows * vectors, loads, 8) / 2 + LOAD * loads


def choose_tile(problem: Correlation, target: Target, parts: int, most: int) -> tuple[Tile, bool]:
    """The tile of at most `most` rows with the fewest cycles, and whether its rows are scattered.

    The last axis is cut in `parts`. A row's last tile starts early, so each part and phase must
    hold a whole tile.
    """
    dtype = problem.sums
    lanes = target.lanes(dtype.size)
    narrow = ceil_div(problem.columns, lanes)
    steps = problem.depth * max(1, problem.packed_taps)
    last = problem.axes[2]
    shortest = last.count // parts - (last.count - last.fewest)
    lines = problem.images * prod(a.count for a in problem.axes[:2]) * parts
    pixels = problem.images * prod(a.count for a in problem.axes)
    options: list[tuple[float, int, Tile, bool]] = []
    for vectors in range(1, min(narrow, target.registers // 4) + 1):
        panels = ceil_div(narrow, vectors)
        for rows in range(1, min(most, most_rows(target, vectors)) + 1):
            tile = Tile(rows, vectors, lanes, dtype)
            cycles = step_cycles(rows, vectors) * steps + TILE_COST
            if rows <= shortest:
                tiles = lines * ceil_div(ceil_div(last.count, parts), rows) * panels
                options.append((tiles * cycles, -rows, tile, False))
            if parts < lines and rows <= min(pixels, SCATTERED):
                tiles = ceil_div(pixels, rows) * panels
                options.append((tiles * (cycles + SCATTER_COST), -rows, tile, True))
    _, _, tile, scattered = min(options, key=lambda option: option[:2])
    return tile, scattered


def cut(
    problem: Correlation,
    tile: Tile,
    scattered: bool,
    panels: int,
    target: Target,
    least_flops: float = CHUNK_FLOPS,
    copied: bool = True,
) -> tuple[Blocks, int]:
    """Blocks of the images and axes whose source and result fit L2, and shares of panels."""
    extents = (problem.images, *(axis.count for axis in problem.axes))
    least = (1, 1, 1, 1 if scattered else min(2 * tile.rows, extents[3]))
    sizes = list(extents)
    pixel = problem.groups * problem.columns * problem.sums.size
    shares = 1
    while True:
        chunks = prod(ceil_div(e, s) for e, s in zip(extents, sizes, strict=True)) * shares
        block = sizes[0], sizes[1], sizes[2], sizes[3]
        source = source_bytes(problem, block, pixel_bytes(problem, 1), copied)
        large = source > target.l2 // 4 or prod(sizes) * pixel > target.l2 // 2
        few = chunks < CHUNKS and problem.flops / chunks > 2 * least_flops
        if not large and not few:
            break
        axis = next((i for i in range(4) if sizes[i] >= 2 * least[i] and sizes[i] > 1), None)
        if not large and shares < panels and (axis is None or axis > 0):
            shares = min(2 * shares, panels)
        elif axis is None or (not large and prod(sizes) < 2 * POSITIONS):
            break
        else:
            sizes[axis] = ceil_div(sizes[axis], 2)
    a, b, c, d = (ceil_div(e, s) for e, s in zip(extents, sizes, strict=True))
    return (a, b, c, d), shares


def source_bytes(problem: Correlation, sizes: Blocks, pixel: int, copied: bool = True) -> int:
    """Bytes of the source that a block of positions reads; a copy also has zeros and gaps."""
    axes = zip(problem.axes, sizes[1:], strict=True)
    spans = [axis.window(n) if copied else axis.touched(n) for axis, n in axes]
    return sizes[0] * prod(spans) * pixel

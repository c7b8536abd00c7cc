"""The gradient of a convolution by its weights.

    gradient[t, c, k] = sum over images and positions p of y of
                        x[p * stride + t * dilation - low, c] * g[p, k]

A tile's rows are elements of (tap, c), its columns are k, and the microkernel's steps are
neighbouring positions p along the last axis: it reads x at a stride, broadcast, and runs of g.

    chunk         a part of the positions, and a share of the tiles
      block       positions whose x and g fit L2
        (copy)    x with zeros around it, where rows join taps or the type is a half
          tile    sums are loaded from the part's gradient, and stored back
            image, position   microkernel along the last axis

Without a copy, the zeros around x are left out instead: every tap has its own range of positions.
The parts' gradients are summed in order by a second launch, so that results do not depend on
threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from weft.codegen.builder import Builder, Reg, constant, integer, kernel_builder
from weft.codegen.contraction.emit import divide, fixed, scaled, smaller, subtract
from weft.codegen.contraction.plan import ceil_div
from weft.codegen.contraction.sink import Sink
from weft.codegen.convolution.correlate import each, look_up, span, unflat
from weft.codegen.convolution.geometry import Triple, Window, triple
from weft.codegen.convolution.halo import Image, choose, copy_block, larger, pitches_of
from weft.codegen.kernel import Argument, Kernel, Launch, Scratch
from weft.codegen.microkernel import (
    Accumulators,
    Address,
    Left,
    Right,
    Tile,
    first_lanes,
    load_masked,
    max_rows,
    microkernel,
    store_masked,
)
from weft.codegen.target import Target
from weft.ir.dtype import DType, float32

TILE_COST = 80
"""Cycles that a tile costs in a block beside its multiply-adds: sums loaded and stored (measured)."""
CHUNK_FLOPS = 2e6
"""Least work of a chunk, some 10 us."""
CHUNKS = 32
"""Chunks to aim for."""
LINE = 64


@dataclass(frozen=True)
class Side:
    """One axis."""

    source: int  # positions of x
    result: int  # positions of g
    taps: int
    stride: int
    dilation: int
    low: int  # zeros before x

    def bounds(self, tap: int) -> tuple[int, int]:
        """The positions of g for which a tap lies inside x: first, and one after the last."""
        away = self.low - tap * self.dilation
        first = min(max(0, ceil_div(away, self.stride)), self.result)
        stop = min(max(first, (self.source - 1 + away) // self.stride + 1), self.result)
        return first, stop

    @property
    def inside(self) -> bool:
        """Whether every tap lies inside x for every position."""
        return all(self.bounds(tap) == (0, self.result) for tap in range(self.taps))

    @property
    def pointwise(self) -> bool:
        """Whether positions of x and g are the same."""
        return self.taps == 1 and self.stride == 1 and self.low == 0 and self.source == self.result

    def window(self, count: int) -> int:
        """Positions of x that `count` neighbouring positions of g meet."""
        return (count - 1) * self.stride + (self.taps - 1) * self.dilation + 1


@dataclass(frozen=True)
class WeightGradient:
    """One gradient by weights."""

    images: int
    sides: tuple[Side, Side, Side]
    groups: int
    channels: int  # of a group
    columns: int  # of a group
    dtype: DType

    @property
    def sums(self) -> DType:
        """The type that sums are kept in."""
        return float32 if self.dtype.size < 4 else self.dtype

    @property
    def rows(self) -> int:
        """Rows of the gradient as a matrix: taps and channels of one group."""
        return prod(side.taps for side in self.sides) * self.channels

    @property
    def width(self) -> int:
        """Columns of the gradient as a matrix: those of all groups."""
        return self.groups * self.columns

    @property
    def pixels(self) -> int:
        """Positions of g."""
        return self.images * prod(side.result for side in self.sides)

    @property
    def inside(self) -> bool:
        """Whether no tap ever lies outside x."""
        return all(side.inside for side in self.sides)

    @property
    def flops(self) -> float:
        """Additions and multiplications."""
        return 2.0 * self.pixels * self.rows * self.width

    @property
    def bytes(self) -> float:
        """Memory that must move at least once."""
        x = self.images * prod(s.source for s in self.sides) * self.groups * self.channels
        return float((x + self.pixels * self.width + self.rows * self.width) * self.dtype.size)

    @property
    def label(self) -> str:
        """For kernel names."""
        result = "x".join(str(s.result) for s in self.sides if s.result > 1) or "1"
        taps = "x".join(str(s.taps) for s in self.sides[-2:])
        return f"{self.dtype}_{self.images}x{result}_{self.groups * self.channels}to{self.width}_{taps}"


def weight_gradient_of(
    x: tuple[int, ...], w: tuple[int, ...], g: tuple[int, ...], window: Window, dtype: DType
) -> WeightGradient:
    """The gradient by weights for the shapes of x, w and g; pointwise ones as one row of pixels."""
    sizes = zip(
        triple(x[1:-1], 1), triple(g[1:-1], 1), window.taps, window.strides, window.dilation,
        window.low, strict=True,
    )  # fmt: skip
    a, b, c = (Side(*numbers) for numbers in sizes)
    columns = w[-1] // window.groups
    problem = WeightGradient(x[0], (a, b, c), window.groups, w[-2], columns, dtype)
    if not all(side.pointwise for side in (a, b, c)):
        return problem
    unit, row = Side(1, 1, 1, 1, 1, 0), Side(problem.pixels, problem.pixels, 1, 1, 1, 0)
    return WeightGradient(1, (unit, unit, row), window.groups, w[-2], columns, dtype)


@dataclass(frozen=True)
class Plan:
    """The blocking of one gradient."""

    tile: Tile
    tall: bool  # a tile holds the rows of all taps of the middle axis
    joined: bool  # taps of the last axis and channels are one run of rows
    copied: bool  # each block's x is copied, with the zeros around it
    blocks: tuple[int, int, int, int]  # of images and the three axes
    parts: int  # of the blocks; each has a gradient of its own
    shares: int  # of the tiles

    @property
    def chunks(self) -> int:
        """Parts that may run at the same time."""
        return self.parts * self.shares


JOINED = 8
"""Fewest channels that fill a tile's rows well enough without joining taps."""


def plan_of(problem: WeightGradient, target: Target) -> Plan:
    """Choose the blocking; depends on shapes and target only, never on threads."""
    half = problem.dtype is not problem.sums
    last = problem.sides[2]
    joinable = problem.groups == 1 and last.dilation == 1
    joined = joinable and (problem.channels < JOINED or problem.inside or half)
    copied = half or (joined and not problem.inside)
    run = problem.channels * (last.taps if joined else 1)
    # The rows of a tall tile are one run of the gradient.
    tall = (copied or problem.inside) and (joined or last.taps == 1)
    tile, tall = _choose_tile(problem, run, tall, target)
    blocks = _blocks(problem, target)
    tiles = _tiles(problem, tile, tall, run)
    parts, shares = _shares(problem, prod(blocks), tiles, copied)
    return Plan(tile, tall, joined, copied, blocks, parts, shares)


def _tiles(problem: WeightGradient, tile: Tile, tall: bool, run: int) -> int:
    rows = tile.rows // problem.sides[1].taps if tall else tile.rows
    outer = problem.rows // run // (problem.sides[1].taps if tall else 1)
    across = problem.groups * ceil_div(problem.columns, tile.columns)
    return outer * ceil_div(run, rows) * across


def _choose_tile(
    problem: WeightGradient, run: int, may_be_tall: bool, target: Target
) -> tuple[Tile, bool]:
    """The tile with the fewest cycles."""
    lanes = target.lanes(problem.sums.size)
    narrow = ceil_div(problem.columns, lanes)
    height = problem.sides[1].taps
    options: list[tuple[float, int, Tile, bool]] = []
    for vectors in range(1, min(narrow, target.registers // 4) + 1):
        most = max_rows(target, vectors)
        sizes = [(rows, False) for rows in range(1, min(most, run) + 1)]
        if may_be_tall and height > 1 and height * run <= most:
            sizes.append((height * run, True))
        for rows, tall in sizes:
            tile = Tile(rows, vectors, lanes, problem.sums)
            step = max(rows * vectors, vectors + rows * (vectors if vectors == 1 else 1), 8) / 2
            cycles = _tiles(problem, tile, tall, run) * step
            options.append((cycles, -rows, tile, tall))
    _, _, tile, tall = min(options, key=lambda option: option[:2])
    return tile, tall


def _blocks(problem: WeightGradient, target: Target) -> tuple[int, int, int, int]:
    """Blocks whose x and g each fit a quarter of L2."""
    extents = [problem.images, *(side.result for side in problem.sides)]
    sizes = [max(1, extent) for extent in extents]
    while True:
        window = prod(s.window(n) for s, n in zip(problem.sides, sizes[1:], strict=True))
        x = sizes[0] * window * problem.groups * problem.channels
        g = prod(sizes) * problem.width
        axis = next((i for i in range(4) if sizes[i] > 1), None)
        if max(x, g) * problem.sums.size <= target.l2 // 4 or axis is None:
            break
        sizes[axis] = ceil_div(sizes[axis], 2)
    a, b, c, d = (max(1, ceil_div(e, s)) for e, s in zip(extents, sizes, strict=True))
    return a, b, c, d


def _shares(problem: WeightGradient, blocks: int, tiles: int, copied: bool) -> tuple[int, int]:
    """Parts of the positions, while their gradients cost less than x and g; then of the tiles."""
    chunks = max(1, min(CHUNKS, int(problem.flops / CHUNK_FLOPS)))
    own = problem.rows * problem.width * problem.sums.size
    most = max(1, int(problem.bytes / max(own, 1))) if not copied else chunks
    parts = max(1, min(blocks, chunks, most))
    return parts, max(1, min(tiles, chunks // parts))


def launch_weight_gradient(
    problem: WeightGradient, plan: Plan, target: Target, operands: tuple[Argument, ...], sink: Sink
) -> tuple[Launch, ...]:
    """The launches: sums of each part, then their sum."""
    return _Nest(problem, plan, target).launches(operands, sink)


@dataclass
class _Operand:
    """x or g in memory, or a block of it in scratch."""

    base: Reg
    corner: list[Reg]  # position at `base`: image and axes
    pitches: tuple[int, int, int, int]

    def at(self, b: Builder, position: list[Reg]) -> Reg:
        """Where a position lies."""
        pointer = self.base
        for i, start, pitch in zip(position, self.corner, self.pitches, strict=True):
            pointer = b.offset(pointer, b.mul(subtract(b, i, start), pitch))
        return pointer


class _Nest:
    def __init__(self, problem: WeightGradient, plan: Plan, target: Target) -> None:
        self.problem = problem
        self.plan = plan
        self.tile = plan.tile
        self.target = target
        self.size = problem.sums.size
        self.panels = ceil_div(problem.columns, self.tile.columns)
        self.run = problem.channels * (problem.sides[2].taps if plan.joined else 1)
        self.height = problem.sides[1].taps if plan.tall else 1
        self.tile_run = self.tile.rows // self.height
        self.across = ceil_div(self.run, self.tile_run)
        z, y, x = problem.sides
        self.taps: Triple = (z.taps, 1 if plan.tall else y.taps, 1 if plan.joined else x.taps)
        self.items = problem.groups * self.panels * prod(self.taps) * self.across
        self.partial = problem.rows * problem.width * self.size
        extents = (problem.images, *(side.result for side in problem.sides))
        self.largest = [max(1, ceil_div(e, n)) for e, n in zip(extents, plan.blocks, strict=True)]
        channels = problem.groups * problem.channels
        self.x_image = Image((z.source, y.source, x.source), channels, problem.dtype)
        self.g_image = Image((z.result, y.result, x.result), problem.width, problem.dtype)
        counts = self.largest[1:]
        windows = [s.window(n) for s, n in zip(problem.sides, counts, strict=True)]
        self.x_copy = pitches_of((windows[0], windows[1], windows[2]), channels * self.size)
        self.g_copy = pitches_of((counts[0], counts[1], counts[2]), problem.width * self.size)
        self.widened = problem.dtype is not problem.sums
        self.x_bytes = (self.largest[0] * self.x_copy[0] // LINE + 1) * LINE
        self.scratch = self.x_bytes if plan.copied else 0
        if self.widened:
            self.scratch += ceil_div(self.largest[0] * self.g_copy[0], LINE) * LINE

    def launches(self, operands: tuple[Argument, ...], sink: Sink) -> tuple[Launch, ...]:
        problem, plan = self.problem, self.plan
        partial = Scratch(max(LINE, plan.parts * self.partial))
        args: list[Argument] = [*operands, partial]
        writes = [2]
        if self.scratch:
            writes.append(3)
            args.append(Scratch(self.scratch, per_thread=True))
        kernel = Kernel(f"conv_grad_weight_{problem.label}", self._ir())
        first = Launch(
            kernel, tuple(args), tuple(writes), plan.chunks, (), problem.flops, problem.bytes
        )
        return first, self._total(partial, sink)

    def _ir(self) -> str:
        b = self.b = kernel_builder()
        self.x, self.g, self.out = b.argument(0), b.argument(1), b.argument(2)
        if self.scratch:
            self.own = b.offset(b.argument(3), b.mul(b.params[3], self.scratch))
        with b.loop(b.params[1], b.params[2]) as loop:
            part, share = divide(b, loop.index, integer(self.plan.shares))
            self.sums = b.offset(self.out, b.mul(part, self.partial))
            first, count = span(b, part, prod(self.plan.blocks), self.plan.parts)
            with each(b, first, b.add(first, count)) as block:
                self.fresh = b.compare("icmp eq", block, first)
                self._block(block)
                start, items = span(b, share, self.items, self.plan.shares)
                with each(b, start, b.add(start, items)) as item:
                    self._item(item)
        return b.module()

    def _block(self, index: Reg) -> None:
        """Find the block's positions; copy its x and g if need be."""
        b, problem, plan = self.b, self.problem, self.plan
        extents = (problem.images, *(side.result for side in problem.sides))
        spans: list[tuple[Reg, Reg]] = []
        for extent, parts in zip(extents[::-1], plan.blocks[::-1], strict=True):
            index, i = divide(b, index, integer(parts))
            spans.insert(0, span(b, i, extent, parts))
        self.spans = spans
        nothing = [integer(0)] * 4
        self.left = _Operand(self.x, nothing, self.x_image.pitches)
        self.right = _Operand(self.g, nothing, self.g_image.pitches)
        if plan.copied:
            self.left = self._copied_x(spans)
        if self.widened:
            self.right = self._copied_g(spans)

    def _copied_x(self, spans: list[tuple[Reg, Reg]]) -> _Operand:
        b, sides = self.b, self.problem.sides
        corner = [
            b.add(b.mul(start, side.stride), -side.low)
            for (start, _), side in zip(spans[1:], sides, strict=True)
        ]
        z, y, x = (
            b.add(b.mul(count, side.stride), side.window(1) - side.stride)
            for (_, count), side in zip(spans[1:], sides, strict=True)
        )
        images = b.offset(self.x, b.mul(spans[0][0], self.x_image.pitches[0]))
        copy_block(
            b, self.target, self.x_image, images, self.own, (corner[0], corner[1], corner[2]),
            (spans[0][1], z, y, x), self.x_copy, self.problem.sums,
        )  # fmt: skip
        return _Operand(self.own, [spans[0][0], *corner], self.x_copy)

    def _copied_g(self, spans: list[tuple[Reg, Reg]]) -> _Operand:
        b = self.b
        to = b.offset(self.own, self.x_bytes)
        (n, z, y, x) = (start for start, _ in spans)
        a, c, d, e = (count for _, count in spans)
        images = b.offset(self.g, b.mul(n, self.g_image.pitches[0]))
        copy_block(
            b, self.target, self.g_image, images, to, (z, y, x), (a, c, d, e), self.g_copy,
            self.problem.sums,
        )  # fmt: skip
        return _Operand(to, [n, z, y, x], self.g_copy)

    def _item(self, item: Reg) -> None:
        """One tile of the gradient, for the positions of the block."""
        b, problem, tile = self.b, self.problem, self.tile
        rest, piece = divide(b, item, integer(self.across))
        taps: list[Reg] = []
        for count in self.taps[::-1]:
            rest, tap = divide(b, rest, integer(count))
            taps.insert(0, tap)
        group, panel = divide(b, rest, integer(self.panels))
        wanted_row = b.mul(piece, self.tile_run)
        row = smaller(b, wanted_row, integer(self.run - self.tile_run))
        column = b.mul(panel, tile.columns)
        masks = self._masks(column)
        column = b.add(column, b.mul(group, problem.columns))
        base = integer(0)
        for i, count in enumerate(self.taps):
            base = b.add(b.mul(base, count), taps[i])
        base = b.add(b.mul(base, self.run * self.height), row)
        places = self._places(base, column)
        start = [[self._start(p, v, masks) for v in range(tile.vectors)] for p in places]
        channel = b.add(row, b.mul(group, problem.channels))
        sums = self._sum(taps, channel, column, masks, start)
        skip = subtract(b, wanted_row, row)
        for i, (place, values) in enumerate(zip(places, sums, strict=True)):
            if self.run % self.tile_run == 0:
                self._store(place, values, masks)
                continue
            with b.when(b.compare("icmp sle", skip, integer(i % self.tile_run))):
                self._store(place, values, masks)

    def _masks(self, column: Reg) -> tuple[Reg | None, ...]:
        tile, b = self.tile, self.b
        if self.problem.columns % tile.columns == 0:
            return (None,) * tile.vectors
        rest = subtract(b, integer(self.problem.columns), column)
        return tuple(
            first_lanes(b, b.add(rest, -v * tile.lanes), tile.lanes) for v in range(tile.vectors)
        )

    def _places(self, row: Reg, column: Reg) -> list[Reg]:
        """Where the tile's rows lie in the part's gradient."""
        b, pitch = self.b, self.problem.width * self.size
        first = b.offset(scaled(b, self.sums, row, pitch, 1), b.mul(column, self.size))
        return [
            b.offset(first, (y * self.run + i) * pitch)
            for y in range(self.height)
            for i in range(self.tile_run)
        ]

    def _start(self, place: Reg, v: int, masks: tuple[Reg | None, ...]) -> Reg:
        b, tile, mask = self.b, self.tile, masks[v]
        place = b.offset(place, v * tile.lanes * self.size)
        if mask is None:
            value = b.load(tile.type, place, self.size)
        else:
            value = load_masked(b, tile.type, place, mask)
        return choose(b, self.fresh, constant(0, tile.type), value)

    def _store(self, place: Reg, values: list[Reg], masks: tuple[Reg | None, ...]) -> None:
        b, step = self.b, self.tile.lanes * self.size
        for v, (value, mask) in enumerate(zip(values, masks, strict=True)):
            if mask is None:
                b.store(value, b.offset(place, v * step), self.size)
            else:
                store_masked(b, value, b.offset(place, v * step), mask)

    def _range(self, i: int, tap: Reg) -> tuple[Reg, Reg]:
        """The positions of the block, on one axis, for which a tap lies inside x."""
        b, side = self.b, self.problem.sides[i]
        start, count = self.spans[i + 1]
        stop = b.add(start, count)
        if self.plan.copied or side.inside:
            return start, stop
        low, high = look_up(b, f"bounds{i}", [side.bounds(t) for t in range(side.taps)], tap)
        first = larger(b, start, low)
        return first, larger(b, first, smaller(b, stop, high))

    def _sum(
        self,
        taps: list[Reg],
        channel: Reg,
        column: Reg,
        masks: tuple[Reg | None, ...],
        start: Accumulators,
    ) -> Accumulators:
        b, problem, tile = self.b, self.problem, self.tile
        ranges = [self._range(i, tap) for i, tap in enumerate(taps)]
        images = self.spans[0]
        bounds = [(images[0], b.add(images[0], images[1])), ranges[0], ranges[1]]
        first_x, stop_x = ranges[2]

        def inner(at: list[Reg], sums: Accumulators) -> Accumulators:
            position = [*at, first_x]
            source = [at[0]]
            for q, tap, side in zip(position[1:], taps, problem.sides, strict=True):
                moved = b.add(b.mul(q, side.stride), b.mul(tap, side.dilation))
                source.append(b.add(moved, -side.low))
            x = b.offset(self.left.at(b, source), b.mul(channel, self.size))
            g = b.offset(self.right.at(b, position), b.mul(column, self.size))
            up = problem.sides[1].dilation * self.left.pitches[2]
            rows = tuple(
                Address(x, y * up + i * self.size)
                for y in range(self.height)
                for i in range(self.tile_run)
            )
            left = Left(rows, problem.sides[2].stride * self.left.pitches[3])
            right = Right(g, problem.width * self.size, masks)
            depth = subtract(b, stop_x, first_x)
            known = fixed(depth)
            return microkernel(b, tile, left, right, depth if known is None else known, sums)

        def nest(at: list[Reg], sums: Accumulators) -> Accumulators:
            if len(at) == 3:
                return inner(at, sums)
            begin, end = bounds[len(at)]
            flat = [register for row in sums for register in row]
            with b.loop(begin, end, 1, flat) as loop:
                found = nest([*at, loop.index], unflat(loop.carried, tile.vectors))
                loop.next = [register for row in found for register in row]
            return unflat(loop.results, tile.vectors)

        return nest([], start)

    def _total(self, partial: Scratch, sink: Sink) -> Launch:
        """The launch that adds the parts' gradients, in order, and finishes the result."""
        problem, plan = self.problem, self.plan
        rows = max(1, ceil_div(16 * 1024, problem.width))
        at = 1
        writes = tuple(at + i for i in sink.writes)
        inplace = tuple((at + i, at + j) for i, j in sink.inplace)
        moved = (plan.parts + 1.0) * self.partial
        kernel = Kernel(f"sum_{plan.parts}_{problem.label}", self._total_ir(rows, sink))
        return Launch(
            kernel, (partial, *sink.values), writes, ceil_div(problem.rows, rows), inplace,
            bytes=moved,
        )  # fmt: skip

    def _total_ir(self, rows: int, sink: Sink) -> str:
        b, problem = kernel_builder(), self.problem
        lanes, width = self.tile.lanes, self.problem.width
        parts = b.argument(0)
        sink.bind(b, 1)
        first = b.mul(b.params[1], rows)
        last = smaller(b, b.mul(b.params[2], rows), integer(problem.rows))
        with b.loop(first, last) as row:
            here = scaled(b, parts, row.index, width * self.size, 1)
            for begin, stop, mask in (
                (0, width - width % lanes, None),
                (width - width % lanes, width, first_lanes(b, integer(width % lanes), lanes)),
            ):
                if begin == stop:
                    continue
                with b.loop(begin, stop, lanes) as column:
                    place = b.offset(here, b.mul(column.index, self.size))
                    total = self._add_parts(b, place, mask)
                    sink.reset()
                    at = row.index, column.index, integer(width)
                    sink.store(total, at, lanes, mask)
        return b.module()

    def _add_parts(self, b: Builder, place: Reg, mask: Reg | None) -> Reg:
        zero = constant(0, self.tile.type)
        with b.loop(0, self.plan.parts, 1, [zero]) as loop:
            at = b.offset(place, b.mul(loop.index, self.partial))
            value = (
                b.load(zero.type, at, self.size)
                if mask is None
                else load_masked(b, zero.type, at, mask)
            )
            loop.next = [b.binary("fadd", loop.carried[0], value)]
        return loop.results[0]

"""Pooling problems in numbers; loops over outputs and windows, or over pixels and covers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft.codegen.builder import Builder, Reg, integer, vector
from weft.codegen.chunk import Items
from weft.codegen.contraction.emit import divide, larger, smaller, subtract
from weft.codegen.family.emit import (
    Part,
    over_channels,
    sum_type,
    vector_lanes,
)
from weft.codegen.target import Target
from weft.ir.dtype import DType
from weft.ir.extent import pinned
from weft.ir.node import Node
from weft.ir.shape import Shape, known
from weft.ops.pooling.window import pool_geometry

# Windows up to this size are unrolled if they lie inside the image; 3 x 3 is the common one.
WRITTEN_OUT = 16

Carried = list[Reg]
# (carried, element offset, position in the window or ranges' positions) -> carried
Step = Callable[[Carried, Reg, Reg], Carried]
Visit = Callable[[Carried, Step], Carried]
# (element offset of the pixel's block, its vectors, the ranges, visit)
Block = Callable[[Reg, Sequence[Part], "Sequence[Range]", Visit], None]


@dataclass(frozen=True)
class Pool:
    """A pooling problem in numbers, one entry per spatial axis."""

    images: int
    image: tuple[int, ...]
    output: tuple[int, ...]
    window: tuple[int, ...]
    strides: tuple[int, ...]
    low: tuple[int, ...]
    channels: int
    dtype: DType
    lanes: int

    @property
    def places(self) -> int:
        """Elements of a window."""
        return math.prod(self.window)

    @property
    def pixels(self) -> int:
        """Output pixels of all images."""
        return self.images * math.prod(self.output)

    @property
    def vector(self) -> str:
        """The LLVM type of a vector of channels in registers."""
        return vector(sum_type(self.dtype), self.lanes)

    @property
    def places_type(self) -> str:
        """The LLVM integer type in memory of a position in a window, or -1."""
        return "i8" if self.places < 128 else "i32"

    def inside(self, axis: int) -> bool:
        """Whether no window extends beyond the image along an axis."""
        last = (self.output[axis] - 1) * self.strides[axis] + self.window[axis]
        return self.low[axis] == 0 and last <= self.image[axis]

    @property
    def name(self) -> str:
        """A readable kernel name."""
        sizes = "x".join(map(str, (self.images, *self.image, self.channels)))
        return f"{self.dtype.name}_{sizes}_{'x'.join(map(str, self.window))}"


def pool_of(node: Node, x: Shape, target: Target) -> Pool:
    """The problem of a pooling node on images of shape `x`."""
    dims, dtype = known(x), node.outputs[0].dtype
    geo = pool_geometry(dims, **{k: v for k, v in node.attrs.items() if k != "shape"})
    return Pool(
        dims[0], known(geo.image), known(geo.output), geo.kernel, geo.strides,
        tuple(pinned(low) for low, _ in geo.padding), dims[-1], dtype,
        vector_lanes(dtype, target.vector_bits),
    )  # fmt: skip


@dataclass(frozen=True)
class Range:
    """The part [first, last) of a window, or of the windows over a pixel, along one axis."""

    first: Reg
    last: Reg
    origin: Reg  # image position of the window's element 0; in a gradient the padded position


def window_range(f: Builder, pool: Pool, axis: int, at: Reg) -> Range:
    """The elements of window `at` that lie inside the image."""
    origin = f.add(f.mul(at, pool.strides[axis]), -pool.low[axis])
    size, extent = pool.window[axis], pool.image[axis]
    if pool.inside(axis):
        return Range(integer(0), integer(size), origin)
    first = larger(f, subtract(f, integer(0), origin), 0)
    return Range(first, smaller(f, subtract(f, integer(extent), origin), size), origin)


def cover_range(f: Builder, pool: Pool, axis: int, at: Reg) -> Range:
    """The windows that cover image position `at`."""
    stride, size = integer(pool.strides[axis]), pool.window[axis]
    place = f.add(at, pool.low[axis])
    first, _ = divide(f, larger(f, f.add(place, pool.strides[axis] - size), 0), stride)
    last, _ = divide(f, place, stride)
    return Range(first, smaller(f, f.add(last, 1), pool.output[axis]), place)


def split_row(f: Builder, row: Reg, dims: Sequence[int]) -> list[Reg]:
    """The image, and the position along each of `dims`, of a row."""
    found: list[Reg] = []
    for size in reversed(dims):
        row, at = divide(f, row, integer(size))
        found.insert(0, at)
    return [row, *found]


def pixel_offset(f: Builder, image: Reg, at: Sequence[Reg], dims: Sequence[int], c: int) -> Reg:
    """Elements before channel 0 of a pixel."""
    for place, size in zip(at, dims, strict=True):
        image = f.add(f.mul(image, size), place)
    return f.mul(image, c)


def visit_places(
    f: Builder, pool: Pool, ranges: Sequence[Range], origin: Reg, start: Carried, step: Step
) -> Carried:
    """Loops over a window's elements inside the image; `origin` is the offset of element 0."""
    sizes = [math.prod(pool.image[a + 1 :]) * pool.channels for a in range(len(ranges))]

    def nest(axis: int, offset: Reg, place: Reg, carried: Carried) -> Carried:
        if axis == len(ranges):
            return step(carried, offset, place)
        with f.loop(ranges[axis].first, ranges[axis].last, carried=carried) as loop:
            following = f.add(f.mul(place, pool.window[axis]), loop.index)
            there = f.add(offset, f.mul(loop.index, sizes[axis]))
            loop.next = nest(axis + 1, there, following, loop.carried)
        return loop.results

    return nest(0, origin, integer(0), start)


def visit_all(f: Builder, pool: Pool, origin: Reg, start: Carried, step: Step) -> Carried:
    """All elements of a window that lies inside, unrolled."""
    for number, place in enumerate(itertools.product(*map(range, pool.window))):
        offset = 0
        for at, size in zip(place, pool.image, strict=True):
            offset = offset * size + at
        start = step(start, f.add(origin, offset * pool.channels), integer(number))
    return start


def whole_window(f: Builder, pool: Pool, ranges: Sequence[Range]) -> Reg | None:
    """Whether the window lies inside the image; `None` if it always does."""
    condition: Reg | None = None
    for axis, part in enumerate(ranges):
        if pool.inside(axis):
            continue
        count = subtract(f, part.last, part.first)
        full = f.compare("icmp eq", count, integer(pool.window[axis]))
        condition = full if condition is None else f.binary("and", condition, full)
    return condition


def over_windows(f: Builder, pool: Pool, rows: Items, block: Block) -> None:
    """Calls `block` for every output pixel; its `visit(start, step)` goes through the window."""
    with rows.loop(f) as row:
        image, *outer = split_row(f, row, pool.output[:-1])
        fixed = [window_range(f, pool, axis, at) for axis, at in enumerate(outer)]
        with f.loop(0, pool.output[-1]) as column:
            ranges = [*fixed, window_range(f, pool, len(outer), column.index)]
            out = f.mul(f.add(f.mul(row, pool.output[-1]), column.index), pool.channels)
            _window_pixel(f, pool, image, out, ranges, block)


def _window_pixel(
    f: Builder, pool: Pool, image: Reg, out: Reg, ranges: Sequence[Range], block: Block
) -> None:
    corner = [part.origin for part in ranges]
    origin = pixel_offset(f, image, corner, pool.image, pool.channels)

    def emit(written_out: bool) -> None:
        def body(first: Reg, parts: Sequence[Part]) -> None:
            at = f.add(origin, first)

            def visit(start: Carried, step: Step) -> Carried:
                if written_out:
                    return visit_all(f, pool, at, start, step)
                return visit_places(f, pool, ranges, at, start, step)

            block(f.add(out, first), parts, ranges, visit)

        over_channels(f, pool.channels, pool.lanes, body)

    whole = whole_window(f, pool, ranges)
    if whole is None or pool.places > WRITTEN_OUT:
        emit(pool.places <= WRITTEN_OUT)
        return
    with f.when(whole):
        emit(True)
    with f.when(f.binary("xor", whole, Reg("i1", "true"))):
        emit(False)


def over_pixels(f: Builder, pool: Pool, rows: Items, block: Block) -> None:
    """Calls `block` for every image pixel; `visit` goes through the windows that cover it.

    A step gets the offset of the window's output pixel, and the pixel's position in the window.
    """
    with rows.loop(f) as row:
        image, *outer = split_row(f, row, pool.image[:-1])
        fixed = [cover_range(f, pool, axis, at) for axis, at in enumerate(outer)]
        with f.loop(0, pool.image[-1]) as column:
            ranges = [*fixed, cover_range(f, pool, len(outer), column.index)]
            pixel = f.mul(f.add(f.mul(row, pool.image[-1]), column.index), pool.channels)

            def body(first: Reg, parts: Sequence[Part]) -> None:
                def visit(start: Carried, step: Step) -> Carried:
                    return _visit_covers(f, pool, ranges, (image, first), start, step)

                block(f.add(pixel, first), parts, ranges, visit)

            over_channels(f, pool.channels, pool.lanes, body)


def _visit_covers(
    f: Builder,
    pool: Pool,
    ranges: Sequence[Range],
    origin: tuple[Reg, Reg],
    start: Carried,
    step: Step,
) -> Carried:
    """Loops over the windows that cover a pixel; `origin` is its image and first channel."""

    def nest(axis: int, pixel: Reg, place: Reg, carried: Carried) -> Carried:
        if axis == len(ranges):
            return step(carried, f.add(f.mul(pixel, pool.channels), origin[1]), place)
        part = ranges[axis]
        with f.loop(part.first, part.last, carried=carried) as loop:
            shift = subtract(f, part.origin, f.mul(loop.index, pool.strides[axis]))
            following = f.add(f.mul(place, pool.window[axis]), shift)
            there = f.add(f.mul(pixel, pool.output[axis]), loop.index)
            loop.next = nest(axis + 1, there, following, loop.carried)
        return loop.results

    return nest(0, origin[0], integer(0), start)

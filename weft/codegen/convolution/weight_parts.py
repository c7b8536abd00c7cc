"""The parts of a weight gradient's positions, and the blocks of a part.

Each part has a gradient of its own, and these are added in order. Within a part, sums go through
the positions in order: images, then axes. So the parts decide the order of sums. They follow from
the shapes by one formula, for one size and for many; blocks do not change the order.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from weft.codegen.builder import Builder, Reg, integer, kernel_builder
from weft.codegen.contraction.emit import divide, fixed, subtract
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.convolution.halo import Image
from weft.codegen.convolution.panels import Panels, Spans
from weft.codegen.convolution.piece import span
from weft.codegen.convolution.weight_problem import WeightGradient
from weft.codegen.loop.prologue import Prologue
from weft.ir.extent import largest, same, smallest
from weft.passes.launch import Kernel, Launch, Scratch

MOST = 32
"""Maximum parts: even shares for up to 8 threads."""
TEAM = 8
"""Parts if they pay: a share for each of up to 8 threads."""
PAYS = 8
"""Elements of x and g that a part reads for each of its sums, at least."""
MORE = 64
"""The same for more than `TEAM` parts, whose sums take little time then."""
LEAST = 1_000_000
"""Multiplications of a part, at least: some 10 us."""
LEAST_READ = 100_000
"""Elements of x and g that a part reads, at least, where that takes longer: depthwise."""

Blocks = tuple[int, int, int, int]


def parts_of(problem: WeightGradient) -> Blocks:
    """How many parts the images and the three axes are cut in."""
    own = problem.rows * problem.width
    read = problem.pixels * (problem.groups * problem.channels + problem.width) // own
    wanted = largest(smallest(TEAM, read // PAYS), smallest(MOST, read // MORE))
    work = largest(problem.pixels * own // LEAST, problem.elements // LEAST_READ)
    wanted = largest(1, smallest(wanted, work))
    found: list[int] = []
    for extent in problem.extents:
        found.append(_cut(extent, wanted))
        wanted = largest(1, wanted // found[-1])
    a, b, c, d = found
    return (1, 1, 1, 1) if a * b * c * d == 1 else (a, b, c, d)


def _cut(extent: int, wanted: int) -> int:
    """At least `wanted` parts of an extent, if it has as many positions, of almost equal size."""
    if same(extent, 1):
        return 1
    return largest(1, ceil_div(extent, largest(1, extent // wanted)))


@dataclass(frozen=True)
class Cuts:
    """Parts of the images and axes, and the blocks of a part; one is numbered after the other.

    Attributes:
        sizes: of the largest block.
    """

    extents: Blocks
    parts: Blocks
    blocks: Blocks
    sizes: Blocks

    @property
    def count(self) -> int:
        """How many parts there are."""
        return prod(self.parts)

    @property
    def each(self) -> int:
        """How many blocks a part has."""
        return prod(self.blocks)

    def spans(self, b: Builder, part: Reg, block: Reg) -> Spans:
        """The images and positions of a block of a part: first, and how many."""
        found: Spans = []
        cuts = zip(self.extents, self.parts, self.blocks, strict=True)
        for extent, parts, blocks in list(cuts)[::-1]:
            part, i = divide(b, part, integer(parts))
            block, k = divide(b, block, integer(blocks))
            first, count = span(b, i, extent, parts)
            start, own = _part_of(b, k, count, blocks)
            found.insert(0, (b.add(first, start), own))
        return found


def _part_of(b: Builder, i: Reg, count: Reg, parts: int) -> tuple[Reg, Reg]:
    """As `span`, for a count that may be known only when the kernel runs."""
    if same(parts, 1):
        return integer(0), count
    known = fixed(count)
    if known is not None:
        return span(b, i, known, parts)
    start, _ = divide(b, b.mul(i, count), integer(parts))
    stop, _ = divide(b, b.mul(b.add(i, 1), count), integer(parts))
    return start, subtract(b, stop, start)


def cuts_of(problem: WeightGradient, parts: Blocks, sizes: Blocks) -> Cuts:
    """Blocks of at most `sizes`: before an axis is cut, all axes before it have blocks of one."""
    whole: int = 1
    blocks: list[int] = []
    most: list[int] = []
    for extent, count, size in list(zip(problem.extents, parts, sizes, strict=True))[::-1]:
        box = largest(1, ceil_div(extent, count))
        if same(box, 1):
            blocks.insert(0, 1)
            most.insert(0, 1)
            continue
        own = size if same(whole, 1) else largest(1, size * whole)
        blocks.insert(0, ceil_div(box, own))
        most.insert(0, smallest(own, box))
        whole = smallest(whole, own // box)
    a, b, c, d = blocks
    n, z, y, x = most
    return Cuts(problem.extents, parts, (a, b, c, d), (n, z, y, x))


def launch_panels(
    panels: Panels, image: Image, cuts: Cuts, source: Prologue
) -> tuple[Launch, Scratch]:
    """The launch that packs an image, part after part and block after block."""
    b = kernel_builder()
    count = image.channels // panels.columns * panels.across
    blocks = cuts.count * cuts.each
    shares = smallest(count, ceil_div(MOST, blocks))
    base = b.argument(0)
    source.bind(b, 2)
    with b.loop(b.params[1], b.params[2]) as loop:
        block, share = divide(b, loop.index, integer(shares))
        spans = cuts.spans(b, *divide(b, block, integer(cuts.each)))
        own = span(b, share, count, shares)
        place = base
        for (start, _), pitch in zip(spans, image.pitches, strict=True):
            place = b.offset(place, b.mul(start, pitch))
        goal = b.mul(b.add(b.mul(block, count), own[0]), panels.bytes)
        panels.copy(b, image, (place, b.offset(b.argument(1), goal)), spans, own, source)
    scratch = Scratch(blocks * count * panels.bytes)
    moved = 2.0 * prod(cuts.extents) * image.channels * image.dtype.size
    kernel = Kernel(f"panels_{panels.dtype}_{panels.width}", b.module())
    args = (source.array, scratch, *source.values)
    return Launch(kernel, args, (1,), blocks * shares, bytes=moved), scratch

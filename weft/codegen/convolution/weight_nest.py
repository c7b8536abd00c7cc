"""The loops that all weight gradient kernels share: parts, blocks, copies of operands, sums."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from weft.codegen.builder import Builder, Reg, integer, kernel_builder
from weft.codegen.contraction.emit import divide, subtract
from weft.codegen.contraction.sink import Sink, launch_into
from weft.codegen.convolution.halo import choose, copy_block
from weft.codegen.convolution.panels import Spans
from weft.codegen.convolution.piece import each
from weft.codegen.convolution.weight_layout import Layout
from weft.codegen.convolution.weight_parts import launch_panels
from weft.codegen.convolution.weight_sum import Place, launch_sum
from weft.codegen.loop.prologue import Prologue
from weft.codegen.microkernel import Accumulators, zeros
from weft.codegen.target import Target
from weft.passes.launch import Argument, Kernel, Launch, Scratch

Operands = tuple[Prologue, Prologue]
"""How x and g are read."""


@dataclass(frozen=True)
class Operand:
    """x or g in memory, or a block of it in scratch."""

    base: Reg
    corner: list[Reg]  # position at `base`: image and axes
    pitches: tuple[int, int, int, int]

    def at(self, b: Builder, position: list[Reg]) -> Reg:
        """The address of a position."""
        pointer = self.base
        for i, start, pitch in zip(position, self.corner, self.pitches, strict=True):
            pointer = b.offset(pointer, b.mul(subtract(b, i, start), pitch))
        return pointer


@dataclass(frozen=True)
class Block:
    """A block of positions, for one slice of the gradient."""

    number: Reg  # among those of its part
    part: Reg
    fresh: Reg  # whether it is the part's first
    final: Reg  # whether it is the part's last
    spans: Spans  # images and positions: first, and how many
    x: Operand
    g: Operand


@dataclass(frozen=True)
class Corner:
    """Where a slice of the gradient begins."""

    panel: Reg
    piece: Reg


class WeightNest(ABC):
    """Writes the kernel of one weight gradient; subclasses write its tiles.

    Its registers are those of the whole kernel: arguments, and zeros in the place of sums.
    """

    def __init__(self, layout: Layout, target: Target, operands: Operands, sink: Sink) -> None:
        self.layout = layout
        self.problem, self.plan, self.tiling = layout.problem, layout.plan, layout.tiling
        self.tile = layout.plan.tile
        self.target = target
        self.sources = operands
        self.sink = sink
        self.b = b = kernel_builder()
        self.x, self.g = b.argument(0), b.argument(1)
        at = 2
        for source in operands:
            source.bind(b, at)
            at += len(source.values)
        self.own = self.x
        if layout.scratch:
            self.own = b.offset(b.argument(at), b.mul(b.params[3], layout.scratch))
            at += 1
        self.out = self.own
        if self.plan.parts > 1:
            self.out = b.argument(at)
        else:
            sink.bind(b, at)
        self.zero = b.emit("ptr", f"alloca [{self.tiling.bytes} x i8], align 64")
        self.tiling.store(b, zeros(self.tiling.tile), self.zero)

    def text(self) -> str:
        """The kernel's text."""
        b, plan = self.b, self.plan
        with b.loop(b.params[1], b.params[2]) as loop:
            rest, columns = divide(b, loop.index, integer(plan.slices[1]))
            part, rows = divide(b, rest, integer(plan.slices[0]))
            with each(b, integer(0), integer(plan.cuts.each)) as number:
                self._work(self._block(part, number), rows, columns)
        return b.module()

    @abstractmethod
    def _work(self, block: Block, rows: Reg, columns: Reg) -> None:
        """The tiles of a slice: `rows` and `columns` are its numbers."""

    def _block(self, part: Reg, number: Reg) -> Block:
        """A block of a part; copies x and g if needed."""
        b, plan, layout = self.b, self.plan, self.layout
        fresh = b.compare("icmp eq", number, integer(0))
        final = b.compare("icmp eq", number, integer(plan.cuts.each - 1))
        spans = plan.cuts.spans(b, part, number)
        nothing = [integer(0)] * 4
        x = Operand(self.x, nothing, layout.x_image.pitches)
        g = Operand(self.g, nothing, layout.g_image.pitches)
        if plan.copied:
            x = self._copied_x(spans)
        if layout.widened and not plan.packed:
            g = self._copied_g(spans)
        return Block(number, part, fresh, final, spans, x, g)

    def _copied_x(self, spans: Spans) -> Operand:
        b, sides, layout = self.b, self.problem.sides, self.layout
        corner = [
            b.add(b.mul(start, side.stride), -side.low)
            for (start, _), side in zip(spans[1:], sides, strict=True)
        ]
        z, y, x = (
            b.add(b.mul(count, side.stride), side.window(1) - side.stride)
            for (_, count), side in zip(spans[1:], sides, strict=True)
        )
        image = layout.x_image
        images = b.offset(self.x, b.mul(spans[0][0], image.pitches[0]))
        channels, load = self.sources[0].whole()
        if layout.spare:
            channels = integer(image.channels)
        copy_block(
            b, self.target, image, images, self.own, (corner[0], corner[1], corner[2]),
            (spans[0][1], z, y, x), layout.x_copy, self.problem.sums, channels, load,
        )  # fmt: skip
        return Operand(self.own, [spans[0][0], *corner], layout.x_copy)

    def _copied_g(self, spans: Spans) -> Operand:
        b, layout = self.b, self.layout
        to = b.offset(self.own, layout.x_bytes)
        (n, z, y, x) = (start for start, _ in spans)
        a, c, d, e = (count for _, count in spans)
        images = b.offset(self.g, b.mul(n, layout.g_image.pitches[0]))
        copy_block(
            b, self.target, layout.g_image, images, to, (z, y, x), (a, c, d, e), layout.g_copy,
            self.problem.sums,
        )  # fmt: skip
        return Operand(to, [n, z, y, x], layout.g_copy)

    @contextlib.contextmanager
    def _kept(self, block: Block, corner: Corner, at: Place) -> Iterator[Accumulators]:
        """Loads a tile's sums of the block before for the body to change, then stores them."""
        b, tiling = self.b, self.tiling
        panel, piece, tap = at
        if self.plan.parts > 1:
            start = b.offset(self.out, b.mul(block.part, tiling.count * tiling.bytes))
            number = b.add(b.mul(panel, tiling.pieces), piece)
        else:
            start = b.offset(self.own, self.layout.sums_at)
            number = b.mul(subtract(b, panel, corner.panel), self.layout.pieces)
            number = b.add(number, subtract(b, piece, corner.piece))
        number = b.add(b.mul(number, tiling.taps), tap)
        place = b.offset(start, b.mul(number, tiling.bytes))
        sums = tiling.load(b, choose(b, block.fresh, self.zero, place))
        yield sums
        tiling.store(b, sums, place)
        if self.plan.parts == 1:
            with b.when(block.final):
                tiling.finish(b, self.sink, at, place, 1)


def launches_of(
    nest: type[WeightNest], layout: Layout, target: Target, operands: Operands, sink: Sink
) -> tuple[Launch, ...]:
    """The launches: panels of g if they are packed before, the kernel, the sum of parts."""
    problem, plan, tiling = layout.problem, layout.plan, layout.tiling
    args: list[Argument] = [source.array for source in operands]
    before: tuple[Launch, ...] = ()
    after: tuple[Launch, ...] = ()
    ending: Sink | None = sink
    if plan.before:
        copy, args[1] = launch_panels(layout.packing, layout.g_image, plan.cuts, operands[1])
        before = (copy,)
    args += [value for source in operands for value in source.values]
    own = len(args)
    if layout.scratch:
        args.append(Scratch(layout.scratch, per_thread=True))
    if plan.parts > 1:
        partial = Scratch(plan.parts * tiling.count * tiling.bytes)
        args.append(partial)
        ending, after = None, (launch_sum(problem, plan.parts, tiling, partial, sink),)
    text = nest(layout, target, operands, sink).text()
    kernel = Kernel(f"conv_grad_weight_{problem.label}", text)
    first = launch_into(
        ending, kernel, args, range(own, len(args)), plan.chunks, problem.flops, problem.bytes
    )
    return *before, first, *after

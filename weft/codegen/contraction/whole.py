"""Launches that pack a whole operand, for matmuls whose items share its panels."""

from __future__ import annotations

from weft.codegen.builder import Builder, Reg, integer, kernel_builder
from weft.codegen.chunk import Items, even_chunks
from weft.codegen.contraction.blocks import Blocks
from weft.codegen.contraction.emit import divide, scaled, smaller, subtract
from weft.codegen.contraction.panel import (
    RUNS,
    LeftPanels,
    RightPanel,
    left_strides,
    odd_elements,
    right_bytes,
)
from weft.codegen.contraction.product import Product
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.microkernel import Tile
from weft.codegen.target import Target
from weft.host.memory import LINE
from weft.ir.node import Value
from weft.passes.launch import Kernel, Launch, Scratch

PART = 8
"""Panels of x that are packed together: runs of some 100 elements if x is transposed."""


def panel_bytes(tile: Tile, depth: int) -> int:
    """Bytes from one panel to the next: an odd number of lines, so that they share no cache set."""
    return ceil_div(right_bytes(tile, depth), 2 * LINE) * 2 * LINE + LINE


class RightPanels:
    """Packed y: panel j of block k of matrix g is number `(g * blocks + k) * across + j`."""

    def __init__(self, tile: Tile, product: Product, blocks: Blocks, target: Target) -> None:
        self.tile = tile
        self.product = product
        self.blocks = blocks
        self.target = target
        self.across = ceil_div(product.n, tile.columns)
        self.narrow = product.n < tile.columns
        self.by_runs = not (product.y_transposed or product.odd or product.y_woven)
        self.chunks_of_block = ceil_div(blocks.depth, RUNS)
        self.each = panel_bytes(tile, blocks.depth)

    def launch(self, y: Value, count: int) -> tuple[Launch, Scratch]:
        """Packs `count` matrices."""
        product = self.product
        scratch = Scratch(count * self.blocks.count * self.across * self.each)
        parts = self.chunks_of_block if self.by_runs else self.across
        items = even_chunks(count * self.blocks.count * parts)
        moved = 2.0 * count * product.k * product.n * self.tile.dtype.size
        kernel = Kernel(f"pack_{product.label}", self._ir(items))
        return Launch(kernel, (y, scratch), (1,), items.chunks, bytes=moved), scratch

    def _ir(self, items: Items) -> str:
        b = kernel_builder()
        y, out = b.argument(0), b.argument(1)
        panel = RightPanel(b, self.tile, self.product, self.narrow, self.target)
        with items.loop(b) as item:
            if self.by_runs:
                self._runs(b, panel, (y, out), item)
            else:
                self._panel(b, panel, (y, out), item)
        return b.module()

    def _block(self, b: Builder, y: Reg, number: Reg) -> tuple[Reg, Reg, Reg]:
        """The start of a block of a matrix; its first step and its steps."""
        product = self.product
        matrix, block = divide(b, number, integer(self.blocks.count))
        k0, steps = self.blocks.at(b, block, integer(product.k))
        y = scaled(b, y, matrix, product.depth * product.n, product.element)
        return scaled(b, y, k0, product.y_step, product.y_size), k0, steps

    def _start(self, b: Builder, j: Reg) -> Reg:
        """The first column of panel j; the last panel ends at the edge."""
        start = b.mul(j, self.tile.columns)
        return start if self.narrow else smaller(b, start, self.product.n - self.tile.columns)

    def _panel(self, b: Builder, panel: RightPanel, at: tuple[Reg, Reg], item: Reg) -> None:
        product, (y, out) = self.product, at
        number, j = divide(b, item, integer(self.across))
        y, k0, steps = self._block(b, y, number)
        elements = steps
        if product.odd:
            left = subtract(b, odd_elements(b, integer(product.k)), b.mul(k0, 2))
            elements = smaller(b, b.mul(steps, 2), left)
        y = scaled(b, y, self._start(b, j), product.y_column, product.y_size)
        to = scaled(b, out, item, self.each, 1)
        strides = integer(product.y_step), integer(product.y_column)
        panel.copy(y, to, steps, strides, integer(product.n), elements)

    def _runs(self, b: Builder, panel: RightPanel, at: tuple[Reg, Reg], item: Reg) -> None:
        """A few steps of k of all panels: long runs of y."""
        (y, out), product = at, self.product
        number, part = divide(b, item, integer(self.chunks_of_block))
        y, _, steps = self._block(b, y, number)
        first = b.mul(part, RUNS)
        count = subtract(b, smaller(b, b.add(first, RUNS), steps), first)
        y = scaled(b, y, first, product.y_step, product.y_size)
        to = scaled(b, out, b.mul(number, self.across), self.each, 1)
        to = scaled(b, to, first, self.tile.columns, self.tile.dtype.size)
        strides = integer(product.y_step), integer(product.y_column)
        with b.loop(0, self.across) as loop:
            start = self._start(b, loop.index)
            panel.copy(
                scaled(b, y, start, 1, product.y_size), scaled(b, to, loop.index, self.each, 1),
                count, strides, integer(product.n),
            )  # fmt: skip


class AllLeftPanels:
    """Packed x: panel i of block k of matrix g is number `(g * blocks + k) * down + i`."""

    def __init__(self, tile: Tile, product: Product, blocks: Blocks, target: Target) -> None:
        self.tile = tile
        self.product = product
        self.blocks = blocks
        self.target = target
        self.down = ceil_div(product.m, tile.rows)
        self.parts = ceil_div(self.down, PART)
        self.each = left_strides(tile, product.x_transposed, blocks.depth)[2]

    def launch(self, x: Value, count: int) -> tuple[Launch, Scratch]:
        """Packs `count` matrices."""
        product = self.product
        scratch = Scratch(count * self.blocks.count * self.down * self.each)
        items = even_chunks(count * self.blocks.count * self.parts)
        moved = 2.0 * count * product.m * product.k * self.tile.dtype.size
        kernel = Kernel(f"pack_left_{product.label}", self._ir(items))
        return Launch(kernel, (x, scratch), (1,), items.chunks, bytes=moved), scratch

    def _ir(self, items: Items) -> str:
        b, product = kernel_builder(), self.product
        x, out = b.argument(0), b.argument(1)
        panels = LeftPanels(b, self.tile, product, self.blocks.depth, self.target)
        with items.loop(b) as item:
            number, part = divide(b, item, integer(self.parts))
            matrix, block = divide(b, number, integer(self.blocks.count))
            k0, steps = self.blocks.at(b, block, integer(product.k))
            elements = steps
            if product.odd:
                left = subtract(b, odd_elements(b, integer(product.k)), b.mul(k0, 2))
                elements = smaller(b, b.mul(steps, 2), left)
            i0 = b.mul(part, PART)
            i1 = smaller(b, b.add(i0, PART), self.down)
            source = scaled(b, x, matrix, product.m * product.depth, product.element)
            source = scaled(b, source, k0, product.x_step, product.x_size)
            to = scaled(b, out, b.add(b.mul(number, self.down), i0), self.each, 1)
            strides = integer(product.x_row), integer(product.x_step)
            panels.copy(source, to, (i0, i1, integer(product.m)), (steps, elements), strides)
        return b.module()

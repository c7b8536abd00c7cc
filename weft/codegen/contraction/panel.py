"""Copies of the operands in the order in which the microkernel reads them.

A panel of x holds `rows` rows of one block of k. Where k is contiguous in x it is `rows` runs, a
fixed pitch apart; where rows are contiguous it is `depth` runs of `rows` elements: either way the
copy moves runs and the microkernel's strides are constants. The pitch has a cache line to spare,
so that rows do not meet in one cache set. A panel of y is `depth` runs of the tile's columns.

A last panel that would hang over the edge begins early enough to end at it.
"""

from __future__ import annotations

from weft.codegen.builder import Builder, Reg, integer, kernel_builder, vector
from weft.codegen.contraction.emit import (
    copy_run,
    divide,
    read,
    scaled,
    smaller,
    subtract,
    weave,
)
from weft.codegen.contraction.plan import DEPTH, ceil_div
from weft.codegen.contraction.product import Product
from weft.codegen.contraction.transpose import transpose
from weft.codegen.kernel import Argument, Kernel, Launch, Scratch
from weft.codegen.microkernel import Tile, first_lanes, load_masked
from weft.codegen.target import Target
from weft.ir.dtype import bfloat16
from weft.ir.node import Value

LINE = 64


def left_strides(tile: Tile, turned: bool) -> tuple[int, int, int]:
    """Bytes in a panel of x: between rows, between steps of k, and of the whole panel."""
    size = tile.dtype.size
    if turned:
        space = tile.rows * size * DEPTH + tile.lanes * size
        return size, tile.rows * size, ceil_div(space, LINE) * LINE
    pitch = DEPTH * size + LINE
    return pitch, size, tile.rows * pitch


def right_bytes(tile: Tile, depth: int) -> int:
    """Bytes of a panel of y; a transposing copy may write up to a vector of steps too many."""
    return (depth + tile.lanes) * tile.columns * tile.dtype.size


def odd_elements(b: Builder, k: Reg) -> Reg:
    """Elements along k of an odd product of `k` pairs."""
    return b.add(b.mul(k, 2), -1)


def halves(b: Builder, elements: Reg) -> tuple[Reg, Reg]:
    """How many pairs `elements` are, and whether one is left."""
    rest = b.compare("icmp ne", b.binary("and", elements, integer(1)), integer(0))
    return b.binary("lshr", elements, integer(1)), rest


class LeftPanels:
    """The launch that copies all of x, and where its panels lie."""

    def __init__(self, tile: Tile, product: Product, target: Target) -> None:
        self.tile = tile
        self.source = bfloat16 if product.x_woven or product.odd else product.dtype
        self.woven = product.x_woven
        self.odd = product.odd
        self.turned = product.x_transposed
        self.target = target

    def launch(
        self, x: Value, count: int, sizes: tuple[int, int, int, int, int]
    ) -> tuple[Launch, Scratch]:
        """Copy `count` matrices; `sizes` are m, k, elements between rows and steps, and depth."""
        m, k, row, step, depth = sizes
        down, blocks = ceil_div(m, self.tile.rows), max(1, ceil_div(k, depth))
        panels = count * blocks * down
        scratch = Scratch(panels * left_strides(self.tile, self.turned)[2] + LINE)
        group = max(1, ceil_div(panels, 64))
        args: tuple[Argument, ...] = (
            x, scratch, m, k, row, step, depth, down, blocks, panels, group,
        )  # fmt: skip
        moved = float(m * k * count * (self.source.size + self.tile.dtype.size))
        label = (
            f"{self.source}_{self.tile.rows}{'t' * self.turned}{'w' * self.woven}{'o' * self.odd}"
        )
        kernel = Kernel(f"pack_{label}", self._ir())
        return Launch(kernel, args, (1,), ceil_div(panels, group), bytes=moved), scratch

    def _ir(self) -> str:
        b = kernel_builder()
        x, out = b.argument(0), b.argument(1)
        m, k, row, step, depth, down, blocks, panels, group = (
            b.argument(slot, "i64") for slot in range(2, 11)
        )
        first = b.mul(b.params[1], group)
        last = smaller(b, b.mul(b.params[2], group), panels)
        with b.loop(first, last) as loop:
            rest, i = divide(b, loop.index, down)
            matrix, block = divide(b, rest, blocks)
            k0 = b.mul(block, depth)
            row0 = smaller(b, b.mul(i, self.tile.rows), b.add(m, -self.tile.rows))
            elements = odd_elements(b, k) if self.odd else b.mul(k, 2 if self.woven else 1)
            source = scaled(b, x, matrix, b.mul(m, elements), self.source.size)
            source = scaled(b, source, row0, row, self.source.size)
            source = scaled(b, source, k0, step, self.source.size)
            to = scaled(b, out, loop.index, left_strides(self.tile, self.turned)[2], 1)
            steps = smaller(b, depth, subtract(b, k, k0))
            if self.odd:
                elements = smaller(b, b.mul(steps, 2), subtract(b, elements, b.mul(k0, 2)))
            if self.turned:
                self._copy_steps(b, source, to, (steps, elements), step, subtract(b, m, row0))
            else:
                self._copy_rows(b, source, to, (steps, elements), row)
        return b.module()

    def _copy_rows(
        self, b: Builder, source: Reg, to: Reg, counts: tuple[Reg, Reg], row: Reg
    ) -> None:
        pitch = left_strides(self.tile, False)[0]
        steps, elements = counts
        with b.loop(0, self.tile.rows) as loop:
            start = scaled(b, source, loop.index, row, self.source.size)
            goal = scaled(b, to, loop.index, pitch, 1)
            if self.odd:
                last = scaled(b, goal, b.add(steps, -1), 1, self.tile.dtype.size)
                b.store(integer(0, "i32"), last, 4)
                copy_run(b, self.target, start, goal, elements, (bfloat16, bfloat16))
            else:
                copy_run(b, self.target, start, goal, steps, (self.source, self.tile.dtype))

    def _copy_steps(
        self, b: Builder, source: Reg, to: Reg, counts: tuple[Reg, Reg], step: Reg, room: Reg
    ) -> None:
        """Runs of `rows` elements; whole vectors where `room` elements may be read."""
        wide = b.compare("icmp sge", room, integer(self.tile.lanes))
        narrow = b.compare("icmp slt", room, integer(self.tile.lanes))
        for which, copy in ((wide, self._copy_wide), (narrow, self._copy_narrow)):
            with b.when(which):
                if not self.odd:
                    with b.loop(0, counts[0]) as loop:
                        copy(b, source, to, loop.index, step, step)
                    continue
                whole, rest = halves(b, counts[1])
                with b.loop(0, whole) as loop:
                    copy(b, source, to, loop.index, step, step)
                with b.when(rest):
                    copy(b, source, to, whole, step, None)

    def _copy_wide(
        self, b: Builder, source: Reg, to: Reg, k: Reg, step: Reg, apart: Reg | None
    ) -> None:
        tile, size = self.tile, self.tile.dtype.size
        run = scaled(b, source, k, step, self.source.size)
        goal = scaled(b, to, k, tile.rows, size)
        for v in range(ceil_div(tile.rows, tile.lanes)):
            start = min(v * tile.lanes, max(0, tile.rows - tile.lanes))
            value = self._value(b, b.offset(run, start * self.source.size), tile.lanes, apart)
            b.store(value, b.offset(goal, start * size), size)

    def _copy_narrow(
        self, b: Builder, source: Reg, to: Reg, k: Reg, step: Reg, apart: Reg | None
    ) -> None:
        size = self.tile.dtype.size
        run = scaled(b, source, k, step, self.source.size)
        goal = scaled(b, to, k, self.tile.rows, size)
        with b.loop(0, self.tile.rows) as inner:
            place = scaled(b, run, inner.index, 1, self.source.size)
            b.store(self._value(b, place, 1, apart), scaled(b, goal, inner.index, 1, size), size)

    def _value(self, b: Builder, place: Reg, lanes: int, step: Reg | None) -> Reg:
        if self.woven:  # a step is two runs of 16-bit elements: its half in bytes is its number
            return weave(b, place, step, lanes, None)
        return read(b, place, lanes, self.source, self.tile.dtype, None)


class RightPanel:
    """Code, inside a kernel, that copies one panel of y.

    `step` and `column` are elements between steps of k and columns; `narrow` says that y has fewer
    columns than the tile, which are then read by mask, or the last one again.
    """

    def __init__(
        self, b: Builder, tile: Tile, product: Product, narrow: bool, target: Target
    ) -> None:
        self.b = b
        self.tile = tile
        self.source = bfloat16 if product.y_woven or product.odd else product.dtype
        self.woven = product.y_woven
        self.odd = product.odd
        self.turned = product.y_transposed
        self.narrow = narrow
        self.target = target

    def copy(
        self, y: Reg, to: Reg, steps: Reg, strides: tuple[Reg, Reg], n: Reg,
        elements: Reg | None = None,
    ) -> None:  # fmt: skip
        """Copy `steps` runs from `y`, which points at the panel's first element, to `to`.

        `elements` are those along k in the steps, which an odd product needs to know.
        """
        b, (step, column) = self.b, strides
        counts = steps, elements or steps
        if self.turned and self.target.masked:
            with b.loop(0, steps, self.tile.lanes) as loop:
                self._turn(y, to, loop.index, column, n, self._existing(counts, loop.index))
        elif self.turned:
            whole = b.binary("and", steps, integer(-self.tile.lanes))
            with b.loop(0, whole, self.tile.lanes) as loop:
                self._turn(y, to, loop.index, column, n, None)
            self._copy_elements(y, to, (whole, steps), (step, column), n)
        elif self.narrow and not self.target.masked:
            self._copy_elements(y, to, (integer(0), steps), (step, column), n)
        else:
            self._copy_runs(y, to, counts, step, n)

    def _existing(self, counts: tuple[Reg, Reg], k: Reg) -> Reg:
        """A mask of what there is along k from step `k` on: steps, or elements of a pair."""
        b, lanes = self.b, self.tile.lanes
        if self.odd:
            return first_lanes(b, subtract(b, counts[1], b.mul(k, 2)), 2 * lanes)
        return first_lanes(b, subtract(b, counts[0], k), lanes)

    def _copy_runs(self, y: Reg, to: Reg, counts: tuple[Reg, Reg], step: Reg, n: Reg) -> None:
        b, tile = self.b, self.tile
        masks = [
            first_lanes(b, b.add(n, -v * tile.lanes), tile.lanes) if self.narrow else None
            for v in range(tile.vectors)
        ]
        if not self.odd:
            with b.loop(0, counts[0]) as loop:
                self._copy_run(y, to, loop.index, (step, step), masks)
            return
        whole, rest = halves(b, counts[1])
        with b.loop(0, whole) as loop:
            self._copy_run(y, to, loop.index, (step, step), masks)
        with b.when(rest):
            self._copy_run(y, to, whole, (step, None), masks)

    def _copy_run(
        self, y: Reg, to: Reg, k: Reg, steps: tuple[Reg, Reg | None], masks: list[Reg | None]
    ) -> None:
        b, tile, size = self.b, self.tile, self.tile.dtype.size
        step, apart = steps
        run = scaled(b, y, k, step, self.source.size)
        goal = scaled(b, to, k, tile.columns, size)
        for v, mask in enumerate(masks):
            place = b.offset(run, v * tile.lanes * self.source.size)
            if self.woven:
                value = weave(b, place, apart, tile.lanes, mask)
            else:
                value = read(b, place, tile.lanes, self.source, tile.dtype, mask)
            b.store(value, b.offset(goal, v * tile.lanes * size), size)

    def _turn(self, y: Reg, to: Reg, k: Reg, column: Reg, n: Reg, mask: Reg | None) -> None:
        """Transpose `lanes` steps of every column; `mask` says which steps exist."""
        b, tile = self.b, self.tile
        size = tile.dtype.size
        at = scaled(b, y, k, 2 if self.odd else 1, self.source.size)
        goal = scaled(b, to, k, tile.columns, size)
        with b.loop(0, tile.columns, tile.lanes) as loop:
            runs: list[Reg] = []
            for lane in range(tile.lanes):
                place = scaled(
                    b, at, self._column(b.add(loop.index, lane), n), column, self.source.size
                )
                runs.append(self._along(place, mask))
            for lane, vector in enumerate(transpose(b, runs, tile.lanes)):
                start = b.offset(goal, lane * tile.columns * size)
                b.store(vector, scaled(b, start, loop.index, 1, size), size)

    def _along(self, place: Reg, mask: Reg | None) -> Reg:
        """A vector of neighbours along k."""
        b, tile = self.b, self.tile
        if self.odd and mask is not None:
            words = load_masked(b, vector("i16", 2 * tile.lanes), place, mask)
            return b.emit(tile.type, f"bitcast {words} to {tile.type}")
        return read(b, place, tile.lanes, self.source, tile.dtype, mask)

    def _column(self, index: Reg, n: Reg) -> Reg:
        return smaller(self.b, index, self.b.add(n, -1)) if self.narrow else index

    def _copy_elements(
        self, y: Reg, to: Reg, steps: tuple[Reg, Reg], strides: tuple[Reg, Reg], n: Reg
    ) -> None:
        b, tile, (step, column) = self.b, self.tile, strides
        with b.loop(*steps) as loop:
            run = scaled(b, y, loop.index, step, self.source.size)
            goal = scaled(b, to, loop.index, tile.columns, tile.dtype.size)
            with b.loop(0, tile.columns) as inner:
                place = scaled(b, run, self._column(inner.index, n), column, self.source.size)
                value = read(b, place, 1, self.source, tile.dtype, None)
                b.store(value, scaled(b, goal, inner.index, 1, tile.dtype.size), tile.dtype.size)

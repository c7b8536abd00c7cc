"""Packs the operands into panels, in the order in which the microkernel reads them.

A panel of x holds `rows` rows of one block of k. If k is contiguous in x it is `rows` runs, a fixed
pitch apart; if rows are contiguous it is `depth` runs of `rows` elements. Either way the copy moves
runs and the microkernel's strides are constants. The pitch has a spare cache line, so that rows do
not fall into one cache set. A panel of y is `depth` runs of the tile's columns.

A last panel that would extend beyond the edge starts early enough to end there.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.codegen.builder import Builder, Reg, integer, vector
from weft.codegen.contraction.emit import (
    copy_run,
    divide,
    larger,
    read,
    scaled,
    smaller,
    subtract,
    weave,
)
from weft.codegen.contraction.product import Product
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.contraction.transpose import transpose
from weft.codegen.microkernel import Tile, first_lanes, load_masked, prefetch
from weft.codegen.target import Target
from weft.host.memory import LINE
from weft.ir.dtype import bfloat16

RUNS = 8
"""Steps of k whose runs are copied together."""


def left_strides(tile: Tile, turned: bool, depth: int) -> tuple[int, int, int]:
    """Bytes in a panel of x: between rows, between steps of k, and of the whole panel."""
    size = tile.dtype.size
    if turned:
        space = tile.rows * size * depth + tile.lanes * size
        return size, tile.rows * size, ceil_div(space, LINE) * LINE
    pitch = ceil_div(depth * size, LINE) * LINE + LINE
    return pitch, size, tile.rows * pitch


def right_bytes(tile: Tile, depth: int) -> int:
    """Bytes of a panel of y; a transposing copy may write up to a vector of extra steps."""
    return (depth + tile.lanes) * tile.columns * tile.dtype.size


def odd_elements(b: Builder, k: Reg) -> Reg:
    """Elements along k for `k` pairs with an odd one."""
    return b.add(b.mul(k, 2), -1)


def halves(b: Builder, elements: Reg) -> tuple[Reg, Reg]:
    """How many pairs `elements` are, and whether one is left over."""
    rest = b.compare("icmp ne", b.binary("and", elements, integer(1)), integer(0))
    return b.binary("lshr", elements, integer(1)), rest


class LeftPanels:
    """Code that packs an item's rows of x, one block of k."""

    def __init__(
        self, b: Builder, tile: Tile, product: Product, depth: int, target: Target
    ) -> None:
        self.b = b
        self.tile = tile
        self.source = bfloat16 if product.x_woven or product.odd else product.dtype
        self.woven = product.x_woven
        self.odd = product.odd
        self.turned = product.x_transposed
        self.target = target
        self.pitch, _, self.each = left_strides(tile, self.turned, depth)

    def copy(
        self, x: Reg, to: Reg, rows: tuple[Reg, Reg, Reg], counts: tuple[Reg, Reg],
        strides: tuple[Reg, Reg],
    ) -> None:  # fmt: skip
        """Packs from `x`, row 0 at the block's first step.

        `rows` are the first and the last tile and how many rows there are; `counts` the block's
        steps and elements along k; `strides` the elements between rows and steps.
        """
        b, (i0, i1, m) = self.b, rows
        if self.turned and not self.odd:
            self._copy_runs(x, to, rows, counts[0], strides)
            return
        with b.loop(i0, i1) as loop:
            row = smaller(b, b.mul(loop.index, self.tile.rows), b.add(m, -self.tile.rows))
            source = scaled(b, x, row, strides[0], self.source.size)
            goal = scaled(b, to, subtract(b, loop.index, i0), self.each, 1)
            if self.turned:
                self._copy_steps(b, source, goal, counts, strides[1], subtract(b, m, row))
            else:
                self._copy_rows(b, source, goal, counts, strides[0])

    def _copy_runs(
        self, x: Reg, to: Reg, rows: tuple[Reg, Reg, Reg], steps: Reg, strides: tuple[Reg, Reg]
    ) -> None:
        """Copies a few steps of k of all tiles at a time: long runs of x, short ones of panels."""
        b, (i0, i1, m), row_stride = self.b, rows, strides[0]
        whole = b.binary("and", steps, integer(-RUNS))
        room = b.add(m, -self.tile.lanes)
        fit = smaller(b, i1, b.add(divide(b, room, integer(self.tile.rows))[0], 1))
        fit = larger(b, fit, i0)
        for k0, k1, runs in ((integer(0), whole, RUNS), (whole, steps, 1)):
            with b.loop(k0, k1, runs) as chunk:
                for first, last, copy in (
                    (i0, fit, self._copy_wide), (fit, i1, self._copy_narrow),
                ):  # fmt: skip
                    with b.loop(first, last) as loop:
                        row = b.mul(loop.index, self.tile.rows)
                        row = smaller(b, row, b.add(m, -self.tile.rows))
                        source = scaled(b, x, row, row_stride, self.source.size)
                        goal = scaled(b, to, subtract(b, loop.index, i0), self.each, 1)
                        self._copy_together(copy, (source, goal), chunk.index, runs, strides[1])

    def _copy_together(
        self, copy: Callable[..., None], at: tuple[Reg, Reg], k: Reg, runs: int, step: Reg
    ) -> None:
        """Copies runs of one tile at a time: more are too short for hardware prefetching."""
        b = self.b
        for run in range(runs):
            place = scaled(b, at[0], b.add(k, runs + run), step, self.source.size)
            prefetch(b, place, 2)
        for run in range(runs):
            copy(b, *at, b.add(k, run), step, step)

    def _copy_rows(
        self, b: Builder, source: Reg, to: Reg, counts: tuple[Reg, Reg], row: Reg
    ) -> None:
        steps, elements = counts
        with b.loop(0, self.tile.rows) as loop:
            start = scaled(b, source, loop.index, row, self.source.size)
            goal = scaled(b, to, loop.index, self.pitch, 1)
            if self.odd:
                last = scaled(b, goal, b.add(steps, -1), 1, self.tile.dtype.size)
                b.store(integer(0, "i32"), last, 4)
                copy_run(b, self.target, start, goal, elements, (bfloat16, bfloat16))
            else:
                copy_run(b, self.target, start, goal, steps, (self.source, self.tile.dtype))

    def _copy_steps(
        self, b: Builder, source: Reg, to: Reg, counts: tuple[Reg, Reg], step: Reg, room: Reg
    ) -> None:
        """Copies runs for an odd k: the last element is alone in its pair."""
        wide = b.compare("icmp sge", room, integer(self.tile.lanes))
        narrow = b.compare("icmp slt", room, integer(self.tile.lanes))
        for which, copy in ((wide, self._copy_wide), (narrow, self._copy_narrow)):
            with b.when(which):
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
    """Code that packs one panel of y.

    `step` and `column` are elements between steps of k and columns; `narrow` means that y has fewer
    columns than the tile, which are then read with a mask, or the last one repeatedly.
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
        """Copies `steps` runs from `y`, which points at the panel's first element, to `to`.

        `elements` counts those along k in the steps, for an odd k.
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
        """A mask of what exists along k from step `k` on: steps, or elements of a pair."""
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
        """Transposes `lanes` steps of every column; `mask` says which steps exist."""
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
        """A vector of contiguous elements along k."""
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

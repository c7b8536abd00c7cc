"""Packs weights into panels, in the order in which the tiles read them.

A panel holds, for one group and one tile's columns, `[tap, depth, columns]`: taps in the order of
ascending source positions within each phase, columns padded with zeros. The panels are contiguous,
so they stay in L2, where the weights themselves, with a power-of-two stride, would fall into a few
cache sets; and the input gradient needs them transposed anyway.

One kernel packs the weights of many layers: extents are arguments of the launch.
"""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass

from weft.codegen.builder import Reg, integer, kernel_builder
from weft.codegen.chunk import items_of
from weft.codegen.contraction.emit import divide, read, subtract
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.contraction.transpose import transpose
from weft.codegen.convolution.geometry import Correlation
from weft.codegen.convolution.piece import look_up
from weft.codegen.microkernel import Tile, first_lanes
from weft.ir.dtype import DType
from weft.ir.extent import largest, multiple
from weft.ir.node import Value
from weft.passes.launch import Kernel, Launch, Scratch

CHUNK = 64 * 1024
"""Minimum bytes of packed weights in a chunk: some 5 us."""


def launch_packing(problem: Correlation, tile: Tile, weights: Value) -> tuple[Launch, Scratch]:
    """The launch that packs `weights`, and the layout of the panels."""
    panels = ceil_div(problem.columns, tile.columns)
    items = problem.groups * panels * problem.packed_taps
    item_bytes = problem.depth * tile.columns * tile.dtype.size
    share = largest(1, ceil_div(CHUNK, largest(1, item_bytes)))
    scratch = Scratch(largest(items * item_bytes, 64))
    name = f"pack_{problem.label}{'_turned' * problem.turned}"
    whole = problem.columns % tile.columns == 0
    square = multiple(problem.depth, tile.lanes)
    kind = _Kind(tile, problem.dtype, problem.turned, whole, square, _taps(problem))
    numbers = (
        items, share, problem.packed_taps, panels, problem.depth, problem.columns, problem.groups
    )  # fmt: skip
    launch = Launch(
        Kernel(name, _ir(kind)), (weights, scratch, *numbers), (1,), ceil_div(items, share),
        bytes=2.0 * items * item_bytes,
    )  # fmt: skip
    return launch, scratch


def _taps(problem: Correlation) -> tuple[int, ...]:
    """The number of each tap in the weights, in packed order; nothing if the orders are equal."""
    orders = [axis.order for axis in problem.axes]
    if all(order == tuple(range(taps)) for order, taps in zip(orders, problem.taps, strict=True)):
        return ()
    _, height, width = problem.taps
    return tuple(
        [((z * height) + y) * width + x for z in orders[0] for y in orders[1] for x in orders[2]]
    )


@dataclass(frozen=True)
class _Kind:
    """What distinguishes kernels."""

    tile: Tile
    dtype: DType  # of the weights
    turned: bool
    whole: bool  # no panel needs column padding
    square: bool  # whole squares of steps
    taps: tuple[int, ...]


@functools.lru_cache(maxsize=64)
def _ir(kind: _Kind) -> str:
    return _Packing(kind).ir()


class _Packing:
    def __init__(self, kind: _Kind) -> None:
        self.kind = kind
        self.tile = kind.tile
        self.b = kernel_builder()

    def ir(self) -> str:
        b = self.b
        source, to = b.argument(0), b.argument(1)
        items, share, self.taps, self.panels, self.depth, self.columns, groups = (
            b.argument(2 + i, "i64") for i in range(7)
        )
        self.channels, self.width = b.mul(groups, self.depth), b.mul(groups, self.columns)
        item_bytes = b.mul(self.depth, self.tile.columns * self.tile.dtype.size)
        with items_of(b, items, share) as item:
            self._item(source, b.offset(to, b.mul(item, item_bytes)), item)
        return b.module()

    def _item(self, source: Reg, to: Reg, index: Reg) -> None:
        """One tap of one panel: depth x columns."""
        b = self.b
        rest, tap = divide(b, index, self.taps)
        group, panel = divide(b, rest, self.panels)
        if self.kind.taps:
            (tap,) = look_up(b, "taps", [(t,) for t in self.kind.taps], tap)
        column = b.mul(panel, self.tile.columns)
        room = subtract(b, self.columns, column)
        if self.kind.turned:
            row = b.add(b.mul(tap, self.columns), column)
            place = b.add(b.mul(row, self.channels), b.mul(group, self.depth))
            self._turn(self._element(source, place), to, room)
        else:
            row = b.mul(tap, self.depth)
            start = b.add(b.mul(group, self.columns), column)
            place = b.add(b.mul(row, self.width), start)
            self._copy(self._element(source, place), to, room)

    def _element(self, pointer: Reg, index: Reg) -> Reg:
        return self.b.offset(pointer, self.b.mul(index, self.kind.dtype.size))

    def _masks(self, room: Reg) -> list[Reg | None]:
        lanes = self.tile.lanes
        if self.kind.whole:
            return [None] * self.tile.vectors
        return [
            first_lanes(self.b, self.b.add(room, -v * lanes), lanes)
            for v in range(self.tile.vectors)
        ]

    def _copy(self, source: Reg, to: Reg, room: Reg) -> None:
        b, dtype, tile = self.b, self.kind.dtype, self.tile
        masks = self._masks(room)
        with b.loop(0, self.depth) as loop:
            row = self._element(source, b.mul(loop.index, self.width))
            goal = b.offset(to, b.mul(loop.index, tile.columns * tile.dtype.size))
            for v, mask in enumerate(masks):
                place = b.offset(row, v * tile.lanes * dtype.size)
                value = read(b, place, tile.lanes, dtype, tile.dtype, mask)
                b.store(value, b.offset(goal, v * tile.lanes * tile.dtype.size), tile.dtype.size)

    def _turn(self, source: Reg, to: Reg, room: Reg) -> None:
        """Squares of `lanes` columns by `lanes` steps, transposed in registers."""
        b, tile = self.b, self.tile
        lanes, size = tile.lanes, tile.dtype.size
        with b.loop(0, self.depth, lanes) as k, b.loop(0, tile.columns, lanes) as c:
            corner = self._element(source, b.add(b.mul(c.index, self.channels), k.index))
            goal = b.offset(to, b.mul(b.add(b.mul(k.index, tile.columns), c.index), size))
            rest = subtract(b, self.depth, k.index)
            steps = None if self.kind.square else first_lanes(b, rest, lanes)
            left = subtract(b, room, c.index)
            rows = [self._row(corner, i, left, steps) for i in range(lanes)]
            for i, value in enumerate(transpose(b, rows, lanes)):
                with self._among(integer(i), rest):
                    b.store(value, b.offset(goal, i * tile.columns * size), size)

    def _row(self, corner: Reg, i: int, left: Reg, steps: Reg | None) -> Reg:
        """Some steps of a column of a square; zeros if the panel has no such column."""
        b, tile = self.b, self.tile
        if not self.kind.whole:
            steps = steps or first_lanes(b, integer(tile.lanes), tile.lanes)
            inside = b.compare("icmp slt", integer(i), left)
            steps = b.emit(steps.type, f"select {inside}, {steps}, {steps.type} zeroinitializer")
        place = self._element(corner, b.mul(self.channels, i))
        return read(b, place, tile.lanes, self.kind.dtype, tile.dtype, steps)

    def _among(self, i: Reg, rest: Reg) -> contextlib.AbstractContextManager[None]:
        """Code for step `i` of a square, if it exists."""
        if self.kind.square:
            return contextlib.nullcontext()
        return self.b.when(self.b.compare("icmp slt", i, rest))

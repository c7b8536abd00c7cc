"""Packing weights into panels, in the order in which the tiles read them.

A panel holds, for one group and one tile's columns, `[tap, depth, columns]`: taps in the order in
which source positions ascend within each phase, columns filled up with zeros. The panels are
contiguous, so that they stay in L2 where the weights themselves, at a stride of a power of two,
would meet in a few cache sets; the gradient by x needs them turned anyway.
"""

from __future__ import annotations

from weft.codegen.builder import Reg, integer, kernel_builder
from weft.codegen.contraction.emit import divide, read, smaller, subtract
from weft.codegen.contraction.plan import ceil_div
from weft.codegen.contraction.transpose import transpose
from weft.codegen.convolution.geometry import Correlation
from weft.codegen.convolution.piece import look_up
from weft.codegen.kernel import Kernel, Launch, Scratch
from weft.codegen.microkernel import Tile, first_lanes
from weft.codegen.target import Target
from weft.ir.node import Value

CHUNK = 64 * 1024
"""Bytes of packed weights in a chunk, at least: some 5 us."""


def launch_packing(
    problem: Correlation, tile: Tile, target: Target, weights: Value
) -> tuple[Launch, Scratch]:
    """The launch that packs `weights`, and where the panels lie."""
    return _Packing(problem, tile, target).launch(weights)


class _Packing:
    def __init__(self, problem: Correlation, tile: Tile, target: Target) -> None:
        self.problem = problem
        self.tile = tile
        self.target = target
        self.panels = ceil_div(problem.columns, tile.columns)
        self.items = problem.groups * self.panels * problem.packed_taps
        self.item_bytes = problem.depth * tile.columns * tile.dtype.size
        self.share = max(1, ceil_div(CHUNK, max(1, self.item_bytes)))

    def launch(self, weights: Value) -> tuple[Launch, Scratch]:
        scratch = Scratch(max(self.items * self.item_bytes, 64))
        problem = self.problem
        name = f"pack_{problem.label}{'_turned' * problem.turned}"
        chunks = ceil_div(self.items, self.share)
        moved = 2.0 * self.items * self.item_bytes
        launch = Launch(Kernel(name, self._ir()), (weights, scratch), (1,), chunks, bytes=moved)
        return launch, scratch

    def _ir(self) -> str:
        b = self.b = kernel_builder()
        source, to = b.argument(0), b.argument(1)
        first = b.mul(b.params[1], self.share)
        last = smaller(b, b.mul(b.params[2], self.share), integer(self.items))
        with b.loop(first, last) as loop:
            self._item(source, b.offset(to, b.mul(loop.index, self.item_bytes)), loop.index)
        return b.module()

    def _item(self, source: Reg, to: Reg, index: Reg) -> None:
        """One tap of one panel: depth x columns."""
        b, problem = self.b, self.problem
        rest, at = divide(b, index, integer(problem.packed_taps))
        group, panel = divide(b, rest, integer(self.panels))
        tap = self._tap(at)
        column = b.mul(panel, self.tile.columns)
        room = subtract(b, integer(problem.columns), column)
        channels, columns = problem.groups * problem.depth, problem.groups * problem.columns
        if problem.turned:
            row = b.add(b.mul(tap, problem.columns), column)
            place = b.add(b.mul(row, channels), b.mul(group, problem.depth))
            self._turn(self._element(source, place), to, room, channels)
        else:
            row = b.mul(tap, problem.depth)
            place = b.add(b.mul(row, columns), b.add(b.mul(group, problem.columns), column))
            self._copy(self._element(source, place), to, room, columns)

    def _tap(self, packed: Reg) -> Reg:
        """The number of a tap in the weights, from that in packed order."""
        orders = [axis.order for axis in self.problem.axes]
        if all(order == tuple(range(taps)) for order, taps in
               zip(orders, self.problem.taps, strict=True)):  # fmt: skip
            return packed
        _, height, width = self.problem.taps
        flat = [
            ((z * height) + y) * width + x for z in orders[0] for y in orders[1] for x in orders[2]
        ]
        (tap,) = look_up(self.b, "taps", [(t,) for t in flat], packed)
        return tap

    def _element(self, pointer: Reg, index: Reg) -> Reg:
        return self.b.offset(pointer, self.b.mul(index, self.problem.dtype.size))

    def _masks(self, room: Reg) -> list[Reg | None]:
        lanes = self.tile.lanes
        if self.problem.columns % self.tile.columns == 0:
            return [None] * self.tile.vectors
        return [
            first_lanes(self.b, self.b.add(room, -v * lanes), lanes)
            for v in range(self.tile.vectors)
        ]

    def _copy(self, source: Reg, to: Reg, room: Reg, pitch: int) -> None:
        b, problem, tile = self.b, self.problem, self.tile
        masks = self._masks(room)
        with b.loop(0, problem.depth) as loop:
            row = self._element(source, b.mul(loop.index, pitch))
            goal = b.offset(to, b.mul(loop.index, tile.columns * tile.dtype.size))
            for v, mask in enumerate(masks):
                place = b.offset(row, v * tile.lanes * problem.dtype.size)
                value = read(b, place, tile.lanes, problem.dtype, tile.dtype, mask)
                b.store(value, b.offset(goal, v * tile.lanes * tile.dtype.size), tile.dtype.size)

    def _turn(self, source: Reg, to: Reg, room: Reg, pitch: int) -> None:
        """Squares of `lanes` columns by `lanes` steps, turned in registers."""
        b, problem, tile = self.b, self.problem, self.tile
        lanes, size = tile.lanes, tile.dtype.size
        with b.loop(0, problem.depth, lanes) as k, b.loop(0, tile.columns, lanes) as c:
            rest = subtract(b, integer(problem.depth), k.index)
            rows: list[Reg] = []
            for i in range(lanes):
                column = b.add(c.index, i)
                inside = b.compare("icmp slt", column, room)
                some = b.emit("i64", f"select {inside}, {rest}, i64 0")
                place = b.add(b.mul(column, pitch), k.index)
                mask = first_lanes(b, some, lanes)
                rows.append(
                    read(b, self._element(source, place), lanes, problem.dtype, tile.dtype, mask)
                )
            for i, value in enumerate(transpose(b, rows, lanes)):
                with b.when(b.compare("icmp slt", integer(i), rest)):
                    at = b.add(b.mul(b.add(k.index, i), tile.columns), c.index)
                    b.store(value, b.offset(to, b.mul(at, size)), size)

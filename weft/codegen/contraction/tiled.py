"""The loops around the microkernel: see `plan` for their order and reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.codegen.builder import Reg, integer, kernel_builder
from weft.codegen.contraction.emit import divide, first, scaled, smaller, subtract, without
from weft.codegen.contraction.matrices import matrices
from weft.codegen.contraction.panel import LINE, LeftPanels, RightPanel, left_strides, right_bytes
from weft.codegen.contraction.plan import Plan, ceil_div
from weft.codegen.contraction.product import Product
from weft.codegen.contraction.sink import Plain, Sink
from weft.codegen.contraction.transpose import transpose
from weft.codegen.kernel import Argument, Kernel, Launch, Scratch
from weft.codegen.microkernel import (
    Accumulators,
    Left,
    Right,
    first_lanes,
    microkernel,
    strided,
)
from weft.codegen.target import Target
from weft.ir.node import Value

UNROLLED = 150
"""Most epilogue instructions that are repeated for every vector of a tile, not looped over."""

STREAMED = 32 << 20
"""Bytes of output from which no cache keeps it until it is read: stores then skip the caches,
which saves reading the lines first (4096 x 64 x 4096: 164 -> 211 GFLOP/s on one thread)."""


@dataclass
class _Sizes:
    """Integers of one product, as constants or as registers loaded from slots."""

    m: Reg
    n: Reg
    k: Reg
    x_row: Reg
    x_step: Reg
    y_step: Reg
    y_column: Reg
    depth: Reg
    blocks: Reg
    down: Reg
    across: Reg
    tall: Reg
    wide: Reg
    items: Reg
    group: Reg


def launch_tiled(
    product: Product, plan: Plan, target: Target, operands: tuple[Value, Value], sink: Sink
) -> tuple[Launch, ...]:
    """The launches of a product by the microkernel: perhaps a copy of x, then the product."""
    if plan.swapped:
        product, operands = product.swapped(), (operands[1], operands[0])
    return _Nest(product, plan, target, sink).launches(*operands)


class _Nest:
    def __init__(self, product: Product, plan: Plan, target: Target, sink: Sink) -> None:
        self.product = product
        self.plan = plan
        self.tile = plan.tile
        self.target = target
        self.sink = sink
        down = ceil_div(product.m, self.tile.rows)
        across = ceil_div(product.n, self.tile.columns)
        self.blocks = max(1, ceil_div(product.k, plan.depth))
        self.items = product.count * ceil_div(down, plan.tall) * ceil_div(across, plan.wide)
        self.numbers = (
            product.m, product.n, product.k, product.x_row, product.x_step, product.y_step,
            product.y_column, plan.depth, self.blocks, down, across, plan.tall, plan.wide,
            self.items, plan.group,
        )  # fmt: skip
        self.y_size = 2 if product.y_woven else product.dtype.size
        self.narrow = product.n < self.tile.columns
        self.ragged = bool(product.m % self.tile.rows or product.n % self.tile.columns)
        self.tile_bytes = self.tile.rows * self.tile.columns * self.tile.dtype.size
        out_bytes = product.count * product.m * product.n * product.dtype.size
        self.streams = (
            isinstance(sink, Plain)
            and product.dtype is self.tile.dtype
            and not product.pairs
            and not product.n % self.tile.lanes
            and out_bytes >= STREAMED
        )
        lines = self.tile.columns if plan.swapped else self.tile.rows * self.tile.vectors
        self.spill_bytes = lines * self.tile.lanes * self.tile.dtype.size
        self.right_bytes = right_bytes(self.tile, plan.depth) if plan.pack_right else 0
        sums = plan.tall * plan.wide * self.tile_bytes if self.blocks > 1 else 0
        self.scratch = self.right_bytes + sums

    def launches(self, x: Value, y: Value) -> tuple[Launch, ...]:
        product, plan, sink = self.product, self.plan, self.sink
        before: tuple[Launch, ...] = ()
        args: list[Argument] = [x, y]
        writes: list[int] = []
        if plan.pack_left:
            own = 1 if product.pairs else max(1, _elements(x) // max(1, product.m * product.k))
            panels = LeftPanels(self.tile, product, self.target)
            sizes = (product.m, product.k, product.x_row, product.x_step, plan.depth)
            first, copied = panels.launch(x, own, sizes)
            before, args[0] = (first,), copied
        if self.scratch:
            writes.append(len(args))
            args.append(Scratch(self.scratch, per_thread=True))
            if not plan.fixed:
                args.append(self.scratch)
        if not plan.fixed:
            args.extend(self.numbers)
        at = len(args)
        writes.extend(at + i for i in sink.writes)
        inplace = tuple((at + i, at + j) for i, j in sink.inplace)
        kernel = Kernel(f"matmul_{product.label}", self._ir())
        return (*before, Launch(
            kernel, (*args, *sink.values), tuple(writes), ceil_div(self.items, plan.group),
            inplace, product.flops, product.bytes,
        ))  # fmt: skip

    def _ir(self) -> str:
        b = self.b = kernel_builder()
        self.x, self.y = b.argument(0), b.argument(1)
        slot = 2
        if self.scratch:
            size = integer(self.scratch)
            base = b.argument(slot)
            slot += 1
            if not self.plan.fixed:
                size = b.argument(slot, "i64")
                slot += 1
            self.own = b.offset(base, b.mul(b.params[3], size))
        if self.plan.fixed:
            self.sizes = _Sizes(*(integer(number) for number in self.numbers))
        else:
            count = len(self.numbers)
            self.sizes = _Sizes(*(b.argument(slot + i, "i64") for i in range(count)))
            slot += count
        self.spill = b.emit("ptr", f"alloca [{self.spill_bytes} x i8], align 64")
        self.zero = b.emit("ptr", f"alloca [{self.tile_bytes} x i8], align 64")
        if self.blocks > 1:
            self._clear(self.zero)
        self.sink.bind(b, slot)
        start = b.mul(b.params[1], self.sizes.group)
        last = smaller(b, b.mul(b.params[2], self.sizes.group), self.sizes.items)
        with b.loop(start, last) as loop:
            self._item(loop.index)
        if self.streams:
            b.line("fence seq_cst")  # streamed stores are not ordered with what follows
        return b.module()

    def _clear(self, pointer: Reg) -> None:
        tile, step = self.tile, self.tile.lanes * self.tile.dtype.size
        with self.b.loop(0, self.tile_bytes, step) as loop:
            self.b.store(Reg(tile.type, "zeroinitializer"), self.b.offset(pointer, loop.index), 8)

    def _item(self, item: Reg) -> None:
        """One block of the output: all blocks of k, panels of y, tiles of x."""
        b, s = self.b, self.sizes
        rest, right = divide(b, item, self._parts(s.across, s.wide))
        matrix, left = divide(b, rest, self._parts(s.down, s.tall))
        if self.product.count == 1:
            matrix = integer(0)
        x_matrix, y_matrix = matrices(b, self.product, matrix)
        self.matrix, self.base_row = matrix, b.mul(matrix, s.m)
        i0, j0 = b.mul(left, s.tall), b.mul(right, s.wide)
        i1 = smaller(b, b.add(i0, s.tall), s.down)
        j1 = smaller(b, b.add(j0, s.wide), s.across)
        size = self.product.dtype.size
        y = scaled(b, self.y, y_matrix, b.mul(s.k, s.n), size)
        with b.loop(0, s.blocks, at_least_once=True) as block:
            k0 = b.mul(block.index, s.depth) if self.blocks > 1 else integer(0)
            steps = smaller(b, s.depth, subtract(b, s.k, k0)) if self.blocks > 1 else s.k
            y_block = scaled(b, y, k0, s.y_step, self.y_size)
            with b.loop(j0, j1, at_least_once=True) as across:
                right_operand = self._right(y_block, across.index, steps)
                ahead = None
                if self.plan.pack_right:
                    panel = self._next_panel(y, (k0, steps), (across.index, j0, j1))
                    runs = integer(self.tile.columns) if self.product.y_transposed else steps
                    ahead = panel, self._parts(runs, subtract(b, i1, i0))
                with b.loop(i0, i1, at_least_once=True) as down:
                    if ahead is not None:
                        self._prefetch(*ahead, subtract(b, down.index, i0))
                    tile_row = smaller(
                        b, b.mul(down.index, self.tile.rows), b.add(s.m, -self.tile.rows)
                    )
                    left_operand = self._left(x_matrix, block.index, down.index, tile_row, k0)
                    place = b.add(
                        b.mul(subtract(b, down.index, i0), s.wide), subtract(b, across.index, j0)
                    )
                    self._tile(
                        left_operand, right_operand, steps,
                        (block.index, down.index, across.index, place),
                    )  # fmt: skip

    def _next_panel(self, y: Reg, ks: tuple[Reg, Reg], js: tuple[Reg, Reg, Reg]) -> Reg:
        """Where the panel of y begins that this thread copies after panel j of this block."""
        b, s = self.b, self.sizes
        (k0, steps), (j, j0, j1) = ks, js
        more = b.compare("icmp slt", b.add(j, 1), j1)
        next_j = b.emit("i64", f"select {more}, {b.add(j, 1)}, {j0}")
        next_k = b.emit("i64", f"select {more}, {k0}, {b.add(k0, steps)}")
        y = scaled(b, y, next_k, s.y_step, self.y_size)
        return scaled(b, y, b.mul(next_j, self.tile.columns), s.y_column, self.y_size)

    def _prefetch(self, panel: Reg, count: Reg, turn: Reg) -> None:
        """Ask for the next `count` runs of a panel: a copy alone would wait for memory."""
        b, s, size = self.b, self.sizes, self.y_size
        turned = self.product.y_transposed
        stride, run = (s.y_column, s.depth) if turned else (s.y_step, integer(self.tile.columns))
        with b.loop(0, count) as loop:
            line = scaled(b, panel, b.add(b.mul(turn, count), loop.index), stride, size)
            with b.loop(0, b.mul(run, size), LINE) as inner:
                place = b.offset(line, inner.index)
                args = (place, integer(0, "i32"), integer(2, "i32"), integer(1, "i32"))
                b.call("void", "llvm.prefetch.p0", args)

    def _parts(self, whole: Reg, part: Reg) -> Reg:
        return divide(self.b, self.b.add(whole, self.b.add(part, -1)), part)[0]

    def _right(self, y: Reg, j: Reg, steps: Reg) -> Right:
        """Panel j of y: in its place, or copied."""
        b, s, tile = self.b, self.sizes, self.tile
        size = self.product.dtype.size
        start = b.mul(j, tile.columns)
        if not self.narrow:
            start = smaller(b, start, b.add(s.n, -tile.columns))
        y = scaled(b, y, start, s.y_column, self.y_size)
        if self.plan.pack_right:
            panel = RightPanel(b, tile, self.product, self.narrow, self.target)
            panel.copy(y, self.own, steps, (s.y_step, s.y_column), s.n)
            return Right(self.own, tile.columns * tile.dtype.size)
        masks = tuple(
            first_lanes(b, b.add(s.n, -v * tile.lanes), tile.lanes)
            if self.narrow and self.product.n < (v + 1) * tile.lanes
            else None
            for v in range(tile.vectors)
        )
        return Right(y, _number(b.mul(s.y_step, size)), masks)

    def _left(self, matrix: Reg, block: Reg, i: Reg, row: Reg, k0: Reg) -> Left:
        """Tile i of x: in its place, or its panel."""
        b, s, tile, size = self.b, self.sizes, self.tile, self.product.dtype.size
        if self.plan.pack_left:
            stride, step, panel_bytes = left_strides(tile, self.product.x_transposed)
            panel = b.add(b.mul(b.add(b.mul(matrix, s.blocks), block), s.down), i)
            base = scaled(b, self.x, panel, panel_bytes, 1)
            return strided(b, base, stride, tile.rows, step)
        base = scaled(b, self.x, matrix, b.mul(s.m, s.k), size)
        base = scaled(b, scaled(b, base, row, s.x_row, size), k0, s.x_step, size)
        stride, step = _number(b.mul(s.x_row, size)), _number(b.mul(s.x_step, size))
        return strided(b, base, stride, tile.rows, step)

    def _tile(self, left: Left, right: Right, steps: Reg, at: tuple[Reg, Reg, Reg, Reg]) -> None:
        b, s = self.b, self.sizes
        block, i, j, place = at
        start: Accumulators | None = None
        if self.blocks > 1:
            mine = scaled(b, b.offset(self.own, self.right_bytes), place, self.tile_bytes, 1)
            begins = b.compare("icmp eq", block, integer(0))
            start = self._load_tile(b.emit("ptr", f"select {begins}, {self.zero}, {mine}"))
        sums = microkernel(b, self.tile, left, right, _number(steps), start)
        if self.blocks == 1:
            self._finish(sums, i, j)
            return
        final = b.compare("icmp eq", block, b.add(s.blocks, -1))
        done, more, after = b.label("done"), b.label("more"), b.label("after")
        b.branch(final, done, more)
        b.start(more)
        self._store_tile(sums, mine)  # pyright: ignore[reportPossiblyUnboundVariable]
        b.jump(after)
        b.start(done)
        self._finish(sums, i, j)
        b.jump(after)
        b.start(after)

    def _load_tile(self, pointer: Reg) -> Accumulators:
        tile, size = self.tile, self.tile.lanes * self.tile.dtype.size
        return [
            [
                self.b.load(tile.type, self.b.offset(pointer, (r * tile.vectors + v) * size), 8)
                for v in range(tile.vectors)
            ]
            for r in range(tile.rows)
        ]

    def _store_tile(self, sums: Accumulators, pointer: Reg) -> None:
        size = self.tile.lanes * self.tile.dtype.size
        for index, value in enumerate(value for row in sums for value in row):
            self.b.store(value, self.b.offset(pointer, index * size), 8)

    def _finish(self, sums: Accumulators, i: Reg, j: Reg) -> None:
        """Give the finished sums of tile (i, j) to the sink, those inside the output."""
        b, s, tile = self.b, self.sizes, self.tile
        if self.plan.swapped:
            self._store_swapped(sums, j)
            return
        row, column = b.mul(i, tile.rows), b.mul(j, tile.columns)
        if not self.ragged:
            self._store_whole(sums, row, column)
            return
        fits = b.binary(
            "and",
            b.compare("icmp sle", b.add(row, tile.rows), s.m),
            b.compare("icmp sle", b.add(column, tile.columns), s.n),
        )
        whole, part, after = b.label("whole"), b.label("part"), b.label("after")
        b.branch(fits, whole, part)
        b.start(whole)
        self._store_whole(sums, row, column)
        b.jump(after)
        b.start(part)
        self._store_edge(sums, row, column)
        b.jump(after)
        b.start(after)

    def _store_whole(self, sums: Accumulators, row: Reg, column: Reg) -> None:
        """A tile that lies inside the output: row by row, in a loop if there is much to do."""
        b, tile = self.b, self.tile
        if self.sink.cost * tile.rows * tile.vectors > UNROLLED:
            self._store_tile(sums, self.spill)
            with b.loop(0, tile.rows) as loop:
                self._store_line(loop.index, b.add(row, loop.index), column, [None] * tile.vectors)
            return
        if self.streams:
            self._store_streaming(sums, row, column)
            return
        self.sink.reset()
        for r, values in enumerate(sums):
            self._store_row(values, b.add(row, r), column, [None] * tile.vectors)

    def _store_streaming(self, sums: Accumulators, row: Reg, column: Reg) -> None:
        b, sink, lanes = self.b, self.sink, self.tile.lanes
        assert isinstance(sink, Plain)
        past, through, after = b.label("past"), b.label("through"), b.label("after")
        b.branch(sink.aligned(), past, through)
        for label, store in ((past, sink.stream), (through, self._store_cached)):
            b.start(label)
            for r, values in enumerate(sums):
                line = b.add(b.add(self.base_row, row), r)
                for v, value in enumerate(values):
                    store(value, (line, b.add(column, v * lanes), self.sizes.n))
            b.jump(after)
        b.start(after)

    def _store_cached(self, value: Reg, at: tuple[Reg, Reg, Reg]) -> None:
        self.sink.store(value, at, self.tile.lanes, None)

    def _store_edge(self, sums: Accumulators, row: Reg, column: Reg) -> None:
        """A tile at the edge: one that begins early skips what its neighbour stores."""
        b, s, tile = self.b, self.sizes, self.tile
        self._store_tile(sums, self.spill)
        row0 = smaller(b, row, b.add(s.m, -tile.rows))
        column0 = column if self.narrow else smaller(b, column, b.add(s.n, -tile.columns))
        masks: list[Reg | None] = []
        for v in range(tile.vectors):
            shift = -v * tile.lanes
            skipped = first_lanes(b, b.add(subtract(b, column, column0), shift), tile.lanes)
            inside = first_lanes(b, b.add(subtract(b, s.n, column0), shift), tile.lanes)
            masks.append(without(b, inside, skipped))
        with b.loop(subtract(b, row, row0), tile.rows, at_least_once=True) as loop:
            self._store_line(loop.index, b.add(row0, loop.index), column0, masks)

    def _store_line(self, index: Reg, row: Reg, column: Reg, masks: Sequence[Reg | None]) -> None:
        """Store line `index` of the spilled tile, inside a loop over its lines."""
        b, tile = self.b, self.tile
        size = tile.lanes * tile.dtype.size
        line = scaled(b, self.spill, index, tile.vectors * size, 1)
        values = [b.load(tile.type, b.offset(line, v * size), 8) for v in range(tile.vectors)]
        self.sink.reset()
        self._store_row(values, row, column, masks)

    def _store_row(
        self, values: Sequence[Reg], row: Reg, column: Reg, masks: Sequence[Reg | None]
    ) -> None:
        b, lanes = self.b, self.tile.lanes
        for v, (value, mask) in enumerate(zip(values, masks, strict=True)):
            at = (b.add(self.base_row, row), b.add(column, v * lanes), self.sizes.n)
            if self.product.n == 1:
                self.sink.store(first(b, value), at, 1, None)
            else:
                self.sink.store(value, at, lanes, mask)

    def _store_swapped(self, sums: Accumulators, j: Reg) -> None:
        """Columns of the tile are rows of the output: transpose, then store them one by one."""
        b, s, tile = self.b, self.sizes, self.tile
        lanes, size = tile.lanes, tile.lanes * tile.dtype.size
        column = b.mul(j, tile.columns)
        column0 = smaller(b, column, b.add(s.n, -tile.columns))
        if tile.rows == 1:
            self._store_column(sums[0], column, column0)
            return
        padding = [Reg(tile.type, "poison")] * (lanes - tile.rows)
        mask = first_lanes(b, s.m, lanes) if tile.rows < lanes else None
        row = b.add(b.mul(self.matrix, s.n), column0)
        lines: list[Reg] = []
        for v in range(tile.vectors):
            lines += transpose(b, [row[v] for row in sums] + padding, lanes)
        if not self.ragged and self.sink.cost * len(lines) <= UNROLLED:
            self.sink.reset()
            for r, line in enumerate(lines):
                self.sink.store(line, (b.add(row, r), integer(0), s.m), lanes, mask)
            return
        for r, line in enumerate(lines):
            b.store(line, b.offset(self.spill, r * size), 8)
        with b.loop(subtract(b, column, column0), tile.columns, at_least_once=True) as loop:
            line = b.load(tile.type, scaled(b, self.spill, loop.index, size, 1), 8)
            self.sink.reset()
            self.sink.store(line, (b.add(row, loop.index), integer(0), s.m), lanes, mask)

    def _store_column(self, sums: Sequence[Reg], column: Reg, column0: Reg) -> None:
        """The output's one column: the tile's vectors as they are, but what a neighbour stores."""
        b, s, lanes = self.b, self.sizes, self.tile.lanes
        skipped = subtract(b, column, column0)
        everything = Reg(f"<{lanes} x i1>", "splat (i1 true)")
        self.sink.reset()
        for v, value in enumerate(sums):
            mask = None
            if self.ragged:
                mask = without(b, everything, first_lanes(b, b.add(skipped, -v * lanes), lanes))
            row = b.add(b.add(b.mul(self.matrix, s.n), column0), v * lanes)
            self.sink.store(value, (row, integer(0), s.m), lanes, mask)


def _number(value: Reg) -> Reg | int:
    """A constant as a Python number, for what treats the two differently."""
    return int(value.text) if value.text.lstrip("-").isdigit() else value


def _elements(value: Value) -> int:
    total = 1
    for d in value.shape or ():
        total *= d or 0
    return total

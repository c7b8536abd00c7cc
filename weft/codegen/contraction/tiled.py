"""The loops around the microkernel: see `plan` for their order and reasons."""

from __future__ import annotations

from weft.codegen.builder import Reg, integer, kernel_builder
from weft.codegen.contraction.emit import divide, fixed, prefetch, scaled, smaller, subtract
from weft.codegen.contraction.finish import Finish, Sizes, load_tile, store_tile
from weft.codegen.contraction.matrices import matrices
from weft.codegen.contraction.panel import (
    LINE,
    LeftPanels,
    RightPanel,
    left_strides,
    odd_elements,
    right_bytes,
)
from weft.codegen.contraction.plan import Plan, ceil_div
from weft.codegen.contraction.product import Product
from weft.codegen.contraction.sink import Sink
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
from weft.ir.shape import known, size


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
        self.y_size = product.y_size
        self.narrow = product.n < self.tile.columns
        self.tile_bytes = self.tile.rows * self.tile.columns * self.tile.dtype.size
        panel_bytes = min(plan.depth, product.k) * self.tile.columns * self.tile.dtype.size
        self.prefetches = plan.tall >= 4 and panel_bytes >= 8192
        self.right_bytes = right_bytes(self.tile, plan.depth) if plan.pack_right else 0
        sums = plan.tall * plan.wide * self.tile_bytes if self.blocks > 1 else 0
        self.scratch = self.right_bytes + sums

    def launches(self, x: Value, y: Value) -> tuple[Launch, ...]:
        product, plan, sink = self.product, self.plan, self.sink
        before: tuple[Launch, ...] = ()
        args: list[Argument] = [x, y]
        writes: list[int] = []
        if plan.pack_left:
            own = max(1, size(known(x.shape)) // max(1, product.m * product.depth))
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
            self.sizes = Sizes(*(integer(number) for number in self.numbers))
        else:
            count = len(self.numbers)
            self.sizes = Sizes(*(b.argument(slot + i, "i64") for i in range(count)))
            slot += count
        self.finish = Finish(b, self.product, self.plan, self.sink, self.sizes)
        self.zero = b.emit("ptr", f"alloca [{self.tile_bytes} x i8], align 64")
        if self.blocks > 1:
            self._clear(self.zero)
        self.sink.bind(b, slot)
        start = b.mul(b.params[1], self.sizes.group)
        last = smaller(b, b.mul(b.params[2], self.sizes.group), self.sizes.items)
        with b.loop(start, last) as loop:
            self._item(loop.index)
        if self.finish.streams:
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
        self.finish.matrix = matrix
        i0, j0 = b.mul(left, s.tall), b.mul(right, s.wide)
        i1 = smaller(b, b.add(i0, s.tall), s.down)
        j1 = smaller(b, b.add(j0, s.wide), s.across)
        size = self.product.dtype.size
        if self.product.odd:
            y = scaled(b, self.y, y_matrix, b.mul(odd_elements(b, s.k), s.n), 2)
        else:
            y = scaled(b, self.y, y_matrix, b.mul(s.k, s.n), size)
        with b.loop(0, s.blocks, at_least_once=True) as block:
            k0 = b.mul(block.index, s.depth) if self.blocks > 1 else integer(0)
            steps = smaller(b, s.depth, subtract(b, s.k, k0)) if self.blocks > 1 else s.k
            elements = steps
            if self.product.odd:
                left = subtract(b, odd_elements(b, s.k), b.mul(k0, 2))
                elements = smaller(b, b.mul(steps, 2), left)
            y_block = scaled(b, y, k0, s.y_step, self.y_size)
            with b.loop(j0, j1, at_least_once=True) as across:
                right_operand = self._right(y_block, across.index, (steps, elements))
                ahead = None
                if self.prefetches:
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
        """Where the panel of y begins that this thread is likely to read after panel j."""
        b, s = self.b, self.sizes
        (k0, steps), (j, j0, j1) = ks, js
        if self.blocks == 1:
            return scaled(b, y, b.mul(b.add(j, 1), self.tile.columns), s.y_column, self.y_size)
        more = b.compare("icmp slt", b.add(j, 1), j1)
        next_j = b.emit("i64", f"select {more}, {b.add(j, 1)}, {j0}")
        next_k = b.emit("i64", f"select {more}, {k0}, {b.add(k0, steps)}")
        y = scaled(b, y, next_k, s.y_step, self.y_size)
        return scaled(b, y, b.mul(next_j, self.tile.columns), s.y_column, self.y_size)

    def _prefetch(self, panel: Reg, count: Reg, turn: Reg) -> None:
        """Ask for the next `count` runs of a panel: its first reader would wait for memory."""
        b, s, size = self.b, self.sizes, self.y_size
        stride, run = s.y_step, integer(self.tile.columns)
        if self.product.y_transposed:
            stride, run = s.y_column, b.mul(s.depth, self.product.y_step)
        with b.loop(0, count) as loop:
            line = scaled(b, panel, b.add(b.mul(turn, count), loop.index), stride, size)
            with b.loop(0, b.mul(run, size), LINE) as inner:
                place = b.offset(line, inner.index)
                prefetch(b, place, 2)
                if self.product.y_woven:  # a step is two runs
                    prefetch(b, b.offset(place, stride), 2)

    def _parts(self, whole: Reg, part: Reg) -> Reg:
        return divide(self.b, self.b.add(whole, self.b.add(part, -1)), part)[0]

    def _right(self, y: Reg, j: Reg, counts: tuple[Reg, Reg]) -> Right:
        """Panel j of y: in its place, or copied."""
        b, s, tile = self.b, self.sizes, self.tile
        size = self.product.dtype.size
        start = b.mul(j, tile.columns)
        if not self.narrow:
            start = smaller(b, start, b.add(s.n, -tile.columns))
        y = scaled(b, y, start, s.y_column, self.y_size)
        if self.plan.pack_right:
            panel = RightPanel(b, tile, self.product, self.narrow, self.target)
            panel.copy(y, self.own, counts[0], (s.y_step, s.y_column), s.n, counts[1])
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
        self.finish.expect(i, j)
        if self.blocks > 1:
            mine = scaled(b, b.offset(self.own, self.right_bytes), place, self.tile_bytes, 1)
            begins = b.compare("icmp eq", block, integer(0))
            start = load_tile(b, self.tile, b.emit("ptr", f"select {begins}, {self.zero}, {mine}"))
        sums = microkernel(b, self.tile, left, right, _number(steps), start)
        if self.blocks == 1:
            self.finish.tile_at(sums, i, j)
            return
        final = b.compare("icmp eq", block, b.add(s.blocks, -1))
        done, more, after = b.label("done"), b.label("more"), b.label("after")
        b.branch(final, done, more)
        b.start(more)
        store_tile(b, self.tile, sums, mine)  # pyright: ignore[reportPossiblyUnboundVariable]
        b.jump(after)
        b.start(done)
        self.finish.tile_at(sums, i, j)
        b.jump(after)
        b.start(after)


def _number(value: Reg) -> Reg | int:
    """A constant as a Python number, for what treats the two differently."""
    number = fixed(value)
    return value if number is None else number

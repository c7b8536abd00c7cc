"""The loops around the microkernel: see `plan` for their order and reasons."""

from __future__ import annotations

from dataclasses import dataclass

from weft.codegen.builder import Reg, integer, kernel_builder
from weft.codegen.chunk import items_of
from weft.codegen.contraction.blocks import blocks_of
from weft.codegen.contraction.emit import divide, fixed, larger, scaled, smaller, subtract
from weft.codegen.contraction.finish import Finish, Sizes, load_tile, store_tile
from weft.codegen.contraction.matrices import matrices, offsets
from weft.codegen.contraction.panel import (
    LeftPanels,
    RightPanel,
    left_strides,
    odd_elements,
    right_bytes,
)
from weft.codegen.contraction.plan import DISTANCE, Plan
from weft.codegen.contraction.product import Product
from weft.codegen.contraction.sink import Sink, launch_into
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.contraction.whole import AllLeftPanels, RightPanels, panel_bytes
from weft.codegen.microkernel import (
    UNROLL,
    Accumulators,
    Ahead,
    Left,
    Right,
    first_lanes,
    microkernel,
    prefetch,
    strided,
)
from weft.codegen.target import Target
from weft.host.memory import LINE
from weft.ir.extent import assume, largest, same
from weft.ir.node import Value
from weft.ir.shape import known, size
from weft.passes.launch import Argument, Kernel, Launch, Scratch


def launch_tiled(
    product: Product, plan: Plan, target: Target, operands: tuple[Value, Value], sink: Sink
) -> tuple[Launch, ...]:
    """The launches of a matmul by the microkernel: packing if needed, then the matmul."""
    return _Nest(product, plan, target, sink).launches(*operands)


@dataclass(frozen=True)
class _Block:
    """One block of k of an item."""

    index: Reg
    rows: tuple[Reg, Reg]  # first and last tile
    columns: tuple[Reg, Reg]  # first and last panel
    numbers: tuple[Reg, Reg]  # of the matrices
    x: Reg  # the matrix, unless a launch has packed it
    y: Reg
    y_block: Reg  # its first step in the block
    k0: Reg
    counts: tuple[Reg, Reg]  # steps, elements along k


class _Nest:
    def __init__(self, product: Product, plan: Plan, target: Target, sink: Sink) -> None:
        self.product = product
        self.plan = plan
        self.tile = plan.tile
        self.target = target
        self.sink = sink
        down = ceil_div(product.m, self.tile.rows)
        across = ceil_div(product.n, self.tile.columns)
        assume(product.m >= self.tile.rows)  # the last rows of tiles start early enough
        self.blocks = blocks_of(product, plan)
        self.adds = not same(self.blocks.count, 1)  # sums passed from one block to the next
        self.room = plan.room or plan.depth
        tall = int(plan.tall)
        self.items = product.count * ceil_div(down, plan.tall) * ceil_div(across, plan.wide)
        self.numbers = (
            product.m, product.n, product.k, product.x_row, product.x_step, product.y_step,
            product.y_column, plan.depth, self.blocks.count, down, across, plan.tall, plan.wide,
            self.items, plan.group,
        )  # fmt: skip
        self.x_size, self.y_size = product.x_size, product.y_size
        self.narrow = product.n < self.tile.columns
        self.panel_bytes = panel_bytes(self.tile, plan.depth)
        self.tile_bytes = self.tile.rows * self.tile.columns * self.tile.dtype.size
        used = min(int(plan.depth), int(product.k)) * self.tile.columns * self.tile.dtype.size
        self.prefetches = tall >= 4 and used >= 8192
        own = plan.pack_right and not plan.before
        self.right_bytes = right_bytes(self.tile, plan.depth) if own else 0
        self.left_bytes = 0
        most = plan.most if plan.most[0] else (plan.tall, plan.wide)
        if plan.pack_left and not plan.left_before:
            each = left_strides(self.tile, product.x_transposed, self.room)[2]
            self.left_bytes = ceil_div(most[0] * each, LINE) * LINE
        self.sums = most[0] * most[1] * self.tile_bytes if self.adds else 0
        areas = 2 if plan.part else 1
        self.scratch = self.right_bytes + self.left_bytes + areas * self.sums

    def launches(self, x: Value, y: Value) -> tuple[Launch, ...]:
        product, plan, sink = self.product, self.plan, self.sink
        args: list[Argument] = [x, y]
        writes: list[int] = []
        copies: tuple[Launch, ...] = ()
        if plan.before:
            each = largest(1, product.depth * product.n)
            matrices = largest(1, size(known(y.shape)) // each)
            panels = RightPanels(self.tile, product, self.blocks, self.target)
            launch, args[1] = panels.launch(y, matrices)
            copies = (launch,)
        if plan.left_before:
            each = largest(1, product.depth * product.m)
            matrices = largest(1, size(known(x.shape)) // each)
            left = AllLeftPanels(self.tile, product, self.blocks, self.target)
            launch, args[0] = left.launch(x, matrices)
            copies = (*copies, launch)
        if not same(self.scratch, 0):
            writes.append(len(args))
            args.append(Scratch(self.scratch, per_thread=True))
        kernel = Kernel(f"matmul_{product.label}", self._ir())
        chunks = ceil_div(self.items, plan.group)
        last = launch_into(sink, kernel, args, writes, chunks, product.flops, product.bytes)
        return (*copies, last)

    def _ir(self) -> str:
        b = self.b = kernel_builder()
        self.x, self.y = b.argument(0), b.argument(1)
        slot = 2
        if not same(self.scratch, 0):
            self.own = b.offset(b.argument(slot), b.mul(b.params[3], self.scratch))
            slot += 1
        self.sizes = Sizes(*(integer(number) for number in self.numbers))
        self.finish = Finish(b, self.product, self.plan, self.sink, self.sizes)
        self.zero = b.emit("ptr", f"alloca [{self.tile_bytes} x i8], align 64")
        if self.adds:
            self._clear(self.zero)
        self.sink.bind(b, slot)
        with items_of(b, self.sizes.items, self.sizes.group) as item:
            self._item(item)
        if self.finish.streams:
            b.line("fence seq_cst")  # non-temporal stores are not ordered with what follows
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
        i0, i1 = self._share(left, s.down, s.tall)
        j0, j1 = self._share(right, s.across, s.wide)
        x, y = offsets(b, self.product, matrix)
        x = scaled(b, self.x, x, 1, self.product.element)
        y = scaled(b, self.y, y, 1, self.product.element)
        k = s.k
        if self.product.last:
            is_last = b.compare("icmp eq", matrix, integer(self.product.count - 1))
            k = b.emit("i64", f"select {is_last}, {integer(self.product.last)}, {k}")
        with b.loop(0, s.blocks, at_least_once=True) as block:
            k0, steps = self.blocks.at(b, block.index, k)
            if self.product.last and self.adds:  # the last matrix may have fewer blocks
                steps = larger(b, steps, 0)
            elements = steps
            if self.product.odd:
                left = subtract(b, odd_elements(b, s.k), b.mul(k0, 2))
                elements = smaller(b, b.mul(steps, 2), left)
            y_block = scaled(b, y, k0, s.y_step, self.y_size)
            if self.plan.pack_left and not self.plan.left_before:
                self._copy_left(x, (i0, i1), k0, (steps, elements))
            at = _Block(
                block.index, (i0, i1), (j0, j1), (x_matrix, y_matrix), x, y, y_block, k0,
                (steps, elements),
            )  # fmt: skip
            if self.plan.by_rows:
                self._by_rows(at)
            else:
                self._by_columns(at)

    def _by_rows(self, at: _Block) -> None:
        """All panels of y for a tile's rows, then the next rows."""
        loop = self.b.loop
        with (
            loop(*at.rows, at_least_once=True) as down,
            loop(*at.columns, at_least_once=True) as across,
        ):
            self._tile_at(at, self._panel(at, across.index), down.index, across.index)

    def _by_columns(self, at: _Block) -> None:
        """All tiles' rows for a panel of y, then the next panel."""
        b = self.b
        (i0, i1), (j0, j1) = at.rows, at.columns
        with b.loop(j0, j1, at_least_once=True) as across:
            right = self._panel(at, across.index)
            ahead = None
            if self.prefetches and not self.plan.before:
                panel = self._next_panel(at.y, (at.k0, at.counts[0]), (across.index, j0, j1))
                runs = integer(self.tile.columns) if self.product.y_transposed else at.counts[0]
                ahead = panel, self._parts(runs, subtract(b, i1, i0))
            with b.loop(i0, i1, at_least_once=True) as down:
                if ahead is not None:
                    self._prefetch(*ahead, subtract(b, down.index, i0))
                self._tile_at(at, right, down.index, across.index)

    def _panel(self, at: _Block, j: Reg) -> Right:
        """Panel j of a block of y."""
        if not self.plan.before:
            return self._right(at.y_block, j, at.counts)
        b, s = self.b, self.sizes
        number = b.add(b.mul(at.numbers[1], s.blocks), at.index)
        place = scaled(b, self.y, b.add(b.mul(number, s.across), j), self.panel_bytes, 1)
        return Right(place, self.tile.columns * self.tile.dtype.size)

    def _tile_at(self, at: _Block, right: Right, i: Reg, j: Reg) -> None:
        b, s = self.b, self.sizes
        row = smaller(b, b.mul(i, self.tile.rows), b.add(s.m, -self.tile.rows))
        turn = subtract(b, i, at.rows[0])
        left = self._left(at, turn, i, row)
        place = b.add(b.mul(subtract(b, j, at.columns[0]), s.tall), turn)
        self._tile(left, right, at.counts[0], (at.index, i, j, place), turn)

    def _next_panel(self, y: Reg, ks: tuple[Reg, Reg], js: tuple[Reg, Reg, Reg]) -> Reg:
        """The start of the panel of y that this thread is likely to read after panel j."""
        b, s = self.b, self.sizes
        (k0, steps), (j, j0, j1) = ks, js
        if not self.adds:
            return scaled(b, y, b.mul(b.add(j, 1), self.tile.columns), s.y_column, self.y_size)
        more = b.compare("icmp slt", b.add(j, 1), j1)
        next_j = b.emit("i64", f"select {more}, {b.add(j, 1)}, {j0}")
        next_k = b.emit("i64", f"select {more}, {k0}, {b.add(k0, steps)}")
        y = scaled(b, y, next_k, s.y_step, self.y_size)
        return scaled(b, y, b.mul(next_j, self.tile.columns), s.y_column, self.y_size)

    def _prefetch(self, panel: Reg, count: Reg, turn: Reg) -> None:
        """Prefetches the next `count` runs of a panel: its first reader would wait for memory."""
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

    def _share(self, n: Reg, whole: Reg, most: Reg) -> tuple[Reg, Reg]:
        """Begin and end of share `n` of `whole`; shares are equal but for one, to balance threads.

        512t x 128 x 784: shares of 7, 7, 7, 7, 7 and 2 tiles had one thread wait for 5 to 15%.
        """
        b = self.b
        parts = self._parts(whole, most)
        begin = divide(b, b.mul(n, whole), parts)[0]
        return begin, divide(b, b.mul(b.add(n, 1), whole), parts)[0]

    def _parts(self, whole: Reg, part: Reg) -> Reg:
        return divide(self.b, self.b.add(whole, self.b.add(part, -1)), part)[0]

    def _right(self, y: Reg, j: Reg, counts: tuple[Reg, Reg]) -> Right:
        """Panel j of y: in place, or packed."""
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
        span = int(self.product.k) * int(self.product.y_step) * size
        distance = DISTANCE if span > self.target.l2 else 0
        return Right(y, _number(b.mul(s.y_step, size)), masks, distance=distance)

    def _copy_left(self, x: Reg, tiles: tuple[Reg, Reg], k0: Reg, counts: tuple[Reg, Reg]) -> None:
        """Packs the item's rows of x in one block of k."""
        b, s = self.b, self.sizes
        panels = LeftPanels(b, self.tile, self.product, self.room, self.target)
        x = scaled(b, x, k0, s.x_step, self.x_size)
        to = b.offset(self.own, self.right_bytes)
        panels.copy(x, to, (*tiles, s.m), counts, (s.x_row, s.x_step))

    def _left(self, at: _Block, turn: Reg, i: Reg, row: Reg) -> Left:
        """Tile i of x, number `turn` of the item: in place, or its panel."""
        b, s, tile, size = self.b, self.sizes, self.tile, self.product.dtype.size
        k0 = at.k0
        if self.plan.pack_left:
            turned = self.product.x_transposed
            stride, step, panel_bytes = left_strides(tile, turned, self.room)
            if self.plan.left_before:
                block = b.add(b.mul(at.numbers[0], s.blocks), at.index)
                base = scaled(b, self.x, b.add(b.mul(block, s.down), i), panel_bytes, 1)
            else:
                base = scaled(b, b.offset(self.own, self.right_bytes), turn, panel_bytes, 1)
            return strided(b, base, stride, tile.rows, step)
        base = scaled(b, scaled(b, at.x, row, s.x_row, size), k0, s.x_step, size)
        stride, step = _number(b.mul(s.x_row, size)), _number(b.mul(s.x_step, size))
        return strided(b, base, stride, tile.rows, step)

    def _tile(
        self, left: Left, right: Right, steps: Reg, at: tuple[Reg, Reg, Reg, Reg], turn: Reg
    ) -> None:
        b, s = self.b, self.sizes
        block, i, j, place = at
        start: Accumulators | None = None
        mine = final = part = number = integer(0)
        ahead = self.finish.ahead(i, j)
        if self.adds:
            kept = b.offset(self.own, self.right_bytes + self.left_bytes)
            mine = scaled(b, kept, place, self.tile_bytes, 1)
            part, number = self.blocks.places(b, block) if self.plan.part else (block, block)
            begins = b.compare("icmp eq", number, integer(0))
            start = load_tile(b, self.tile, b.emit("ptr", f"select {begins}, {self.zero}, {mine}"))
            final = b.compare("icmp eq", block, b.add(s.blocks, -1))
            following = b.offset(mine, self.tile_bytes)
            ahead = [self._either(final, each, following) for each in ahead]
        if self.plan.before and self.prefetches:
            iterations = max(1, int(self.plan.depth) // UNROLL)
            lines = ceil_div(int(self.panel_bytes), LINE * int(self.plan.tall) * iterations)
            first = b.mul(turn, iterations * lines * LINE)
            pointer = b.offset(b.offset(right.pointer, self.panel_bytes), first)
            ahead = [*ahead, Ahead(pointer, lines * LINE, lines, iterations)]
        sums = microkernel(b, self.tile, left, right, _number(steps), start, ahead=ahead)
        if not self.adds:
            self.finish.tile_at(sums, i, j)
            return
        done, more, after = b.label("done"), b.label("more"), b.label("after")
        if self.plan.part:
            sums, mine = self._added(sums, (part, number), mine, after)
        b.branch(final, done, more)
        b.start(more)
        store_tile(b, self.tile, sums, mine)
        b.jump(after)
        b.start(done)
        self.finish.tile_at(sums, i, j)
        b.jump(after)
        b.start(after)

    def _added(
        self, sums: Accumulators, at: tuple[Reg, Reg], mine: Reg, after: str
    ) -> tuple[Accumulators, Reg]:
        """After the last block of a part: its sums and those before, and where to keep them.

        Other blocks keep theirs, and go on at the label `after`.
        """
        b, (part, block) = self.b, at
        ended, going = b.label("ended"), b.label("going")
        b.branch(b.compare("icmp eq", block, integer(self.blocks.each - 1)), ended, going)
        b.start(going)
        store_tile(b, self.tile, sums, mine)
        b.jump(after)
        b.start(ended)
        total, first = b.offset(mine, self.sums), b.compare("icmp eq", part, integer(0))
        before = load_tile(b, self.tile, b.emit("ptr", f"select {first}, {self.zero}, {total}"))
        added = [
            [
                b.emit(new.type, f"select {first}, {new}, {b.binary('fadd', old, new)}")
                for old, new in zip(*rows, strict=True)
            ]
            for rows in zip(before, sums, strict=True)
        ]
        return added, total

    def _either(self, final: Reg, last: Ahead, following: Reg) -> Ahead:
        """What to prefetch: lines to store to in the last block of k, else the next tile's sums."""
        b = self.b
        pointer = b.emit("ptr", f"select {final}, {last.pointer}, {following}")
        stride = last.stride if isinstance(last.stride, Reg) else integer(last.stride)
        step = b.emit("i64", f"select {final}, {stride}, {integer(last.lines * LINE)}")
        return Ahead(pointer, step, last.lines, last.times)


def _number(value: Reg) -> Reg | int:
    """A constant as a Python number, where the two are treated differently."""
    number = fixed(value)
    return value if number is None else number

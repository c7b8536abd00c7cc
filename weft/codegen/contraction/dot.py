"""Matmuls as dot products: vectors run along k, which is contiguous in x.

For outputs narrower than a vector, where vectors along the columns would be mostly padding, and
for few rows times a y with contiguous k, where a transposing copy would not pay. A tile is
`rows x columns` accumulators. Their lanes are reduced at the end by a tree that leaves the sum of
accumulator j in lane j: 33 instructions for 10 columns, after 49 x 10 multiply-adds at k = 784.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.codegen.builder import Builder, Reg, constant, integer, kernel_builder, memory_type
from weft.codegen.chunk import even_chunks
from weft.codegen.contraction.emit import divide, first, read, scaled, smaller, subtract, without
from weft.codegen.contraction.matrices import matrices
from weft.codegen.contraction.plan import chunks_of
from weft.codegen.contraction.product import Product
from weft.codegen.contraction.sink import Sink, launch_into
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.contraction.transpose import shuffle, transpose
from weft.codegen.microkernel import first_lanes, fma
from weft.codegen.target import Target
from weft.ir.extent import pinned
from weft.ir.node import Value
from weft.passes.launch import Argument, Kernel, Launch, Scratch

LEAST_DEPTH = 4
"""Vectors along k from which reducing the lanes costs less than padding would."""


def suits(product: Product, target: Target) -> bool:
    """Whether this kernel is the best one for a matmul."""
    lanes = target.lanes(product.accumulator.size)
    if product.x_step != 1 or product.k < LEAST_DEPTH * lanes or not product.dtype.is_floating:
        return False
    if product.y_step == 1:
        return product.n < lanes or product.m <= 4
    return 2 * product.n <= 3 * lanes // 2 and product.m >= 16 and not any(product.y_batch)


def launch_dot(
    product: Product, target: Target, operands: tuple[Value, Value], sink: Sink
) -> tuple[Launch, ...]:
    """The launch of a matmul by dot products."""
    return _Dot(product, target, sink).launches(*operands)


@dataclass(frozen=True)
class _Item:
    """A tile of the output: first row and column, and how many of each another tile stores."""

    row: Reg
    column: Reg
    skipped_rows: Reg
    skipped_columns: Reg


class _Dot:
    def __init__(self, product: Product, target: Target, sink: Sink) -> None:
        self.product = product
        self.target = target
        self.sink = sink
        self.dtype = product.accumulator
        self.lanes = target.lanes(self.dtype.size)
        self.type = memory_type(self.dtype, self.lanes)
        self.columns = pinned(min(product.n, self.lanes))
        most = max(1, (target.registers - 4) // self.columns)
        self.rows = pinned(min(product.m, most, 8))
        self.copied = product.y_step != 1
        self.steps = ceil_div(product.k, self.lanes)
        self.down = ceil_div(product.m, self.rows)
        self.across = ceil_div(product.n, self.columns)
        self.items = even_chunks(product.count * self.down * self.across, chunks_of(product))

    def launches(self, x: Value, y: Value) -> tuple[Launch, ...]:
        args: list[Argument] = [x, y]
        writes: list[int] = []
        if self.copied:
            writes.append(len(args))
            args.append(Scratch(self._pitch() * self.columns, per_thread=True))
        product = self.product
        kernel = Kernel(f"matmul_dot_{product.label}", self._ir(len(args)))
        return (
            launch_into(
                self.sink, kernel, args, writes, self.items.chunks, product.flops, product.bytes
            ),
        )

    def _pitch(self) -> int:
        """Bytes between columns of the copied y: whole vectors plus a spare cache line."""
        return self.steps * self.lanes * self.dtype.size + 64

    def _ir(self, slot: int) -> str:
        b = self.b = kernel_builder()
        self.x, self.y = b.argument(0), b.argument(1)
        self.spill = b.emit("ptr", f"alloca [{self.rows} x {self.type}], align 64")
        self.sink.bind(b, slot)
        if self.copied:
            size = self._pitch() * self.columns
            self.own = b.offset(b.argument(2), b.mul(b.params[3], size))
            self._copy()
        with self.items.loop(b) as item:
            self._item(item)
        return b.module()

    def _copy(self) -> None:
        """Transposes y into scratch, `lanes` steps of k at a time, zeros after the last."""
        b, lanes = self.b, self.lanes
        whole = self.product.k // lanes
        if whole:
            with b.loop(0, whole) as loop:
                self._copy_block(loop.index, lanes)
        if self.product.k % lanes:
            self._copy_block(integer(whole), self.product.k % lanes)

    def _copy_block(self, block: Reg, rows: int) -> None:
        b, product, lanes = self.b, self.product, self.lanes
        mask = first_lanes(b, integer(self.columns), lanes)
        source = scaled(b, self.y, block, lanes * product.y_step, product.dtype.size)
        vectors: list[Reg] = [Reg(self.type, "zeroinitializer")] * lanes
        for row in range(rows):
            place = b.offset(source, row * product.y_step * product.dtype.size)
            vectors[row] = read(b, place, lanes, product.dtype, self.dtype, mask)
        to = scaled(b, self.own, block, lanes, self.dtype.size)
        for j, vector in enumerate(transpose(b, vectors, lanes)[: self.columns]):
            b.store(vector, b.offset(to, j * self._pitch()), self.dtype.size)

    def _item(self, index: Reg) -> None:
        b, product = self.b, self.product
        rest, j = divide(b, index, integer(self.across))
        matrix, i = divide(b, rest, integer(self.down))
        if product.count == 1:
            matrix, i = integer(0), rest
        row = smaller(b, b.mul(i, self.rows), product.m - self.rows)
        column = smaller(b, b.mul(j, self.columns), product.n - self.columns)
        item = _Item(
            row, column,
            subtract(b, b.mul(i, self.rows), row), subtract(b, b.mul(j, self.columns), column),
        )  # fmt: skip
        x_matrix, y_matrix = matrices(b, product, matrix)
        size = product.dtype.size
        x = scaled(b, self.x, x_matrix, product.m * product.k, size)
        x = scaled(b, x, row, product.x_row, size)
        if self.copied:
            y = self.own
        else:
            y = scaled(b, self.y, y_matrix, product.k * product.n, size)
            y = scaled(b, y, column, product.y_column, size)
        sums = self._sums(x, y)
        self._finish(sums, b.mul(matrix, product.m), item)

    def _sums(self, x: Reg, y: Reg) -> list[Reg]:
        """Accumulators of a tile, row by row, before the reduction over lanes."""
        b, lanes, size = self.b, self.lanes, self.product.dtype.size
        sums = [constant(0, self.type)] * (self.rows * self.columns)
        y_size = self.dtype.size if self.copied else size
        whole, left = divmod(self.product.k, lanes)
        with b.loop(0, whole, 1, [*sums, x, y]) as loop:
            *sums, x_now, y_now = loop.carried
            loop.next = [
                *self._step(sums, x_now, y_now, None),
                b.offset(x_now, lanes * size), b.offset(y_now, lanes * y_size),
            ]  # fmt: skip
        *sums, x, y = loop.results
        if left:
            sums = self._step(sums, x, y, first_lanes(b, integer(left), lanes))
        return sums

    def _step(self, sums: list[Reg], x: Reg, y: Reg, mask: Reg | None) -> list[Reg]:
        b, product, size = self.b, self.product, self.product.dtype.size
        rows = [
            read(
                b,
                b.offset(x, r * product.x_row * size),
                self.lanes,
                product.dtype,
                self.dtype,
                mask,
            )
            for r in range(self.rows)
        ]
        following = list(sums)
        for j in range(self.columns):
            if self.copied:
                column = b.load(self.type, b.offset(y, j * self._pitch()), self.dtype.size)
            else:
                place = b.offset(y, j * product.y_column * size)
                column = read(b, place, self.lanes, product.dtype, self.dtype, mask)
            for r, row in enumerate(rows):
                at = r * self.columns + j
                following[at] = fma(b, row, column, sums[at])
        return following

    def _finish(self, sums: list[Reg], base: Reg, item: _Item) -> None:
        b, size = self.b, self.lanes * self.dtype.size
        for r in range(self.rows):
            row = sums[r * self.columns : (r + 1) * self.columns]
            b.store(add_lanes(b, row, self.lanes), b.offset(self.spill, r * size), 8)
        mask = first_lanes(b, integer(self.columns), self.lanes)
        if self.across > 1 and self.product.n % self.columns:
            before = first_lanes(b, item.skipped_columns, self.lanes)
            mask = without(b, mask, before)
        with b.loop(item.skipped_rows, self.rows, at_least_once=True) as loop:
            value = b.load(self.type, scaled(b, self.spill, loop.index, size, 1), 8)
            row = b.add(b.add(base, item.row), loop.index)
            self.sink.reset()
            at = (row, item.column, integer(self.product.n))
            if self.product.n == 1:
                self.sink.store(first(b, value), at, 1, None)
            else:
                self.sink.store(value, at, self.lanes, mask)


def add_lanes(b: Builder, vectors: list[Reg], lanes: int) -> Reg:
    """A vector whose lane i is the sum of the lanes of vector i; at most `lanes` vectors."""
    step = 1
    while step < lanes:
        low = [lane if not lane & step else lanes + lane - step for lane in range(lanes)]
        high = [lane + step if not lane & step else lanes + lane for lane in range(lanes)]
        paired: list[Reg] = []
        for i in range(0, len(vectors), 2):
            x = vectors[i]
            y = vectors[i + 1] if i + 1 < len(vectors) else Reg(x.type, "poison")
            paired.append(b.binary("fadd", shuffle(b, x, y, low), shuffle(b, x, y, high)))
        vectors = paired
        step *= 2
    return vectors[0]

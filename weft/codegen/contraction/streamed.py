"""Matmuls of a few rows with a y that is read once, at memory bandwidth.

The columns of y are contiguous along k and lie one after the other. Hardware prefetchers follow
ascending addresses and restart in each page; so y is cut into `STREAMS` equal parts, and the same
column of each is multiplied at the same time. Adjacent columns at the same time are slower: they
share pages. Weights of a 6 x 384 decoder, 42 MB, two threads of Zen 4: 6 parts 0.48 ms, 4 parts
0.51, 2 parts 0.60, one 1.20, sixteen adjacent columns 0.74; one thread 1.21, 1.38, 1.65, 2.17,
2.02. Software prefetching (`prefetch`) makes all of them slower.
"""

from __future__ import annotations

from weft.codegen.builder import Reg, constant, integer, kernel_builder, memory_type
from weft.codegen.chunk import even_chunks
from weft.codegen.contraction.dot import LEAST_DEPTH, add_lanes
from weft.codegen.contraction.emit import divide, read, scaled, smaller, subtract
from weft.codegen.contraction.matrices import matrices
from weft.codegen.contraction.product import Product
from weft.codegen.contraction.sink import Sink, launch_into
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.microkernel import first_lanes, fma
from weft.codegen.target import Target
from weft.ir.extent import largest, multiple, pinned, smallest
from weft.ir.node import Value
from weft.passes.launch import Kernel, Launch

STREAMS = 4
"""Columns at the same time: 6 give fewer items to share, and gain nothing in a decoder."""
ROWS = 4
"""Maximum rows: their sums with 4 columns fill half of 32 registers."""


def suits(product: Product, target: Target) -> bool:
    """Whether this kernel is the best one for a matmul."""
    lanes = target.lanes(product.accumulator.size)
    if product.x_step != 1 or product.y_step != 1 or not product.dtype.is_floating:
        return False
    if product.m > ROWS or product.k < LEAST_DEPTH * lanes or product.n < STREAMS * lanes:
        return False
    return product.k * product.n * product.dtype.size > 2 * target.l1


def launch_streamed(
    product: Product, target: Target, operands: tuple[Value, Value], sink: Sink
) -> tuple[Launch, ...]:
    """The launch of a matmul whose y is read in streams."""
    return (_Streamed(product, target, sink).launch(*operands),)


class _Streamed:
    """An item is `lanes` adjacent columns of every stream, and all rows."""

    def __init__(self, product: Product, target: Target, sink: Sink) -> None:
        self.product = product
        self.sink = sink
        self.dtype = product.accumulator
        self.lanes = target.lanes(self.dtype.size)
        self.type = memory_type(self.dtype, self.lanes)
        self.rows = pinned(product.m)
        self.streams = min(STREAMS, target.registers // 2 // self.rows)
        self.part = ceil_div(product.n, self.streams)  # columns of a stream
        self.across = ceil_div(self.part, self.lanes)
        # Items are 16 KB or more, mostly from memory.
        self.items = even_chunks(product.count * self.across)

    def launch(self, x: Value, y: Value) -> Launch:
        kernel = Kernel(f"matmul_streamed_{self.product.label}", self._ir())
        flops, moved = self.product.flops, self.product.bytes
        return launch_into(self.sink, kernel, (x, y), (), self.items.chunks, flops, moved)

    def _ir(self) -> str:
        b = self.b = kernel_builder()
        self.x, self.y = b.argument(0), b.argument(1)
        self.size = self.lanes * self.dtype.size
        places = self.rows * self.streams * self.lanes
        self.sums = b.emit("ptr", f"alloca [{places} x {self.type}], align 64")
        self.sink.bind(b, 2)
        with self.items.loop(b) as item:
            self._item(item)
        return b.module()

    def _item(self, index: Reg) -> None:
        b, product = self.b, self.product
        matrix, tile = divide(b, index, integer(self.across))
        if product.count == 1:
            matrix, tile = integer(0), index
        column = b.mul(tile, self.lanes)
        x_matrix, y_matrix = matrices(b, product, matrix)
        x = scaled(b, self.x, x_matrix, product.m * product.k, product.dtype.size)
        y = scaled(b, self.y, y_matrix, product.k * product.n, product.dtype.size)
        left = smaller(b, subtract(b, integer(self.part), column), self.lanes)
        with b.loop(0, left, at_least_once=True) as loop:
            at = b.add(column, loop.index)
            place = b.offset(self.sums, b.mul(loop.index, self.size))
            for i, sum_ in enumerate(self._sums(x, y, at)):
                b.store(sum_, b.offset(place, i * self.lanes * self.size), self.dtype.size)
        for row in range(self.rows):
            for stream in range(self.streams):
                self._finish(b.add(b.mul(matrix, product.m), row), row, stream, column)

    def _sums(self, x: Reg, y: Reg, column: Reg) -> list[Reg]:
        """For each row and stream, before the reduction over lanes."""
        b, product, lanes = self.b, self.product, self.lanes
        size = product.dtype.size
        columns = [
            scaled(b, y, smaller(b, b.add(column, s * self.part), product.n - 1), product.k, size)
            for s in range(self.streams)
        ]
        sums = [constant(0, self.type)] * (self.rows * self.streams)
        whole, left = product.k // lanes, product.k % lanes
        with b.loop(0, whole, 1, [*sums, integer(0)], at_least_once=True) as loop:
            *sums, at = loop.carried
            loop.next = [*self._step(sums, x, columns, at, None), b.add(at, lanes * size)]
        *sums, at = loop.results
        if multiple(product.k, lanes):
            return sums
        return self._step(sums, x, columns, at, first_lanes(b, integer(left), lanes))

    def _step(
        self, sums: list[Reg], x: Reg, columns: list[Reg], at: Reg, mask: Reg | None
    ) -> list[Reg]:
        product = self.product
        stride = product.x_row * product.dtype.size
        rows = [self._read(self.b.offset(x, row * stride), at, mask) for row in range(self.rows)]
        read_ = [self._read(column, at, mask) for column in columns]
        pairs = [(row, column) for row in rows for column in read_]
        return [fma(self.b, *pair, sum_) for pair, sum_ in zip(pairs, sums, strict=True)]

    def _read(self, base: Reg, at: Reg, mask: Reg | None) -> Reg:
        place = self.b.offset(base, at)
        return read(self.b, place, self.lanes, self.product.dtype, self.dtype, mask)

    def _finish(self, line: Reg, row: int, stream: int, column: Reg) -> None:
        """Reduces the lanes of a stream's columns, and stores them."""
        b, lanes, product = self.b, self.lanes, self.product
        first = b.offset(self.sums, (row * self.streams + stream) * lanes * self.size)
        sums = [b.load(self.type, b.offset(first, j * self.size), 8) for j in range(lanes)]
        begin = stream * self.part
        mask = None
        if not multiple(product.n, self.streams * lanes):
            end = smallest(self.part, largest(product.n - begin, 0))
            mask = first_lanes(b, subtract(b, integer(end), column), lanes)
        self.sink.reset()
        at = (line, b.add(column, begin), integer(product.n))
        self.sink.store(add_lanes(b, sums, lanes), at, lanes, mask)

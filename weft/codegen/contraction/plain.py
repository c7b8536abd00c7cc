"""Integer matmuls: a vector of columns at a time, sums wrapping as NumPy's do."""

from __future__ import annotations

from weft.codegen.builder import Builder, Reg, constant, integer, kernel_builder, memory_type
from weft.codegen.chunk import Items, even_chunks
from weft.codegen.contraction.emit import divide, scaled
from weft.codegen.contraction.matrices import offsets
from weft.codegen.contraction.plan import chunks_of
from weft.codegen.contraction.product import Product
from weft.codegen.contraction.sink import Sink, launch_into
from weft.codegen.target import Target
from weft.ir.node import Value
from weft.passes.launch import Kernel, Launch


def launch_plain(
    product: Product, target: Target, operands: tuple[Value, Value], sink: Sink
) -> tuple[Launch, ...]:
    """The launch of an integer matmul: one item is one row of the output."""
    rows = even_chunks(product.count * product.m, chunks_of(product))
    kernel = Kernel(f"matmul_{product.label}", _ir(product, target, sink, rows))
    return (launch_into(sink, kernel, operands, (), rows.chunks, product.flops, product.bytes),)


def _ir(product: Product, target: Target, sink: Sink, rows: Items) -> str:
    b = kernel_builder()
    x, y = b.argument(0), b.argument(1)
    sink.bind(b, 2)
    lanes = target.lanes(product.dtype.size) if product.y_column == 1 else 1
    with rows.loop(b) as item:
        matrix, row = divide(b, item, integer(product.m))
        before, size = offsets(b, product, matrix), product.dtype.size
        line = scaled(b, scaled(b, x, before[0], 1, size), row, product.x_row, size)
        other = scaled(b, y, before[1], 1, size)
        whole = product.n - product.n % lanes
        for start, stop, width in ((0, whole, lanes), (whole, product.n, 1)):
            if start < stop:
                with b.loop(start, stop, width) as across:
                    value = _sum(b, product, (line, other), across.index, width)
                    sink.reset()
                    at = (item, across.index, integer(product.n))
                    sink.store(value, at, width, None)
    return b.module()


def _sum(b: Builder, product: Product, at: tuple[Reg, Reg], column: Reg, lanes: int) -> Reg:
    """One row of x times `lanes` adjacent columns of y."""
    (x, y), size = at, product.dtype.size
    scalar, type_ = memory_type(product.dtype), memory_type(product.dtype, lanes)
    y = scaled(b, y, column, product.y_column, size)
    with b.loop(0, product.k, 1, [constant(0, type_)]) as loop:
        factor = b.splat(
            b.load(scalar, scaled(b, x, loop.index, product.x_step, size), size), lanes
        )
        vector = b.load(type_, scaled(b, y, loop.index, product.y_step, size), size)
        term = b.binary("mul", factor, vector)
        loop.next = [b.binary("add", loop.carried[0], term)]
    return loop.results[0]

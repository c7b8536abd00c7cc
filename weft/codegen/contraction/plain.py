"""Matmuls by loops alone: of integers, whose sums wrap as NumPy's do; and of few products.

The text of a kernel of the other kinds is ten times as long, and takes ten times as long to write
and to compile, which is worth it from some hundred products on.
"""

from __future__ import annotations

import math
from typing import Final

from weft.codegen.builder import Builder, Reg, constant, integer, kernel_builder, memory_type
from weft.codegen.chunk import Items, even_chunks
from weft.codegen.contraction.emit import divide, read, scaled
from weft.codegen.contraction.matrices import offsets
from weft.codegen.contraction.order import chains_of
from weft.codegen.contraction.plan import chunks_of
from weft.codegen.contraction.product import Product
from weft.codegen.contraction.sink import Sink, launch_into
from weft.codegen.microkernel import fma
from weft.codegen.target import Target
from weft.ir.node import Value
from weft.passes.launch import Kernel, Launch

SHORT: Final = 2048
"""Floating-point operations that take about 1 us so."""


def is_short(product: Product) -> bool:
    """Whether there are so few products; sizes that are not known yet may be larger."""
    sizes = product.count, product.m, product.n, product.k
    return all([type(n) is int for n in sizes]) and 2 * math.prod(sizes) < SHORT


def launch_plain(
    product: Product, target: Target, operands: tuple[Value, Value], sink: Sink
) -> tuple[Launch, ...]:
    """The launch: one item is one row of the output. Numbers are added in the order `few`."""
    rows = even_chunks(product.count * product.m, chunks_of(product))
    kernel = Kernel(f"matmul_{product.label}", _ir(product, target, sink, rows))
    return (launch_into(sink, kernel, operands, (), rows.chunks, product.flops, product.bytes),)


def _ir(product: Product, target: Target, sink: Sink, rows: Items) -> str:
    b = kernel_builder()
    x, y = b.argument(0), b.argument(1)
    sink.bind(b, 2)
    is_vector = product.y_column == 1 and not product.dtype.is_floating
    lanes = target.lanes(product.dtype.size) if is_vector else 1
    with rows.loop(b) as item:
        matrix, row = divide(b, item, integer(product.m))
        before, size = offsets(b, product, matrix), product.dtype.size
        line = scaled(b, scaled(b, x, before[0], 1, size), row, product.x_row, size)
        other = scaled(b, y, before[1], 1, size)
        whole = product.n - product.n % lanes
        for start, stop, width in ((0, whole, lanes), (whole, product.n, 1)):
            if start < stop:
                with b.loop(start, stop, width) as across:
                    column = scaled(b, other, across.index, product.y_column, size)
                    if product.dtype.is_floating:
                        value = _chains(b, product, (line, column), target)
                    else:
                        value = _sum(b, product, (line, column), width)
                    sink.reset()
                    at = (item, across.index, integer(product.n))
                    sink.store(value, at, width, None)
    return b.module()


def _chains(b: Builder, product: Product, at: tuple[Reg, Reg], target: Target) -> Reg:
    """One row of x times a column of y, as several sums of every so many terms."""
    wide, steps = product.accumulator, (product.x_step, product.y_step)
    chains = chains_of(target.lanes(wide.size))
    whole = product.k - product.k % chains

    def following(total: Reg, k: Reg) -> Reg:
        places = [scaled(b, at[i], k, steps[i], product.dtype.size) for i in range(2)]
        x, y = [read(b, place, 1, product.dtype, wide, None) for place in places]
        return fma(b, x, y, total)

    with b.loop(0, whole, chains, [constant(0, memory_type(wide))] * chains) as loop:
        loop.next = [following(x, b.add(loop.index, i)) for i, x in enumerate(loop.carried)]
    sums = loop.results
    for i in range(product.k - whole):
        sums[i] = following(sums[i], integer(whole + i))
    while len(sums) > 1:
        sums = [b.binary("fadd", x, y) for x, y in zip(sums[::2], sums[1::2], strict=True)]
    return sums[0]


def _sum(b: Builder, product: Product, at: tuple[Reg, Reg], lanes: int) -> Reg:
    """One row of x times `lanes` adjacent columns of y."""
    (x, y), size = at, product.dtype.size
    scalar, type_ = memory_type(product.dtype), memory_type(product.dtype, lanes)
    with b.loop(0, product.k, 1, [constant(0, type_)]) as loop:
        factor = b.splat(
            b.load(scalar, scaled(b, x, loop.index, product.x_step, size), size), lanes
        )
        vector = b.load(type_, scaled(b, y, loop.index, product.y_step, size), size)
        term = b.binary("mul", factor, vector)
        loop.next = [b.binary("add", loop.carried[0], term)]
    return loop.results[0]

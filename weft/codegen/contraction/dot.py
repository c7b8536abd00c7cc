"""Dot products: vectors run along k, which is contiguous in both operands."""

from __future__ import annotations

from weft.codegen.builder import Builder, Reg, constant, integer, kernel_builder, memory_type
from weft.codegen.chunk import even_chunks
from weft.codegen.contraction.emit import first, read, scaled
from weft.codegen.contraction.matrices import offsets
from weft.codegen.contraction.plan import chunks_of
from weft.codegen.contraction.product import Product
from weft.codegen.contraction.sink import Sink, launch_into
from weft.codegen.contraction.transpose import shuffle
from weft.codegen.microkernel import first_lanes, fma
from weft.codegen.target import Target
from weft.ir.extent import multiple
from weft.ir.node import Value
from weft.passes.launch import Kernel, Launch


def launch_dot(
    product: Product, target: Target, operands: tuple[Value, Value], sink: Sink
) -> tuple[Launch, ...]:
    """The launch of a batch of dot products; an item is one of them."""
    items = even_chunks(product.count, chunks_of(product))
    lanes = target.lanes(product.accumulator.size)
    b = kernel_builder()
    x, y = b.argument(0), b.argument(1)
    sink.bind(b, 2)
    with items.loop(b) as item:
        before = offsets(b, product, item)
        size = product.dtype.size
        at = scaled(b, x, before[0], 1, size), scaled(b, y, before[1], 1, size)
        total = first(b, add_lanes(b, [_sum(b, product, at, lanes)], lanes)[0])
        sink.reset()
        sink.store(total, (item, integer(0), integer(1)), 1, None)
    kernel = Kernel(f"matmul_dot_{product.label}", b.module())
    flops, moved = product.flops, product.bytes
    return (launch_into(sink, kernel, operands, (), items.chunks, flops, moved),)


def _sum(b: Builder, product: Product, at: tuple[Reg, Reg], lanes: int) -> Reg:
    """Lane i has the sum of the terms i, i + lanes and so on."""
    stored, wide = product.dtype, product.accumulator
    with b.loop(0, product.k // lanes, 1, [constant(0, memory_type(wide, lanes)), *at]) as loop:
        total, x, y = loop.carried
        terms = [read(b, place, lanes, stored, wide, None) for place in (x, y)]
        total = fma(b, terms[0], terms[1], total)
        loop.next = [total, *[b.offset(place, lanes * stored.size) for place in (x, y)]]
    total, x, y = loop.results
    if multiple(product.k, lanes):
        return total
    mask = first_lanes(b, integer(product.k % lanes), lanes)
    terms = [read(b, place, lanes, stored, wide, mask) for place in (x, y)]
    return fma(b, terms[0], terms[1], total)


def add_lanes(b: Builder, vectors: list[Reg], lanes: int, together: int = 0) -> list[Reg]:
    """Adds neighboring lanes, then neighbors of these, and so on.

    Args:
        vectors: any number up to `together`, or a multiple of it.
        together: lanes that are added, all if 0; a power of two.

    Returns:
        A vector for every `together` ones: lane i of its j-th block of so many lanes is the sum of
        block j of vector i.
    """
    step, together = 1, together or lanes
    while step < together:
        low = [lane if not lane & step else lanes + lane - step for lane in range(lanes)]
        high = [lane + step if not lane & step else lanes + lane for lane in range(lanes)]
        paired: list[Reg] = []
        for i in range(0, len(vectors), 2):
            x = vectors[i]
            y = vectors[i + 1] if i + 1 < len(vectors) else Reg(x.type, "poison")
            paired.append(b.binary("fadd", shuffle(b, x, y, low), shuffle(b, x, y, high)))
        vectors = paired
        step *= 2
    return vectors

"""Split-k: parts of a long k have sums of their own, which are added at the end.

A part is one matmul of a batch, so that every thread reads its own rows of both operands once, and
its sums stay in L2. Parts are equally long but the last one, and are added in order. If they are
not rows of both operands, the same sums come from one matmul (`plan.in_parts`).
"""

from __future__ import annotations

import functools
from dataclasses import replace

from weft.codegen.builder import Builder, Reg, integer, kernel_builder, memory_type
from weft.codegen.chunk import even_chunks
from weft.codegen.contraction.emit import scaled
from weft.codegen.contraction.order import in_pairs
from weft.codegen.contraction.plan import (
    ITEM_COLUMNS,
    TEAM,
    one_by_one,
)
from weft.codegen.contraction.product import Product
from weft.codegen.contraction.sink import Plain, Sink, launch_into
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.contraction.tiled import launch_tiled
from weft.codegen.target import Target
from weft.ir.extent import largest, smallest
from weft.ir.node import Value
from weft.passes.launch import Kernel, Launch, Scratch

LEAST_ROWS = 32
LEAST_COLUMNS = 64
"""Fewer are left to other kernels."""
LEAST = 3
"""The operands should fill so many times L2 (96 x 2048 x 384: 13% faster)."""
EVEN = 8
"""The steps of a part are a multiple."""
SHARE = 2
"""The parts' sums should cause so many times less memory traffic than the operands."""


def steps_of_part(product: Product, target: Target) -> int:
    """How many steps of k a part has; 0 if k is not cut. They are even, for pairs."""
    m, n, k, size = product.together, product.n, product.k, product.accumulator.size
    # All at once: for sizes that differ from run to run, this is one guard.
    spare = (
        k * (m + n) * size - LEAST * target.l2,
        target.l2 // 4 - m * n * size,
        m - LEAST_ROWS,
        n - LEAST_COLUMNS,
    )
    if any(product.y_batch) or functools.reduce(smallest, spare) < 0:
        return 0
    if in_pairs(product, target) and k % 2:
        return 0
    most = smallest(TEAM * ceil_div(ITEM_COLUMNS, n), k * (m + n) // (2 * SHARE * m * n))
    return ceil_div(ceil_div(k, largest(1, most)), EVEN) * EVEN


def rows_together(product: Product) -> bool:
    """Whether a part is rows of both operands, so that each is best read by one thread."""
    return product.x_transposed and not product.y_transposed and product.count == 1


def launch_split(
    product: Product, steps: int, target: Target, operands: tuple[Value, Value], sink: Sink
) -> tuple[Launch, ...]:
    """The launches of a split-k matmul with `steps` in a part, and of the sum over its parts."""
    m, n = product.m, product.n
    parts = ceil_div(product.k, steps)
    part = replace(
        product, k=steps, last=product.k - (parts - 1) * steps, batch=(parts,),
        x_batch=(product.x_step * steps,), y_batch=(product.y_step * steps,),
    )  # fmt: skip
    if in_pairs(product, target):
        part = part.paired()
    sums = Scratch(parts * m * n * product.accumulator.size)
    plan = one_by_one(part, target)
    plain = Plain(sums, product.accumulator)
    launches = launch_tiled(part, plan, target, operands, plain)
    return (*launches, _launch_sum(product, parts, target, sums, sink))


def _launch_sum(product: Product, parts: int, target: Target, sums: Scratch, sink: Sink) -> Launch:
    """Adds the rows of all parts and gives them to the sink."""
    rows = even_chunks(product.m, TEAM)
    b = kernel_builder()
    base = b.argument(0)
    sink.bind(b, 1)
    lanes = target.lanes(product.accumulator.size)
    whole = product.n // lanes * lanes
    with rows.loop(b) as row:
        for first, last, each in ((0, whole, lanes), (whole, product.n, 1)):
            with b.loop(integer(first), integer(last), each) as column:
                at = row, column.index, integer(product.n)
                total = _total(b, product, parts, (base, *at), each)
                sink.reset()
                sink.store(total, at, each, None)
    kernel = Kernel(f"matmul_sum_{product.label}", b.module())
    moved = float(parts * product.m * product.n * product.accumulator.size)
    return launch_into(sink, kernel, (sums,), (), rows.chunks, bytes_=moved)


def _total(
    b: Builder, product: Product, parts: int, at: tuple[Reg, Reg, Reg, Reg], lanes: int
) -> Reg:
    """A vector of the sums over the parts."""
    base, row, column, n = at
    size, type_ = product.accumulator.size, memory_type(product.accumulator, lanes)
    place = scaled(b, scaled(b, base, row, n, size), column, 1, size)
    with b.loop(1, parts, 1, [b.load(type_, place, size)]) as loop:
        other = scaled(b, place, loop.index, product.m * product.n, size)
        loop.next = [b.binary("fadd", loop.carried[0], b.load(type_, other, size))]
    return loop.results[0]

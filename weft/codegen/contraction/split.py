"""Split-k: parts of a long k have sums of their own, which are added at the end.

A part is one matmul of a batch, so that every thread reads its own rows of both operands once, and
its sums stay in L2. The same serves one row times a y in memory, which is then read in long runs.
The number of parts depends on the shapes alone, and they are added in order.
"""

from __future__ import annotations

from dataclasses import replace

from weft.codegen.builder import Builder, Reg, integer, kernel_builder, memory_type
from weft.codegen.chunk import even_chunks
from weft.codegen.contraction.emit import scaled
from weft.codegen.contraction.order import in_pairs
from weft.codegen.contraction.plan import (
    DEPTH,
    ITEM_COLUMNS,
    TEAM,
    passes_once,
    plan_of,
)
from weft.codegen.contraction.product import Product
from weft.codegen.contraction.sink import Plain, Sink, launch_into
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.contraction.tiled import launch_tiled
from weft.codegen.target import Target
from weft.ir.extent import multiple
from weft.ir.node import Value
from weft.passes.launch import Kernel, Launch, Scratch

LEAST_ROWS = 32
LEAST_COLUMNS = 64
"""Fewer are left to other kernels."""
LEAST = 3
"""The operands should fill so many times L2 (96 x 2048 x 384: 13% faster)."""
SHARE = 2
"""The parts' sums should cause so many times less memory traffic than the operands."""


def parts_of(product: Product, target: Target) -> int:
    """How many parts k is cut into; 1 if chunks of rows and columns do as well."""
    (m, n, k), size = product.planned().sizes, product.accumulator.size
    if m == product.count == 1 and passes_once(product, target):
        return _most(product.k, min(TEAM, product.k // DEPTH))
    rows_together = product.x_transposed and not product.y_transposed
    if not rows_together or product.count != 1 or m < LEAST_ROWS or n < LEAST_COLUMNS:
        return 1
    moved = k * (m + n)
    if m * n * size > target.l2 // 4 or moved * size < LEAST * target.l2:
        return 1
    most = min(TEAM * ceil_div(ITEM_COLUMNS, n), moved // (2 * SHARE * m * n))
    return _most(product.k, most)


def _most(k: int, most: int) -> int:
    """The largest divisor of `k` up to `most`."""
    return max((p for p in range(1, most + 1) if multiple(k, p)), default=1)


def launch_split(
    product: Product, parts: int, target: Target, operands: tuple[Value, Value], sink: Sink
) -> tuple[Launch, ...]:
    """The launches of a split-k matmul, and of the sum over its parts."""
    k, m, n = product.k // parts, product.m, product.n
    part = replace(product, k=k, batch=(parts,), x_batch=(m * k,), y_batch=(k * n,))
    if in_pairs(product, target):
        part = part.paired()
    sums = Scratch(parts * m * n * product.accumulator.size)
    plain = Plain(sums, product.accumulator)
    launches = launch_tiled(part, plan_of(part.planned(), target), target, operands, plain)
    return (*launches, _launch_sum(product, parts, target, sums, sink))


def _launch_sum(product: Product, parts: int, target: Target, sums: Scratch, sink: Sink) -> Launch:
    """Adds the rows of all parts and gives them to the sink."""
    rows = even_chunks(product.m, TEAM)
    b = kernel_builder()
    base = b.argument(0)
    sink.bind(b, 1)
    lanes = target.lanes(product.accumulator.size)
    whole = product.n - product.n % lanes
    with rows.loop(b) as row:
        for first, last, each in ((0, whole, lanes), (whole, product.n, 1)):
            if first == last:
                continue
            with b.loop(first, last, each) as column:
                at = row, column.index, integer(product.n)
                sink.reset()
                sink.store(_total(b, product, parts, (base, *at), each), at, each, None)
    kernel = Kernel(f"matmul_sum_{product.label}", b.module())
    return launch_into(sink, kernel, (sums,), (), rows.chunks, bytes_=float(sums.size))


def _total(
    b: Builder, product: Product, parts: int, at: tuple[Reg, Reg, Reg, Reg], lanes: int
) -> Reg:
    """A vector of the sums over the parts."""
    base, row, column, n = at
    size, type_ = product.accumulator.size, memory_type(product.accumulator, lanes)
    place = scaled(b, scaled(b, base, row, n, size), column, 1, size)
    total = b.load(type_, place, size)
    for part in range(1, parts):
        other = b.load(type_, b.offset(place, part * product.m * product.n * size), size)
        total = b.binary("fadd", total, other)
    return total

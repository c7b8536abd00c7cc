"""Mean and variance of columns, in one pass over contiguous memory."""

from __future__ import annotations

from math import prod
from typing import Final

from weft.codegen.builder import Reg, integer, kernel_builder
from weft.codegen.contraction.emit import read, smaller, subtract
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.loop.partial import Partials, partials_of
from weft.codegen.loop.reduction import sum_type
from weft.codegen.microkernel import first_lanes
from weft.codegen.target import Target
from weft.ir.extent import largest, multiple
from weft.ir.node import Value
from weft.ir.shape import known
from weft.passes.group import Group
from weft.passes.launch import Kernel, Launch

ROWS: Final = 8
"""Rows that are added up in registers."""
CHUNK: Final = 256 * 1024
"""Minimum bytes of a chunk: some 20 us."""


def column_moments(group: Group, target: Target) -> tuple[Launch, ...]:
    """The launches: statistics of every chunk of rows, then their combination."""
    (x,) = group.nodes[0].inputs
    *rows, columns = known(x.shape)
    partials = partials_of(group)
    if not columns or partials is None:
        return ()
    each = ceil_div(largest(1, CHUNK // (columns * x.dtype.size)), ROWS) * ROWS
    chunks = ceil_div(prod(rows), each)
    partials.cut(chunks)
    label = f"{x.dtype.name}_{prod(rows)}x{columns}"
    kernel = Kernel(f"column_moments_{label}", _ir(x, each, partials, target))
    moved = float(prod(rows) * columns * x.dtype.size)
    first = Launch(kernel, (x, partials.scratch), (1,), chunks, bytes=moved)
    return first, partials.launch(target)


def _ir(x: Value, each: int, partials: Partials, target: Target) -> str:
    b = kernel_builder()
    source = b.argument(0)
    partials.bind(b, b.argument(1))
    *rows, columns = known(x.shape)
    sums = sum_type(x.dtype)
    lanes = target.lanes(sums.size)
    pitch = columns * x.dtype.size

    def block(row: Reg, count: int, column: Reg, mask: Reg | None) -> None:
        start = b.offset(source, b.add(b.mul(row, pitch), b.mul(column, x.dtype.size)))
        for n in range(count):
            value = read(b, b.offset(start, n * pitch), lanes, x.dtype, sums, mask)
            partials.add(0, column, value, mask)
        partials.flush()

    def across(row: Reg, count: int) -> None:
        whole = columns - columns % lanes
        with b.loop(0, whole, lanes) as loop:
            block(row, count, loop.index, None)
        if not multiple(columns, lanes):
            with b.loop(whole, columns, lanes) as loop:  # once, or not at all
                mask = first_lanes(b, integer(columns - whole), lanes)
                block(row, count, loop.index, mask)

    with b.loop(b.params[1], b.params[2]) as chunk:
        partials.begin(chunk.index)
        first = b.mul(chunk.index, each)
        last = smaller(b, b.add(first, each), integer(prod(rows)))
        rest = b.binary("and", subtract(b, last, first), integer(ROWS - 1))
        even = subtract(b, last, rest)
        with b.loop(first, even, ROWS) as row:
            across(row.index, ROWS)
        with b.loop(even, last) as row:
            across(row.index, 1)
    return b.module()

"""CSR row pointers from ids, and ids from row pointers; the check of row pointers.

Ids in any order are sorted by a counting sort: blocks count their ids, a prefix sum over the counts
tells where each block writes each id. Blocks follow from sizes alone, and the sort is stable.
"""

from __future__ import annotations

from typing import Final

from weft.codegen.builder import Builder, Reg, integer, kernel_builder
from weft.codegen.chunk import Items, by_work
from weft.codegen.contraction.emit import larger, smaller, subtract
from weft.codegen.family.emit import (
    load_index,
    report_fault,
)
from weft.codegen.target import Target
from weft.ir.dtype import DType
from weft.ir.extent import Extent, largest, same, smallest
from weft.ir.node import Value
from weft.ir.shape import known
from weft.passes.group import Group
from weft.passes.launch import ERROR, Kernel, Launch, Scratch

MOST_BLOCKS: Final = 4  # the prefix sum is one thread's work
BLOCK: Final = 1 << 16  # ids below which another block costs more than it saves


def count_of(value: Value) -> int:
    """The first dimension."""
    return known(value.shape)[0]


def csr_order(group: Group, target: Target) -> tuple[Launch, ...]:
    """Counts, sums up, writes."""
    (ids,), (indptr, order) = group.nodes[0].data_inputs, group.nodes[0].outputs
    spare = bool(group.nodes[0].attrs["spare"])
    count, size = count_of(ids), count_of(indptr) - 1
    blocks = smallest(MOST_BLOCKS, smallest(count // BLOCK, count // largest(1, size)))
    blocks = largest(1, blocks)
    counts = Scratch(largest(8, 4 * blocks * size))
    label, bytes_ = f"{count}_below_{size}", float(count * (ids.dtype.size + 4))
    counting = Kernel(f"csr_count_{label}", _count(count, size, blocks, ids.dtype, spare))
    summing = Kernel(f"csr_sum_{label}", _sum(size, blocks))
    placing = Kernel(f"csr_place_{label}", _place(count, size, blocks, ids.dtype, spare))
    return (
        Launch(counting, (ids, counts, ERROR, 0), (1,), blocks, bytes=bytes_, check=True),
        Launch(summing, (counts, indptr), (0, 1)),
        Launch(placing, (ids, counts, order), (1, 2), blocks, bytes=bytes_),
    )


def _block(f: Builder, count: int, size: int, blocks: int, number: Reg) -> tuple[Reg, Reg, Reg]:
    """The range of a block's ids, and the address of its counts."""
    each = -(-count // blocks)
    first = f.mul(number, each)
    return first, smaller(f, f.add(first, each), count), f.mul(number, size)


def _row_of(f: Builder, index: Reg, size: int, spare: bool) -> tuple[Reg, Reg]:
    """The row of an id, of `size`, and whether it is out of range; then the row is 0.

    With `spare`, negative ids go to an extra last row.
    """
    outside = f.compare("icmp uge", index, integer(size - spare))
    if not spare:
        return f.emit("i64", f"select {outside}, i64 0, {index}"), outside
    negative = f.compare("icmp slt", index, integer(0))
    last = f.emit("i64", f"select {negative}, {integer(size - 1)}, i64 0")
    row = f.emit("i64", f"select {outside}, {last}, {index}")
    return row, f.binary("and", outside, f.binary("xor", negative, Reg("i1", "true")))


def _count(count: int, size: int, blocks: int, dtype: DType, spare: bool) -> str:
    f = kernel_builder()
    ids, counts = f.argument(0), f.argument(1)
    with f.loop(f.params[1], f.params[2]) as chunk:
        first, last, base = _block(f, count, size, blocks, chunk.index)
        with f.loop(0, size) as loop:
            f.store(integer(0, "i32"), f.offset(counts, f.add(base, loop.index), "i32"), 4)
        with f.loop(first, last) as loop:
            index = load_index(f, ids, loop.index, dtype)
            row, wrong = _row_of(f, index, size, spare)
            with f.when(wrong):
                report_fault(f, index, loop.index, slot=2)
            if size:
                _next(f, counts, f.add(base, row))
    return f.module()


def _next(f: Builder, counts: Reg, at: Reg) -> Reg:
    """Increments a counter; returns its old value."""
    place = f.offset(counts, at, "i32")
    old = f.load("i32", place, 4)
    f.store(f.binary("add", old, integer(1, "i32")), place, 4)
    return f.emit("i64", f"zext {old} to i64")


def _sum(size: int, blocks: int) -> str:
    f = kernel_builder()
    counts, indptr = f.argument(0), f.argument(1)
    with f.loop(0, size, carried=[integer(0, "i32")]) as loop:
        total = loop.carried[0]
        f.store(total, f.offset(indptr, loop.index, "i32"), 4)
        if isinstance(blocks, Extent):
            with f.loop(0, blocks, carried=[total], at_least_once=True) as inner:
                place = f.add(loop.index, f.mul(inner.index, size))
                inner.next = [_summed(f, counts, place, inner.carried[0])]
            total = inner.results[0]
        else:
            for block in range(blocks):
                total = _summed(f, counts, f.add(loop.index, block * size), total)
        loop.next = [total]
    f.store(loop.results[0], f.offset(indptr, size, "i32"), 4)
    return f.module()


def _summed(f: Builder, counts: Reg, at: Reg, total: Reg) -> Reg:
    """Replaces a count by the sum of the counts before it; returns the sum after it."""
    place = f.offset(counts, at, "i32")
    here = f.load("i32", place, 4)
    f.store(total, place, 4)
    return f.binary("add", total, here)


def _place(count: int, size: int, blocks: int, dtype: DType, spare: bool) -> str:
    f = kernel_builder()
    ids, counts, order = (f.argument(i) for i in range(3))
    if not size:
        return f.module()
    with f.loop(f.params[1], f.params[2]) as chunk:
        first, last, base = _block(f, count, size, blocks, chunk.index)
        with f.loop(first, last) as loop:
            index = load_index(f, ids, loop.index, dtype)
            row, _ = _row_of(f, index, size, spare)
            at = _next(f, counts, f.add(base, row))
            number = f.emit("i32", f"trunc {loop.index} to i32")
            f.store(number, f.offset(order, at, "i32"), 4)
    return f.module()


def csr_indptr(group: Group, target: Target) -> tuple[Launch, ...]:
    """Rows begin between an id and the one before it."""
    ids, indptr = group.nodes[0].data_inputs[0], group.nodes[0].outputs[0]
    count, size = count_of(ids), count_of(indptr) - 1
    items = by_work(count, 8)
    f = kernel_builder()
    source, rows = f.argument(0), f.argument(1)
    if count:
        with f.loop(f.params[1], f.params[2]) as chunk:
            _begin_rows(f, (source, rows), chunk.index, (items, size), ids.dtype)
    else:
        _begin(f, rows, integer(-1), integer(size), integer(0))
    kernel = Kernel(f"csr_indptr_{count}_below_{size}", f.module())
    moved = float(count * ids.dtype.size + 4 * size)
    args = (ids, indptr, ERROR, 0)
    chunks = largest(1, items.chunks)
    return (Launch(kernel, args, (1,), chunks, bytes=moved, check=True),)


def _begin_rows(
    f: Builder, arrays: tuple[Reg, Reg], chunk: Reg, sizes: tuple[Items, int], dtype: DType
) -> None:
    """Writes where rows begin among the ids of a chunk; after the last id, all rows left."""
    (source, rows), (items, size), count = arrays, sizes, sizes[0].count
    first = f.mul(chunk, items.group)
    before = _before(f, source, first, dtype)
    last = smaller(f, f.add(first, items.group), count)
    with f.loop(first, last, carried=[before]) as loop:
        here, before = load_index(f, source, loop.index, dtype), loop.carried[0]
        with f.when(f.compare("icmp ne", here, before)):
            _begin(f, rows, larger(f, before, integer(-1)), smaller(f, here, size), loop.index)
            unsorted = f.compare("icmp slt", here, before)
            outside = f.compare("icmp uge", here, integer(size))
            with f.when(f.binary("or", unsorted, outside)):
                report_fault(f, here, loop.index, slot=2)
        loop.next = [here]
    with f.when(_is(f, chunk, items.chunks - 1)):
        final = load_index(f, source, integer(count - 1), dtype)
        _begin(f, rows, larger(f, final, integer(-1)), integer(size), integer(count))


def _begin(f: Builder, rows: Reg, before: Reg, here: Reg, at: Reg) -> None:
    """Writes that rows after `before`, up to `here`, begin at a position."""
    number = f.emit("i32", f"trunc {at} to i32")
    with f.loop(f.add(before, 1), f.add(here, 1)) as loop:
        f.store(number, f.offset(rows, loop.index, "i32"), 4)


def _before(f: Builder, ids: Reg, at: Reg, dtype: DType) -> Reg:
    """The id before a position; for the first position, a different id of the other sign."""
    found = load_index(f, ids, larger(f, f.add(at, -1), integer(0)), dtype)
    other = f.binary("xor", found, integer(-1))
    return f.emit("i64", f"select {_is(f, at, 0)}, {other}, {found}")


def _is(f: Builder, x: Reg, number: int) -> Reg:
    return f.compare("icmp eq", x, integer(number))


def csr_rows(group: Group, target: Target) -> tuple[Launch, ...]:
    """Writes every row's number at its positions."""
    indptr, rows = group.nodes[0].data_inputs[0], group.nodes[0].outputs[0]
    size, count = count_of(indptr) - 1, count_of(rows)
    items = by_work(size, 8 + 4 * count // largest(1, size))
    f = kernel_builder()
    bounds, y = f.argument(0), f.argument(1)
    with items.loop(f) as row:
        first, last = row_bounds(f, bounds, row, count, indptr.dtype)
        number = f.emit("i32", f"trunc {row} to i32")
        with f.loop(first, last) as loop:
            f.store(number, f.offset(y, loop.index, "i32"), 4)
    kernel = Kernel(f"csr_rows_{size}_{count}", f.module())
    chunks = largest(1, items.chunks)
    fill = Launch(kernel, (indptr, rows), (1,), chunks, bytes=4.0 * (size + count))
    return (check_bounds(indptr, count, 0), fill)


def row_bounds(f: Builder, indptr: Reg, row: Reg, count: int, dtype: DType) -> tuple[Reg, Reg]:
    """The range of a row, within `count` positions whatever `indptr` holds."""
    ends = [load_index(f, indptr, f.add(row, i), dtype) for i in range(2)]
    first, last = (larger(f, smaller(f, end, count), integer(0)) for end in ends)
    return first, last


def check_bounds(indptr: Value, count: int, offset: int) -> Launch:
    """Reports an invalid entry of `indptr`, its position counted from `offset`."""
    entries = count_of(indptr)
    f = kernel_builder()
    bounds = f.argument(0)
    with f.loop(f.params[1], f.params[2]), f.loop(0, entries) as loop:
        here = load_index(f, bounds, loop.index, indptr.dtype)
        before = load_index(f, bounds, larger(f, f.add(loop.index, -1), integer(0)), indptr.dtype)
        is_first, is_last = _is(f, loop.index, 0), _is(f, loop.index, entries - 1)
        low = f.emit("i64", f"select {is_last}, {integer(count)}, {before}")
        high = f.emit("i64", f"select {is_first}, i64 0, {integer(count)}")
        wrong = f.binary("or", f.compare("icmp slt", here, low), f.compare("icmp sgt", here, high))
        with f.when(wrong):
            report_fault(f, here, f.add(loop.index, offset), slot=1)
    kernel = Kernel(f"check_rows_{entries}_of_{count}", f.module())
    size = float(entries * indptr.dtype.size)
    return Launch(kernel, (indptr, ERROR, 0), (), bytes=size, check=True)


def first_row(f: Builder, indptr: Reg, key: Reg, rows: int, dtype: DType) -> Reg:
    """The first of all rows that begins at position `key` or later, by binary search."""
    if same(rows, 0):
        return integer(0)
    with f.loop(0, _bit_length(f, rows), carried=[integer(0), integer(rows)]) as loop:
        low, many = loop.carried
        half = f.binary("lshr", many, integer(1))
        middle = smaller(f, f.add(low, half), rows)
        some = f.compare("icmp ne", many, integer(0))
        below = f.compare("icmp slt", load_index(f, indptr, middle, dtype), key)
        beyond = f.binary("and", below, some)
        rest = subtract(f, subtract(f, many, half), integer(1))
        above = f.add(middle, 1)
        loop.next = [
            f.emit("i64", f"select {beyond}, {above}, {low}"),
            f.emit("i64", f"select {beyond}, {rest}, {half}"),
        ]
    return smaller(f, loop.results[0], rows)


def _bit_length(f: Builder, number: int) -> Reg | int:
    if not isinstance(number, Extent):
        return number.bit_length()
    unused = f.call("i64", "llvm.ctlz.i64", (integer(number), Reg("i1", "false")))
    return subtract(f, integer(64), unused)

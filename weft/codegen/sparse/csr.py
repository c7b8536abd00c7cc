"""CSR kernels: segment sums and extremes, matmuls with dense matrices.

A chunk owns the rows that begin among its positions, so that chunks have similar work even if rows
have very different lengths. A row's result stays in registers and takes its entries in order, so it
does not depend on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from weft.codegen.builder import Builder, Reg, integer, kernel_builder
from weft.codegen.chunk import by_work
from weft.codegen.contraction.emit import read, smaller, write
from weft.codegen.family.emit import (
    FEW,
    UNROLL,
    Part,
    ask_for,
    check_index,
    compute_dtype,
    last_parts,
    load_index,
    masked_parts,
    over_vectors,
    vector_lanes,
)
from weft.codegen.loop.arithmetic import across, combine, identity, literal
from weft.codegen.loop.convert import choose
from weft.codegen.microkernel import fma, prefetch
from weft.codegen.sparse.index import check_bounds, count_of, first_row, row_bounds
from weft.codegen.target import Target
from weft.host.memory import LINE
from weft.ir.dtype import DType
from weft.ir.extent import Extent, largest, multiple, pinned, same, smallest
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.declaration import family_of
from weft.passes.group import Group
from weft.passes.launch import ERROR, Kernel, Launch

AHEAD: Final = 48  # prefetch distance in entries
ASKED: Final = 1 << 17  # maximum bytes of prefetched rows: an eighth of L2
MOST_LINES: Final = 16  # of a row; the hardware prefetches the others
CHUNK: Final = 1 << 18  # bytes read: much longer than two binary searches take
NEAR: Final = 2  # L2, as `prefetch` counts: a core has more line buffers there


@dataclass(frozen=True)
class Rows:
    """`rows` rows of `entries` entries, each with rows of `heads * depth` elements of an array."""

    rows: int
    entries: int
    heads: int
    depth: int
    source: int  # rows of the array that indices point into
    dtype: DType
    indptr: DType
    index: DType
    lanes: int

    @property
    def width(self) -> int:
        """Elements of a row of the dense arrays."""
        return self.heads * self.depth

    @property
    def kind(self) -> DType:
        """The type of the arithmetic."""
        return compute_dtype(self.dtype)

    @property
    def label(self) -> str:
        """Sizes, for kernel names."""
        return f"{self.dtype.name}_{self.rows}_{self.entries}x{self.heads}x{self.depth}"


def _rows_of(indptr: Value, index: Value, x: Value, heads: int, target: Target) -> Rows:
    width = math.prod(known(x.shape)[1:])
    depth = width // heads if heads else 0
    lanes = 1 if depth == 1 else vector_lanes(x.dtype, target.vector_bits)
    return Rows(
        count_of(indptr) - 1, count_of(index), heads, depth, count_of(x), x.dtype, indptr.dtype,
        index.dtype, lanes,
    )  # fmt: skip


def segment(group: Group, target: Target) -> tuple[Launch, ...]:
    """Reduces contiguous rows of an array, or rows that an order names, by segment."""
    node = group.nodes[0]
    (x, indptr, *order), y = node.data_inputs, node.outputs[0]
    problem = _rows_of(indptr, order[0] if order else x, x, 1, target)
    problem = replace(problem, rows=count_of(y))
    f = kernel_builder()
    walk = _Walk(f, problem, f.argument(0))
    walk.segments(family_of(node).combine, node.attrs.get("initial", 0), bool(order))
    kernel = Kernel(f"{node.op}_{problem.label}{'_in_order' if order else ''}", f.module())
    moved = float((problem.entries + problem.rows) * problem.width * x.dtype.size)
    named = (order[0], ERROR, 0) if order else ()
    launch = Launch(
        kernel, (indptr, x, y, *named), (2,), walk.chunks, bytes=moved, check=bool(order)
    )
    return check_bounds(indptr, problem.entries, problem.entries if order else 0), launch


def csr_matmul(group: Group, target: Target) -> tuple[Launch, ...]:
    """Sums of rows of an array that indices name, times values: CSR times dense."""
    values = group.nodes[0].data_inputs[2]
    return _by_entry(group, target, values, _Walk.products)


def csr_sampled_matmul(group: Group, target: Target) -> tuple[Launch, ...]:
    """Dot products of rows of two arrays, one by row, one by index: sampled matmul (SDDMM)."""
    return _by_entry(group, target, group.nodes[0].outputs[0], _Walk.samples)


def _by_entry(
    group: Group, target: Target, each: Value, emit: Callable[[_Walk], None]
) -> tuple[Launch, ...]:
    """A kernel over the entries of all rows; each entry has `each` elements."""
    node = group.nodes[0]
    (indptr, indices, other, x), y = node.data_inputs, node.outputs[0]
    problem = _rows_of(indptr, indices, x, math.prod(known(each.shape)[1:]), target)
    f = kernel_builder()
    walk = _Walk(f, problem, f.argument(0))
    emit(walk)
    kernel = Kernel(f"{node.op}_{problem.label}", f.module())
    args = (indptr, indices, other, x, y, ERROR, 0)
    return check_bounds(indptr, problem.entries, problem.entries), Launch(
        kernel, args, (4,), walk.chunks, flops=2.0 * problem.entries * problem.width,
        bytes=float((problem.entries + problem.rows) * problem.width * x.dtype.size), check=True,
    )  # fmt: skip


class _Walk:
    """Writes a kernel that walks rows."""

    def __init__(self, f: Builder, problem: Rows, indptr: Reg) -> None:
        self.f = f
        self.problem = problem
        self.indptr = indptr
        work = problem.width * problem.dtype.size + 8
        entries = by_work(problem.entries, work, CHUNK)
        self.per_chunk, self.chunks = entries.group, largest(1, entries.chunks)

    def rows(self, body: Callable[[Reg, Reg, Reg], None]) -> None:
        """Calls `body(row, begin, end)` for the rows of this call's chunks."""
        f, problem = self.f, self.problem
        with f.loop(f.params[1], f.params[2]) as chunk:
            begin = f.mul(chunk.index, self.per_chunk)
            first, last = (
                first_row(f, self.indptr, key, problem.rows, problem.indptr)
                for key in (begin, f.add(begin, self.per_chunk))
            )
            final = f.compare("icmp eq", chunk.index, integer(self.chunks - 1))
            last = f.emit("i64", f"select {final}, {integer(problem.rows)}, {last}")
            with f.loop(first, last) as loop:
                bounds = row_bounds(f, self.indptr, loop.index, problem.entries, problem.indptr)
                body(loop.index, *bounds)

    def place(self, array: Reg, row: Reg, head: Reg, at: Reg | int = 0) -> Reg:
        """The address of an element of a head of a row."""
        f, problem = self.f, self.problem
        start = f.add(f.mul(row, problem.width), f.mul(head, problem.depth))
        return f.offset(array, f.mul(f.add(start, at), problem.dtype.size))

    def load(self, pointer: Reg, part: Part) -> Reg:
        """Loads a vector in the type of the arithmetic."""
        f, problem = self.f, self.problem
        place = f.offset(pointer, part.first * problem.dtype.size)
        return read(f, place, problem.lanes, problem.dtype, problem.kind, part.mask)

    def store(self, value: Reg, pointer: Reg, part: Part) -> None:
        """Rounds and stores a vector."""
        place = self.f.offset(pointer, part.first * self.problem.dtype.size)
        write(self.f, value, place, self.problem.dtype, part.mask)

    def segments(self, op: str, initial: float, in_order: bool) -> None:
        """Reduces contiguous rows, or `in_order` rows that indices name."""
        f, problem = self.f, self.problem
        x, y = f.argument(1), f.argument(2)
        indices = f.argument(3) if in_order else None
        start = literal(identity(op, problem.kind), problem.kind, problem.lanes)
        none = literal(initial, problem.kind, problem.lanes)

        def row(number: Reg, begin: Reg, end: Reg) -> None:
            def block(first: Reg, parts: Sequence[Part]) -> None:
                ahead = self.place(x, integer(0), integer(0), first)
                count = len(parts) * problem.lanes
                with f.loop(begin, end, carried=[start] * len(parts)) as loop:
                    source = loop.index
                    if indices is not None:
                        source = self.index(indices, source, ahead, count, slot=4)
                    if problem.source:
                        pointer = self.place(x, source, integer(0), first)
                        loop.next = [
                            combine(f, op, problem.kind, old, self.load(pointer, part))
                            for old, part in zip(loop.carried, parts, strict=True)
                        ]
                empty = f.compare("icmp sge", begin, end)
                to = self.place(y, number, integer(0), first)
                for total, part in zip(loop.results, parts, strict=True):
                    self.store(choose(f, empty, none, total), to, part)

            over_vectors(f, problem.depth, problem.lanes, block)

        self.rows(row)

    def each_head(self, body: Callable[[Reg], None]) -> None:
        """Calls `body(head)` for all heads."""
        if self.problem.heads == 1:
            body(integer(0))
            return
        with self.f.loop(0, self.problem.heads) as loop:
            body(loop.index)

    def index(self, indices: Reg, entry: Reg, ahead: Reg, count: int, slot: int = 5) -> Reg:
        """The row that an entry names; prefetches the row of a later entry.

        Args:
            ahead: address in row 0 of the `count` elements that are read of each row.
            slot: argument slot of the error cell.
        """
        f, problem = self.f, self.problem
        row_size, size = problem.width * problem.dtype.size, count * problem.dtype.size
        distance = largest(4, smallest(AHEAD, ASKED // largest(1, row_size)))
        later = smaller(f, f.add(entry, distance), problem.entries - 1)
        row = f.offset(ahead, f.mul(load_index(f, indices, later, problem.index), row_size))
        asked = smallest(size, MOST_LINES * LINE)
        ask_for(f, row, asked, NEAR)
        if not multiple(row_size, LINE):  # rows begin within lines
            prefetch(f, f.offset(row, asked - 1), NEAR)
        found = load_index(f, indices, entry, problem.index)
        return check_index(f, found, problem.source, entry, slot)

    def products(self) -> None:
        """Rows by index, times values, added."""
        f, problem = self.f, self.problem
        indices, values, x, y = (f.argument(i) for i in range(1, 5))
        zero = literal(0, problem.kind, problem.lanes)

        def weight(entry: Reg, head: Reg) -> Reg:
            at = f.add(f.mul(entry, problem.heads), head)
            place = f.offset(values, f.mul(at, problem.dtype.size))
            value = read(f, place, 1, problem.dtype, problem.kind, None)
            return f.splat(value, problem.lanes)

        def row(number: Reg, begin: Reg, end: Reg) -> None:
            def head(number_: Reg) -> None:
                def block(first: Reg, parts: Sequence[Part]) -> None:
                    ahead = self.place(x, integer(0), number_, first)
                    count = len(parts) * problem.lanes
                    with f.loop(begin, end, carried=[zero] * len(parts)) as loop:
                        source = self.index(indices, loop.index, ahead, count)
                        if problem.source:
                            pointer = self.place(x, source, number_, first)
                            factor = weight(loop.index, number_)
                            loop.next = [
                                fma(f, factor, self.load(pointer, part), old)
                                for old, part in zip(loop.carried, parts, strict=True)
                            ]
                    to = self.place(y, number, number_, first)
                    for total, part in zip(loop.results, parts, strict=True):
                        self.store(total, to, part)

                over_vectors(f, problem.depth, problem.lanes, block)

            self.each_head(head)

        self.rows(row)

    def samples(self) -> None:
        """For each entry and head, the dot product of two rows."""
        f, problem = self.f, self.problem
        indices, g, x, y = (f.argument(i) for i in range(1, 5))
        last = self.end()

        def row(number: Reg, begin: Reg, end: Reg) -> None:
            with f.loop(begin, end) as loop:
                source = self.index(indices, loop.index, x, problem.width)
                if not problem.source:
                    return

                def head(number_: Reg) -> None:
                    left, right = self.place(g, number, number_), self.place(x, source, number_)
                    at = f.add(f.mul(loop.index, problem.heads), number_)
                    place = f.offset(y, f.mul(at, problem.dtype.size))
                    write(f, self.dot(left, right, last), place, problem.dtype, None)

                self.each_head(head)

        self.rows(row)

    def dot(self, left: Reg, right: Reg, end: _End) -> Reg:
        """The dot product of two rows of `depth` elements."""
        f, problem = self.f, self.problem
        lanes, size = problem.lanes, problem.dtype.size
        sums = [literal(0, problem.kind, lanes)] * UNROLL

        def add(at: Reg, parts: Sequence[Part], old: Sequence[Reg]) -> list[Reg]:
            start = f.mul(at, size)
            p, q = f.offset(left, start), f.offset(right, start)
            found = list(old)
            for i, part in enumerate(parts):
                found[i] = fma(f, self.load(p, part), self.load(q, part), found[i])
            return found

        if not same(end.first, 0):
            with f.loop(0, end.first, UNROLL * lanes, carried=sums) as loop:
                parts = [Part(i * lanes, None) for i in range(UNROLL)]
                loop.next = add(loop.index, parts, loop.carried)
            sums = loop.results
        found = add(integer(end.first), end.parts, sums)
        for i, there in enumerate(end.there):
            found[i] = choose(f, there, found[i], sums[i])
        total = found[0]
        for one in found[1:]:
            total = combine(f, "add", problem.kind, total, one)
        return across(f, "add", problem.kind, total)

    def end(self) -> _End:
        """The end of a row."""
        f, lanes, depth = self.f, self.problem.lanes, self.problem.depth
        block = UNROLL * lanes
        if not isinstance(depth, Extent) or lanes == 1:
            depth = pinned(depth)
            whole = depth // block * block
            return _End(whole, last_parts(depth - whole, lanes), [])
        few = next((n for n in FEW if depth <= n * lanes), None)
        whole = 0 if few else depth // block * block
        count = integer(depth - whole)
        parts = masked_parts(f, count, few or UNROLL, lanes)
        there = [f.compare("icmp sgt", count, integer(part.first)) for part in parts]
        return _End(whole, parts, there)


class _End(NamedTuple):
    """The elements from `first` on: vectors, and whether each is there if that varies."""

    first: int
    parts: list[Part]
    there: list[Reg]

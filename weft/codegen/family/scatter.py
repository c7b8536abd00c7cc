"""Scatters: rows set or combined at computed positions, always in the order of the updates.

A chunk owns columns of the output, or rows if these are short, and goes through all indices, so
that no two chunks write one element and no sum depends on timing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from weft.codegen.builder import Builder, Reg, integer, kernel_builder
from weft.codegen.contraction.emit import read, smaller, subtract, write
from weft.codegen.family.emit import (
    UNROLL,
    Part,
    compute_dtype,
    copy_bytes,
    load_index,
    over_blocks,
    over_vectors,
    report_fault,
    vector_lanes,
)
from weft.codegen.loop.arithmetic import combine
from weft.codegen.target import Target
from weft.ir.dtype import DType
from weft.ir.extent import largest, smallest
from weft.ir.node import Node, Value
from weft.ir.shape import known
from weft.ops.declaration import family_of
from weft.passes.group import Group
from weft.passes.launch import ERROR, Argument, Kernel, Launch, Scratch

# Splitting rows makes every chunk read all indices: only for large outputs, and rows long enough
# that adding one takes longer than skipping it.
SMALL = 1 << 18
SHORT = 64
RANGES = 4


@dataclass(frozen=True)
class Scatter:
    """y = x of `rows` rows of `width` elements, then updates[j] into y[indices[j]] by `combine`."""

    combine: str  # as of `Opaque`
    rows: int
    width: int
    updates: int
    dtype: DType
    index: DType
    lanes: int

    @property
    def sums(self) -> DType:
        """The type of rows until all updates are in; wider for sums and products only."""
        grows = self.combine in ("add", "multiply")
        return compute_dtype(self.dtype) if grows else self.dtype

    @property
    def by_columns(self) -> bool:
        """Whether a chunk has some columns only."""
        wide = self.width >= 2 * UNROLL * self.lanes
        return wide and self.rows * self.width * self.dtype.size > SMALL

    @property
    def columns(self) -> int:
        """Columns of a chunk."""
        return UNROLL * self.lanes if self.by_columns else self.width

    @property
    def span(self) -> int:
        """Rows of a chunk, if columns are not split."""
        row, ranges = self.width * self.dtype.size, 1
        if not self.by_columns:
            split = smallest(1, self.rows * row // (SMALL + 1)) * smallest(1, row // SHORT)
            ranges = 1 + (RANGES - 1) * split
        return largest(1, -(-self.rows // ranges))

    @property
    def blocks(self) -> int:
        """Chunks across a row."""
        return largest(1, -(-self.width // largest(1, self.columns)))

    @property
    def chunks(self) -> int:
        """Chunks of the output."""
        return self.blocks * largest(1, -(-self.rows // self.span))


def scatter_of(node: Node, target: Target) -> Scatter:
    """The problem of a scatter node."""
    x, indices, _ = node.data_inputs
    dims = known(x.shape)
    width = math.prod(dims[1:])
    return Scatter(
        family_of(node).combine, dims[0], width, math.prod(known(indices.shape)), x.dtype,
        indices.dtype,
        1 if width == 1 else vector_lanes(x.dtype, target.vector_bits),
    )  # fmt: skip


def scatter(group: Group, target: Target) -> tuple[Launch, ...]:
    """Checks all indices first, so that an update in place happens fully or not at all."""
    node = group.nodes[0]
    problem = scatter_of(node, target)
    (x, indices, updates), y = node.data_inputs, node.outputs[0]
    if not problem.rows * problem.width + problem.updates:
        return ()
    sums: Argument = y
    if problem.sums is not problem.dtype:
        sums = Scratch(largest(1, problem.rows * problem.width * problem.sums.size))
    f = kernel_builder()
    _Writer(f, problem).kernel()
    inplace = ((3, 0), (4, 0)) if sums is y else ((4, 0),)
    return (
        _check(problem, indices),
        Launch(
            Kernel(f"{node.op}_{problem.dtype.name}_{problem.rows}x{problem.width}", f.module()),
            (x, indices, updates, sums, y), (3, 4), problem.chunks, inplace,
            bytes=float(2 * problem.rows + 3 * problem.updates) * problem.width * x.dtype.size,
        ),
    )  # fmt: skip


def _check(problem: Scatter, indices: Value) -> Launch:
    """Reports an index out of bounds."""
    f = kernel_builder()
    pointer = f.argument(0)
    with f.loop(f.params[1], f.params[2]), f.loop(0, problem.updates) as loop:
        index = load_index(f, pointer, loop.index, problem.index)
        with f.when(f.compare("icmp uge", index, integer(problem.rows))):
            report_fault(f, index, loop.index, slot=1)
    name = f"check_{problem.updates}_below_{problem.rows}"
    size = float(problem.updates * problem.index.size)
    return Launch(Kernel(name, f.module()), (indices, ERROR, 0), (), bytes=size, check=True)


class _Writer:
    """Writes the kernel: copy, combine, and round where sums are wider than the output."""

    def __init__(self, f: Builder, problem: Scatter) -> None:
        self.f = f
        self.problem = problem
        self.x, self.indices, self.updates, self.sums, self.y = (f.argument(i) for i in range(5))

    def kernel(self) -> None:
        """All chunks of a call."""
        f, problem = self.f, self.problem
        with f.loop(f.params[1], f.params[2]) as chunk:
            part = f.binary("udiv", chunk.index, integer(problem.blocks))
            block = subtract(f, chunk.index, f.mul(part, problem.blocks))
            first = f.mul(part, problem.span)
            last = smaller(f, f.add(first, problem.span), problem.rows)
            body = partial(self.block, (first, last))
            if problem.by_columns:
                over_blocks(f, problem.width, problem.columns, block, body)
            else:
                body(integer(0), problem.width)

    def block(self, rows: tuple[Reg, Reg], column: Reg, count: Reg | int) -> None:
        """The rows `rows`, `count` columns from `column`."""
        f, problem = self.f, self.problem
        widened = problem.sums is not problem.dtype
        if widened:
            self.each_row(rows, column, count, (self.x, problem.dtype), (self.sums, problem.sums))
        else:
            with f.when(f.compare("icmp ne", self.x, self.y)):
                self.copy(rows, column, count)
        with f.loop(0, problem.updates) as loop:
            index = load_index(f, self.indices, loop.index, problem.index)
            inside = f.compare(
                "icmp ult", subtract(f, index, rows[0]), subtract(f, rows[1], rows[0])
            )
            with f.when(inside):
                self.put(index, loop.index, column, count)
        if widened:
            self.each_row(rows, column, count, (self.sums, problem.sums), (self.y, problem.dtype))

    def copy(self, rows: tuple[Reg, Reg], column: Reg, count: Reg | int) -> None:
        """Copies from the input to the output."""
        f, problem = self.f, self.problem
        if problem.by_columns:
            with f.loop(rows[0], rows[1]) as row:
                at = f.mul(f.add(f.mul(row.index, problem.width), column), problem.dtype.size)
                source, target = f.offset(self.x, at), f.offset(self.y, at)
                copy_bytes(f, source, target, self.bytes(count))
            return
        start = f.mul(rows[0], problem.width * problem.dtype.size)
        size = f.mul(subtract(f, rows[1], rows[0]), problem.width * problem.dtype.size)
        copy_bytes(f, f.offset(self.x, start), f.offset(self.y, start), size)

    def each_row(
        self,
        rows: tuple[Reg, Reg],
        column: Reg,
        count: Reg | int,
        source: tuple[Reg, DType],
        target: tuple[Reg, DType],
    ) -> None:
        """Copies part of each row, converting."""
        f, problem = self.f, self.problem
        with f.loop(rows[0], rows[1]) as row:
            start = f.add(f.mul(row.index, problem.width), column)

            def body(first: Reg, parts: Sequence[Part]) -> None:
                for part in parts:
                    at = f.add(f.add(start, first), part.first)
                    value = self.load(source, at, part)
                    write(f, value, self.pointer(target, at), target[1], part.mask)

            over_vectors(f, count, problem.lanes, body)

    def put(self, index: Reg, update: Reg, column: Reg, count: Reg | int) -> None:
        """Sets or combines part of one row of the updates."""
        f, problem = self.f, self.problem
        to = f.add(f.mul(index, problem.width), column)
        source = f.add(f.mul(update, problem.width), column)
        sums, updates = (self.sums, problem.sums), (self.updates, problem.dtype)
        if not problem.combine:
            target = self.pointer(sums, to)
            copy_bytes(f, self.pointer(updates, source), target, self.bytes(count))
            return

        def body(first: Reg, parts: Sequence[Part]) -> None:
            for part in parts:
                at = f.add(f.add(to, first), part.first)
                old = self.load(sums, at, part)
                value = self.load(updates, f.add(f.add(source, first), part.first), part)
                total = combine(f, problem.combine, compute_dtype(problem.dtype), old, value)
                write(f, total, self.pointer(sums, at), problem.sums, part.mask)

        over_vectors(f, count, problem.lanes, body)

    def bytes(self, count: Reg | int) -> Reg | int:
        """The size of so many elements."""
        size = self.problem.dtype.size
        return self.f.mul(count, size) if isinstance(count, Reg) else count * size

    def pointer(self, array: tuple[Reg, DType], at: Reg) -> Reg:
        """The address of an element."""
        return self.f.offset(array[0], self.f.mul(at, array[1].size))

    def load(self, array: tuple[Reg, DType], at: Reg, part: Part) -> Reg:
        """Loads a vector in the type of the arithmetic."""
        pointer, lanes = self.pointer(array, at), self.problem.lanes
        return read(self.f, pointer, lanes, array[1], compute_dtype(array[1]), part.mask)

"""Reductions to few elements: first parts of the reduced axes, then their combination.

The parts depend on the shape, and the second kernel combines them in order, so the result is
deterministic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from weft.codegen.loop.arithmetic import neutral
from weft.codegen.loop.assemble import Pass, launch
from weft.codegen.loop.domain import CHUNK_BYTES, lanes_for, per_chunk, traffic
from weft.codegen.loop.expression import Expr, cost
from weft.codegen.loop.index import Index, Symbol, flat, unflat, variable
from weft.codegen.loop.maps import map_launches
from weft.codegen.loop.order import cut_of, extent_of
from weft.codegen.loop.parts import Leaves, Nest
from weft.codegen.loop.reduction import (
    Levels,
    Reduction,
    combiner,
    loaded_sum,
    sum_type,
)
from weft.codegen.loop.rows import column, columns_unroll, row_unroll
from weft.codegen.loop.trace import Buffers, Trace
from weft.codegen.loop.tree import Accumulate, Loop, Reduce, Segment, Store, Tree, Vector
from weft.codegen.target import Target
from weft.errors import CompileError
from weft.ir.extent import Extent, same, tuned
from weft.ir.node import Node, Value
from weft.ir.shape import known, size
from weft.passes.launch import Launch, Scratch

FEW: Final = 8
"""With fewer rows than this, threads would be idle if each row were one work item."""


BAND: Final = 4096
"""Columns of a work item: their sums stay in L1."""
WIDE: Final = 1024
"""With more columns, every row is on another page."""
ROWS: Final = 8
"""Rows of wide columns that are read at a time."""
FAR: Final = 4
"""Arrays of so many times L2 may come from memory: then one row is read at a time, so that
addresses ascend, as prefetchers expect (two arrays of 256, 512 and 1024 columns, one thread of
Zen 4: 9.0, 9.6, 10.8 -> 22.5, 20.6, 19.0 GB/s; from L2 it is 12% slower).
"""


def wants_parts(levels: Levels) -> bool:
    """Whether a group has too few rows, or blocks of columns, to make each one work item."""
    values = [p.value for p in (*levels.sums, *levels.full)]
    count = size(levels.reduction.domain)
    moved = traffic(values, [s.buffer for s in levels.full]) / count
    # Numbers that are broadcast are computed, though not read.
    if tuned("<", count, int(4 * CHUNK_BYTES / max(moved, 1.0))):
        return False
    rows = size(levels.reduction.kept)
    if not levels.is_rows:
        rows = rows // levels.kept[-1].extent
    if tuned("<=", FEW, rows):
        return False
    wide = not levels.is_rows and _is_wide(levels)
    if wide and tuned("<", 2 * ROWS, levels.inner[0].extent):
        return True
    return tuned("<", 1, cut_of(levels.inner, levels.outer, levels.is_rows).total)


def _is_wide(levels: Levels) -> bool:
    """Whether a part of columns is summed a few rows at a time."""
    one = len(levels.inner) == 1 and not levels.outer
    return one and tuned("<", WIDE, levels.kept[-1].extent)


def split_launches(name: str, reduction: Reduction, target: Target) -> list[Launch]:
    """Kernels that compute a group level by level, each in parts and then combined."""
    found: list[Launch] = []
    known_sums: dict[Node, Scratch] = {}
    left = list(reduction.full)
    while len(known_sums) < len(reduction.nodes):
        levels = Levels(reduction, known_sums)
        sums, stores = levels.at(0)
        left = [v for v in left if all(s.buffer.source is not v for s in stores)]
        nodes = {levels.symbol_of[n]: n for n in reduction.nodes}
        levels.sums = sums
        levels.full = [s for s in stores if s.buffer.source in reduction.full]
        launches = _Level(name, levels, [nodes[s.result] for s in sums], target)
        found.append(launches.parts())
        done = {**known_sums, **launches.results}
        last = len(done) == len(reduction.nodes)
        found.append(launches.together(reduction.small if last else [], known_sums))
        known_sums = done
        reduction = _without(reduction, stores)
    if left:
        found.extend(_rest(name, reduction, left, known_sums, target))
    return found


def _without(reduction: Reduction, stores: list[Store]) -> Reduction:
    done = {s.buffer.source for s in stores}
    reduction.full = [v for v in reduction.full if v not in done]
    return reduction


def _rest(
    name: str,
    reduction: Reduction,
    outputs: list[Value],
    sums: dict[Node, Scratch],
    target: Target,
) -> tuple[Launch, ...]:
    """Outputs over the whole domain that need finished reductions."""
    buffers = Buffers()
    trace = Trace(reduction.group.nodes, buffers)

    def at(node: Node, index: tuple[Index, ...]) -> Expr:
        return loaded_sum(trace, node, sums[node], flat(index, reduction.kept))

    trace.given.update(reduction.given(at))
    return map_launches(name + "_rest", outputs, target, trace)


class _Level:
    """The two kernels of one level of reductions."""

    def __init__(self, name: str, levels: Levels, nodes: list[Node], target: Target) -> None:
        self.name: Final = name
        self.levels: Final = levels
        self.nodes: Final = nodes
        self.target: Final = target
        self.kept: Final = size(levels.reduction.kept)
        values = [p.value for p in (*levels.sums, *levels.full)]
        self.lanes: Final = min(
            lanes_for(values, target), target.lanes(max([s.dtype.size for s in levels.sums]))
        )
        self.leaves: Final = Leaves(tuple(levels.sums), tuple(levels.full))
        along = self._along if levels.is_rows else column
        self.nest: Final = Nest(levels, along, target.masked and levels.is_rows)
        self.count: Final = self.nest.cut.total
        self.partial: Final = {
            n: Scratch(self.count * self.kept * sum_type(n.types[0].dtype).size) for n in nodes
        }
        self.results: Final = {
            n: Scratch(self.kept * sum_type(n.types[0].dtype).size) for n in nodes
        }

    def _along(
        self,
        axis: Symbol,
        body: tuple[Tree, ...],
        segment: Segment | None,
        around: Symbol | None,
    ) -> Tree:
        unroll = row_unroll(self.leaves, self.lanes, self.target)
        return Vector(axis, self.lanes, unroll, body, segment, around)

    def parts(self) -> Launch:
        """The kernel that reduces every part."""
        levels, nest = self.levels, self.nest
        outer = levels.kept if levels.is_rows else levels.kept[:-1]
        bands = 1 if levels.is_rows else -(-levels.kept[-1].extent // BAND)
        shape = [*[s.extent for s in outer], self.count, bands]
        piece = Symbol("piece", extent_of(outer) * self.count * bands)
        *places, part, band = unflat(variable(piece), shape)
        count = piece.extent
        levels.rename(dict(zip(outer, places, strict=True)))
        leaves = Leaves(tuple(levels.sums), tuple(levels.full))
        b = levels.trace.b
        ends = [
            Store(
                levels.buffers.of(self.partial[n], s.dtype),
                part * self.kept + levels.kept_flat,
                b.local(s.result, s.dtype, levels.kept_flat.symbols),
            )
            for n, s in zip(self.nodes, levels.sums, strict=True)
        ]
        if levels.is_rows:
            body = (nest.part(leaves, part), *ends)
        else:
            body = (self._columns(leaves, part, band, ends),)
        elements = size(levels.reduction.domain)
        moved = traffic(leaves.values, [s.buffer for s in levels.full]) / elements
        each = per_chunk(count, moved, cost(leaves.values) / self.lanes, elements // count)
        step = Pass(leaves.stores, tuple(leaves.values))
        tree = Loop(piece, body, Segment(None, each))
        return launch(self.name + "_parts", [tree], [step], self.target, -(-count // each))

    def _columns(self, leaves: Leaves, part: Index, band: Index, ends: Sequence[Store]) -> Tree:
        """A band of columns, a part of each.

        Of wide rows a few are read at a time, while the sums so far are in memory: the others would
        be on other pages.
        """
        last, cut, b = self.levels.kept[-1], self.nest.cut, self.levels.trace.b
        unroll = columns_unroll(len(leaves.sums), last.extent, self.lanes, self.target)

        def vector(*body: Tree) -> Tree:
            return Vector(last, self.lanes, unroll, body, Segment(band, BAND))

        high = self._rows_at_a_time(unroll)
        if not high:
            return vector(self.nest.part(leaves, part), *ends)
        (rows,), each = self.levels.inner, cut.length // high
        block = Symbol("block", -(-rows.extent // high))
        again = b.inside(variable(block) % each, 1, each)
        begin: list[Tree] = []
        for s, end in zip(leaves.sums, ends, strict=True):
            start = b.const(neutral(s.op, s.dtype), s.dtype)
            value = b.select(again, b.load(end.buffer, end.offset), start)
            begin.append(replace(s, value=value))
        loop = Loop(rows, (*leaves.sums, *leaves.stores), Segment(variable(block), high))
        tree = vector(Reduce(leaves.sums, (*begin, loop)), *ends)
        return Loop(block, (tree,), Segment(part, each))

    def _rows_at_a_time(self, unroll: int) -> int:
        """Rows after which sums go to memory; 0: they stay in registers for a whole part."""
        levels, columns = self.levels, self.levels.kept[-1].extent
        few = ROWS if _is_wide(levels) else 0
        one = len(levels.inner) == 1 and not levels.outer
        if not one or isinstance(size(levels.reduction.domain), Extent):
            return few
        sums = sum([s.dtype.size for s in levels.sums]) * columns
        buffers = [s.buffer for s in levels.full]
        far = traffic(self.leaves.values, buffers) > FAR * self.target.l2
        return 1 if far and unroll * self.lanes < columns and sums <= self.target.l1 // 2 else few

    def together(self, small: list[Value], known_sums: dict[Node, Scratch]) -> Launch:
        """The kernel that combines the parts, and computes what depends on the results alone."""
        reduction = self.levels.reduction
        buffers = Buffers()
        trace = Trace(reduction.group.nodes, buffers)
        column, part = Symbol("k", self.kept), Symbol("part", self.count)
        at = variable(column)
        local = {n: Symbol(f"r{i}") for i, n in enumerate(self.nodes)}

        def given(node: Node, index: tuple[Index, ...]) -> Expr:
            place = flat(index, reduction.kept)
            if node not in local:
                return loaded_sum(trace, node, known_sums[node], place)
            if place != at:
                raise CompileError(f"{node.describe()}: is read at another row than its own")
            dtype = node.types[0].dtype
            return trace.b.cast(trace.b.local(local[node], sum_type(dtype), at.symbols), dtype)

        trace.given.update(reduction.given(given))
        sums: list[Accumulate] = []
        stores: list[Store] = []
        for node in self.nodes:
            dtype = sum_type(node.types[0].dtype)
            memory = buffers.of(self.partial[node], dtype)
            value = trace.b.load(memory, variable(part) * self.kept + at)
            sums.append(Accumulate(local[node], combiner(node), dtype, value))
            result = trace.b.local(local[node], dtype, at.symbols)
            stores.append(Store(buffers.of(self.results[node], dtype), at, result))
        index = unflat(at, reduction.kept)
        for v in small:
            place = reduction.of_kept(index, known(v.shape))
            value = trace.at(v, place)
            stores.append(Store(buffers.of(v, v.dtype), flat(place, known(v.shape)), value))
        body = (Reduce(tuple(sums), (Loop(part, tuple(sums)),)), *stores)
        return self._combined(body, column, stores, sums)

    def _combined(
        self, body: tuple[Tree, ...], column: Symbol, stores: list[Store], sums: list[Accumulate]
    ) -> Launch:
        name = self.name + "_together"
        values = tuple(p.value for p in (*sums, *stores))
        steps = [Pass(tuple(stores), values)]
        if same(self.kept, 1):
            return launch(name, [Loop(column, body)], steps, self.target)
        lanes = lanes_for(values, self.target)
        unroll = columns_unroll(len(sums), self.kept, lanes, self.target)
        block = lanes * unroll
        each = -(-per_chunk(self.kept, 4.0, 0, self.count) // block) * block
        tree = Vector(column, lanes, unroll, body, Segment(None, each))
        return launch(name, [tree], steps, self.target, -(-self.kept // each))

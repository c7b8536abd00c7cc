"""Reductions to few elements: first parts of the reduced axes, then their combination.

The parts depend on the shape, and the second kernel combines them in order, so the result is
deterministic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weft.codegen.loop.assemble import Pass, launch
from weft.codegen.loop.domain import CHUNK_BYTES, lanes_for, per_chunk, traffic
from weft.codegen.loop.expression import Expr, cost
from weft.codegen.loop.index import Index, Symbol, flat, unflat, variable
from weft.codegen.loop.maps import map_launches
from weft.codegen.loop.reduction import (
    Levels,
    Reduction,
    combiner,
    loaded_sum,
    sum_type,
)
from weft.codegen.loop.rows import STRAIGHT, columns_unroll
from weft.codegen.loop.trace import Buffers, Trace
from weft.codegen.loop.tree import Accumulate, Loop, Reduce, Segment, Store, Tree, Vector
from weft.codegen.target import Target
from weft.errors import CompileError
from weft.ir.extent import largest, pinned, smallest
from weft.ir.node import Node, Value
from weft.ir.shape import known, size
from weft.passes.launch import Launch, Scratch

MOST_PARTS: Final = 128
FEW: Final = 8
"""With fewer rows than this, threads would be idle if each row were one work item."""
TEAM: Final = 16
"""Parts that are enough for any number of threads."""
CHAIN: Final = 1 << 14
"""How many rows may be added one after another: of a million, float32 sums had four digits."""
LEAST_ROWS: Final = 8
"""Minimum rows of columns that a part adds up: its result is written and read once more. With one
row of 400 x 32000 each that was two thirds of all traffic.
"""


@dataclass(frozen=True)
class Parts:
    """How a loop is cut: `count` parts of `length` iterations."""

    symbol: Symbol
    count: int
    length: int


def wants_parts(levels: Levels) -> bool:
    """Whether a group has too few rows, or blocks of columns, to make each one work item."""
    values = [p.value for p in (*levels.sums, *levels.full)]
    total = traffic(values, [s.buffer for s in levels.full])
    computed = size(levels.reduction.domain)  # also of numbers that are broadcast, and not read
    if largest(int(total), computed) < 4 * CHUNK_BYTES:
        return False
    rows = size(levels.reduction.kept)
    if levels.order[-1] in levels.reduced:
        return rows < FEW
    added = computed // rows
    return added >= CHAIN or (rows // levels.kept[-1].extent < FEW and added >= 32)


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
        self.lanes: Final = lanes_for(values, target)
        self.cut: Final = self._parts()
        self.partial: Final = {
            n: Scratch(self.cut.count * self.kept * sum_type(n.types[0].dtype).size) for n in nodes
        }
        self.results: Final = {
            n: Scratch(self.kept * sum_type(n.types[0].dtype).size) for n in nodes
        }

    def _parts(self) -> Parts:
        """Cuts the first reduced axis, or the longest if that is short."""
        levels = self.levels
        first = levels.reduced[0]
        symbol = first if first.extent >= FEW else max(levels.reduced, key=lambda s: s.extent)
        values = [p.value for p in (*levels.sums, *levels.full)]
        count = size(levels.reduction.domain)
        each = count // symbol.extent
        moved = traffic(values, [s.buffer for s in levels.full]) / count
        length = per_chunk(symbol.extent, moved * each, cost(values) / self.lanes * each)
        # Columns are summed block by block, so a part should still be in cache for the next.
        columns = levels.order[-1] not in levels.reduced
        length = largest(length, -(-symbol.extent // (MOST_PARTS * 8 if columns else MOST_PARTS)))
        if columns:
            length = largest(length, smallest(LEAST_ROWS, symbol.extent // TEAM))
            # Of numbers that are broadcast, a whole axis moves few bytes.
            length = smallest(length, largest(CHAIN, -(-symbol.extent // (MOST_PARTS * 8))))
        if symbol is levels.order[-1]:
            block = self.lanes * STRAIGHT
            length = -(-length // block) * block
        return Parts(symbol, -(-symbol.extent // length), length)

    def parts(self) -> Launch:
        """The kernel that reduces every part."""
        levels, cut = self.levels, self.cut
        columns = levels.order[-1] not in levels.reduced
        outer = levels.kept[:-1] if columns else levels.kept
        rows = 1
        for symbol in outer:
            rows *= symbol.extent
        piece = Symbol("part", rows * cut.count)
        part = variable(piece) % cut.count
        places = unflat(variable(piece) // cut.count, [s.extent for s in outer])
        levels.rename(dict(zip(outer, places, strict=True)))
        b = levels.trace.b
        ends = [
            Store(
                levels.buffers.of(self.partial[n], s.dtype),
                part * self.kept + levels.kept_flat,
                b.local(s.result, s.dtype, levels.kept_flat.symbols),
            )
            for n, s in zip(self.nodes, levels.sums, strict=True)
        ]
        leaf = (*levels.sums, *levels.full)
        body = self._columns(leaf, part, ends) if columns else self._rows(leaf, part, ends)
        tree = Loop(piece, tuple(body), Segment(None, 1))
        step = Pass(tuple(levels.full), tuple(p.value for p in leaf))
        return launch(self.name + "_parts", [tree], [step], self.target, piece.extent)

    def _segment(self, symbol: Symbol, part: Index) -> Segment | None:
        return Segment(part, self.cut.length) if symbol is self.cut.symbol else None

    def _rows(self, leaf: tuple[Tree, ...], part: Index, ends: list[Store]) -> list[Tree]:
        *outer, last = self.levels.reduced
        segment = self._segment(last, part)
        nest: Tree = Vector(last, self.lanes, STRAIGHT, leaf, segment)
        for symbol in reversed(outer):
            nest = Loop(symbol, (nest,), self._segment(symbol, part))
        return [Reduce(tuple(self.levels.sums), (nest,)), *ends]

    def _columns(self, leaf: tuple[Tree, ...], part: Index, ends: list[Store]) -> list[Tree]:
        last = self.levels.kept[-1]
        body = leaf
        for symbol in reversed(self.levels.reduced):
            body = (Loop(symbol, body, self._segment(symbol, part)),)
        inside = (Reduce(tuple(self.levels.sums), body), *ends)
        unroll = columns_unroll(len(self.levels.sums), last.extent, self.lanes, self.target)
        return [Vector(last, self.lanes, unroll, inside)]

    def together(self, small: list[Value], known_sums: dict[Node, Scratch]) -> Launch:
        """The kernel that combines the parts, and computes what depends on the results alone."""
        reduction = self.levels.reduction
        buffers = Buffers()
        trace = Trace(reduction.group.nodes, buffers)
        column, part = Symbol("k", self.kept), Symbol("part", self.cut.count)
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
        if self.kept == 1:
            return launch(name, [Loop(column, body)], steps, self.target)
        lanes = lanes_for(values, self.target)
        unroll = pinned(max(1, min(STRAIGHT, self.kept // lanes)))
        block = lanes * unroll
        each = -(-per_chunk(self.kept, 4.0 * self.cut.count, 0) // block) * block
        tree = Vector(column, lanes, unroll, body, Segment(None, each))
        return launch(name, [tree], steps, self.target, -(-self.kept // each))

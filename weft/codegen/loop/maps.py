"""Kernels without reductions: every output element is computed on its own.

If all operands are read in one contiguous sequence, the kernel is one flat loop whose length is an
argument, so that one kernel serves all sizes. Otherwise rows are dealt to chunks and vectors go
along the last axis; where a shape operation reads it in several pieces, or across, the loops
follow.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from weft.codegen.loop.assemble import Pass, launch
from weft.codegen.loop.domain import (
    lanes_for,
    merged_axes,
    per_chunk,
    symbols_of,
    traffic,
    unroll_for,
)
from weft.codegen.loop.expression import Buffer, Expr, cost, needed, roots_of
from weft.codegen.loop.index import Index, Symbol, atoms_of, flat, substituted, unflat, variable
from weft.codegen.loop.trace import Trace, axes_of
from weft.codegen.loop.transpose import TILE, transposing_copy
from weft.codegen.loop.tree import Aligned, Loop, Segment, Store, Tree, Turned, Vector
from weft.codegen.target import Target
from weft.host.memory import LINE
from weft.ir.extent import Extent, same, smallest, tuned
from weft.ir.node import Value
from weft.ir.shape import known
from weft.passes.launch import Launch

STREAM_BYTES: Final = 24 * 1024 * 1024
"""From this much output on, nothing of it is left in L3 when it is read."""
MOST_REGIONS: Final = 6
"""With more regions of the last axis than this, each element selects its own."""
MOST_PERIOD: Final = 8
"""A period of more vectors is not unrolled."""
FEW_ROWS: Final = 64


def map_launches(
    name: str, outputs: Sequence[Value], target: Target, trace: Trace
) -> tuple[Launch, ...]:
    """Kernels for outputs of one shape; none if they are empty."""
    shape = known(outputs[0].shape)
    if 0 in shape:
        return ()
    symbols, index = axes_of(shape)
    values = [trace.at(v, index) for v in outputs]
    place = flat(index, shape)
    stores = [
        Store(trace.buffers.of(v, v.dtype), place, x) for v, x in zip(outputs, values, strict=True)
    ]
    new = merged_axes(symbols, [0] * len(symbols), [*roots_of(values), place])
    axes, _ = symbols_of(symbols, new)
    return _Map(name, trace, _renamed(trace, stores, new), axes, target).launches()


def _renamed(trace: Trace, stores: Sequence[Store], new: Mapping[Symbol, Index]) -> list[Store]:
    values = trace.b.substitute([s.value for s in stores], new)
    return [
        replace(s, offset=substituted(s.offset, new, _unused), value=x)
        for s, x in zip(stores, values, strict=True)
    ]


def _unused(expr: Expr) -> Expr:
    return expr  # store addresses never depend on data


@dataclass(frozen=True)
class Stretch:
    """A part of the last axis: by vectors, or by periods of several vectors along `lane`."""

    axis: Symbol
    stores: list[Store]
    lane: Symbol | None = None


class _Map:
    """Stores over some axes on the way to kernels."""

    def __init__(
        self, name: str, trace: Trace, stores: list[Store], axes: list[Symbol], target: Target
    ) -> None:
        self.name: Final = name
        self.trace: Final = trace
        self.stores = stores
        self.axes = axes
        self.target: Final = target
        values = [s.value for s in stores]
        self.lanes = lanes_for(values, target)
        self.unroll = unroll_for(values)
        self.count: Final = _product(axes)
        self.moved: Final = traffic(values, [s.buffer for s in stores]) / self.count
        self.cycles: Final = cost(values) / self.lanes

    def launches(self) -> tuple[Launch, ...]:
        """The kernels, after the loops have been chosen."""
        if not self.axes:
            return (self._launch(Loop(Symbol("once", 1), tuple(self.stores)), 1),)
        if len(self.axes) > 1 and self._is_short(self.axes[-1].extent):
            self._flatten()
        if len(self.axes) == 1:
            stretches = self._stretches()
            if len(stretches) == 1 and self._is_plain(self.axes[0]):
                return (self._flat(),)
            return tuple(self._one_axis(part) for part in stretches)
        across = self._across()
        if across is None:
            return (self._rows(),)
        return (self._copied(across) or self._turned(across),)

    def _launch(
        self,
        tree: Tree,
        chunks: int,
        integers: tuple[int, ...] = (),
        stores: Sequence[Store] = (),
    ) -> Launch:
        tree = self._streamed(tree)
        stores = stores or self.stores
        step = Pass(tuple(stores), tuple(s.value for s in stores))
        return launch(self.name, [tree], [step], self.target, chunks, integers)

    def _rename(self, new: Mapping[Symbol, Index]) -> None:
        self.stores = _renamed(self.trace, self.stores, new)

    def _is_short(self, extent: int) -> bool:
        """Whether short rows would leave vectors mostly empty, or much to single elements."""
        if not _is_fixed(extent):
            return False
        if self.target.masked:
            return extent < self.lanes // 2
        written = math.lcm(extent, self.lanes) <= MOST_PERIOD * self.lanes
        return extent < self.lanes or (extent % self.lanes > 0 and written)

    def _flatten(self) -> None:
        one = Symbol("i", self.count)
        places = unflat(variable(one), [s.extent for s in self.axes])
        self._rename(dict(zip(self.axes, places, strict=True)))
        self.axes = [one]

    # one axis
    def _one_axis(self, part: Stretch) -> Launch:
        extent = part.axis.extent
        block = 1 if part.lane else self.lanes * self.unroll
        scale = len(part.stores) // len(self.stores) * (part.lane.extent if part.lane else 1)
        each = per_chunk(extent, self.moved, self.cycles, scale)
        each = -(-each // block) * block
        alone = _is_fixed(extent) and extent <= each  # a known length has the shorter code
        tree = self._along(part, None if alone else Segment(None, each))
        return self._launch(tree, -(-extent // each), (), part.stores)

    def _flat(self) -> Launch:
        """A kernel for any length."""
        axis, block = self.axes[0], self.lanes * self.unroll
        each = -(-per_chunk(axis.extent, self.moved, self.cycles) // block) * block
        length = Symbol("i")
        self._rename({axis: variable(length)})
        buffers = {s.buffer for s in self.stores}
        buffers |= {x.data[0] for x in needed([s.value for s in self.stores]) if x.op == "load"}
        tree = self._along(Stretch(length, self.stores), Segment(None, each, len(buffers)))
        return self._launch(tree, -(-axis.extent // each), (axis.extent, each))

    def _is_plain(self, axis: Symbol) -> bool:
        """Whether the kernel is the same for every length of the axis."""
        plain = variable(axis)
        inside = roots_of([s.value for s in self.stores])
        return all(i.is_constant or i == plain for i in inside) and all(
            s.offset == plain for s in self.stores
        )

    def _along(self, part: Stretch, segment: Segment | None = None) -> Tree:
        stores = tuple(part.stores)
        if part.lane is None:
            return Vector(part.axis, self.lanes, self.unroll, stores, segment)
        # Lanes outside: what depends on them alone, such as the channel, is computed once.
        return Vector(part.lane, self.lanes, 1, (Loop(part.axis, stores, segment),))

    # rows
    def _rows(self) -> Launch:
        *outer, last = self.axes
        row = Symbol("row", _product(outer))
        self._rename(dict(zip(outer, unflat(variable(row), _extents(outer)), strict=True)))
        part = per_chunk(last.extent, self.moved, self.cycles)
        if tuned("<", part, last.extent // 2) and tuned("<", row.extent, FEW_ROWS):
            return self._cut_rows(row, part)
        inner = [self._along(part) for part in self._stretches()]
        each = per_chunk(row.extent, self.moved, self.cycles, last.extent)
        tree = Loop(row, tuple(inner), Segment(None, each))
        return self._launch(tree, -(-row.extent // each))

    def _cut_rows(self, row: Symbol, part: int) -> Launch:
        """Long rows: several chunks per row."""
        last, block = self.axes[-1], self.lanes * self.unroll
        part = -(-part // block) * block
        parts = -(-last.extent // part)
        piece = Symbol("part", row.extent * parts)
        place = variable(piece)
        self._rename({row: place // parts})
        inner = self._along(Stretch(last, self.stores), Segment(place % parts, part))
        return self._launch(Loop(piece, (inner,), Segment(None, 1)), piece.extent)

    def _stretches(self) -> list[Stretch]:
        """The last axis in parts that need no predicate, divided into periods where periodic."""
        return [part for axis, stores in self._regions() for part in self._periods(axis, stores)]

    def _periods(self, axis: Symbol, stores: list[Store]) -> list[Stretch]:
        """Whole periods, if the index is divided into periods, then the rest.

        Unrolled, a period's vectors share what they have in common, such as a block of random
        numbers, and divisions by the period disappear.
        """
        divisor = _divisor([s.value for s in stores], axis)
        period = math.lcm(divisor, self.lanes)
        count = axis.extent // period
        if divisor == 1 or not count or period > MOST_PERIOD * self.lanes:
            return [Stretch(axis, stores)]
        block, lane = Symbol(axis.name + "b", count), Symbol(axis.name + "l", self.lanes)
        written = [
            s
            for start in range(0, period, self.lanes)
            for s in _renamed(
                self.trace, stores, {axis: variable(block) * period + variable(lane) + start}
            )
        ]
        found = [Stretch(block, written, lane)]
        if axis.extent % period:
            rest = Symbol(axis.name + "r", axis.extent % period)
            most = None if _is_fixed(rest.extent) else period - 1
            new = {axis: variable(rest, most) + count * period}
            found.append(Stretch(rest, _renamed(self.trace, stores, new)))
        return found

    def _regions(self) -> list[tuple[Symbol, list[Store]]]:
        """The last axis cut where predicates on it change, so that none is left to compute."""
        last = self.axes[-1]
        ends = [0, last.extent, *_boundaries([s.value for s in self.stores], last)]
        cuts = [cut for cut, _ in itertools.groupby(sorted(ends))]  # equality may be unknown
        if not 2 < len(cuts) <= MOST_REGIONS + 1:
            return [(last, self.stores)]
        found: list[tuple[Symbol, list[Store]]] = []
        for n, (start, stop) in enumerate(itertools.pairwise(cuts)):
            axis = Symbol(f"{last.name}_{n}", stop - start)
            stores = _renamed(self.trace, self.stores, {last: variable(axis) + start})
            found.append((axis, stores))
        return found

    # across
    def _across(self) -> Symbol | None:
        """An outer axis along which a load is contiguous that is strided along the last axis."""
        last, found = self.axes[-1], dict[Symbol, None]()
        for x in needed([s.value for s in self.stores]):
            if x.op == "load":
                steps = {atom.inner: k for atom, k in x.data[1].terms if atom.kind == "var"}
                if not any(same(steps.get(last, 0), k) for k in (0, 1, -1)):
                    near = [s for s, k in steps.items() if same(k, 1) and s is not last]
                    found.update(dict.fromkeys(near))
        wide = [s for s in found if tuned("<=", 4, s.extent)]
        return wide[0] if wide and tuned("<=", self.lanes // 2, last.extent) else None

    def _join(self, across: Symbol) -> None:
        """Collapses one of the last two axes if the last alone would fill few whole squares."""
        *outer, before, last = self.axes
        filled = tuned("<=", TILE, last.extent) or tuned("==", last.extent % self.lanes, 0)
        if before is across or filled:
            return
        both = Symbol("joined", before.extent * last.extent)
        places = unflat(variable(both), [before.extent, last.extent])
        self._rename(dict(zip((before, last), places, strict=True)))
        self.axes = [*outer, both]

    def _copied(self, across: Symbol) -> Launch | None:
        """One kernel for all shapes, if it only copies."""
        if len(self.stores) > 1 or self._is_streamed():
            return None
        return transposing_copy(self.name, self.stores[0], self.axes, across, self.target)

    def _turned(self, across: Symbol) -> Launch:
        """Square tiles, transposed in registers."""
        self._join(across)
        last = self.axes[-1]
        outer = [s for s in self.axes[:-1] if s is not across]
        counts = [-(-across.extent // TILE), -(-last.extent // TILE)]
        piece = Symbol("tile", _product(outer) * counts[0] * counts[1])
        *places, down, along = unflat(variable(piece), [*_extents(outer), *counts])
        self._rename(dict(zip(outer, places, strict=True)))
        lanes = min(self.lanes, self.target.lanes(4))
        tree = Turned(
            across, last, lanes, tuple(self.stores), (Segment(down, TILE), Segment(along, TILE))
        )
        area = smallest(TILE, across.extent) * smallest(TILE, last.extent)
        each = per_chunk(piece.extent, self.moved, self.cycles, area)
        return self._launch(Loop(piece, (tree,), Segment(None, each)), -(-piece.extent // each))

    # non-temporal stores
    def _streamed(self, tree: Tree) -> Tree:
        """The tree with non-temporal stores, if what they write would not stay in cache anyway.

        Writing a line that is not in the cache reads it first: a third of the traffic of a copy.
        """
        if not self._is_streamed():
            return tree
        return Aligned(self._written(), (_past_caches(tree),), (tree,))

    def _is_streamed(self) -> bool:
        written = sum(b.dtype.size for b in self._written()) * self.count
        large = tuned("<=", STREAM_BYTES, written)
        return large and all(_starts_at(s, LINE) for s in self.stores)

    def _written(self) -> tuple[Buffer, ...]:
        return tuple(dict.fromkeys(s.buffer for s in self.stores))


def _product(axes: Sequence[Symbol]) -> int:
    total = 1
    for symbol in axes:
        total *= symbol.extent
    return total


def _extents(axes: Sequence[Symbol]) -> list[int]:
    return [s.extent for s in axes]


def _boundaries(values: Sequence[Expr], axis: Symbol) -> set[int]:
    """Where on `axis` a predicate or clamp of an index changes, if that depends on it alone."""
    cuts: set[int] = set()
    for x in needed(values):
        if x.op == "inside":
            index, low, high = x.data
            shift = _shift(index, axis)
            if shift is not None:
                cuts |= {low - shift, high - shift}
        elif x.op in ("load", "scalar"):
            index = x.data[1] if x.op == "load" else x.data
            for atom, _ in index.terms:
                shift = _shift(atom.inner, axis) if atom.kind == "clamp" else None
                if shift is not None:
                    cuts |= {atom.value[0] - shift, atom.value[1] + 1 - shift}
    return {c for c in cuts if 0 < c < axis.extent}


def _divisor(values: Sequence[Expr], axis: Symbol) -> int:
    """The total divisor of the index along `axis`; 1 if nothing, or a size, divides it."""
    found = 1
    for index in roots_of(values):
        for atom in atoms_of(index):
            if atom.kind in ("div", "mod") and axis in atom.symbols:
                if not _is_fixed(atom.value):
                    return 1
                found = math.lcm(found, atom.value * _inner_divisor(atom.inner))
    return found


def _inner_divisor(index: Index) -> int:
    atoms = [x for x in atoms_of(index) if x.kind == "div" and _is_fixed(x.value)]
    return math.prod(atom.value for atom in atoms)


def _is_fixed(number: int) -> bool:
    """Whether a number is the same in every run, so that a period of it can be unrolled."""
    return not isinstance(number, Extent)


def _shift(index: Index, axis: Symbol) -> int | None:
    """`c` where the index is `axis + c`."""
    return index.const if index - index.const == variable(axis) else None


def _starts_at(store: Store, unit: int) -> bool:
    """Whether vectors along the last axis start at multiples of `unit` bytes."""
    size = store.buffer.dtype.size
    others = [k for atom, k in store.offset.terms if not same(k, 1) or atom.kind != "var"]
    return len(others) == len(store.offset.terms) - 1 and all(
        k * size % unit == 0 for k in (*others, store.offset.const)
    )


def _past_caches(tree: Tree, lanes: int = 1) -> Tree:
    """Makes stores of aligned vectors non-temporal; a part of a cut axis may start anywhere."""
    if isinstance(tree, Store):
        return replace(tree, stream=_starts_at(tree, lanes * tree.buffer.dtype.size))
    if isinstance(tree, Loop | Vector):
        lanes = tree.lanes if isinstance(tree, Vector) else lanes
        return replace(tree, body=tuple(_past_caches(part, lanes) for part in tree.body))
    return tree

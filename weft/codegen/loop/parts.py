"""Loops over the reduced axes, in the order that `weft.codegen.loop.order` describes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from weft.codegen.loop.expression import Expr, Expressions
from weft.codegen.loop.index import Index, Symbol, substituted, unflat, variable
from weft.codegen.loop.order import cut_of, ordered
from weft.codegen.loop.reduction import Levels
from weft.codegen.loop.tree import Accumulate, Loop, Reduce, Segment, Store, Tree
from weft.ir.extent import Extent

Innermost = Callable[[Symbol, tuple[Tree, ...], Segment | None, Symbol | None], Tree]
"""The loop over the last axis of the inner run, perhaps with one around it."""
SHORT: Final = 32
"""Shorter rows that cannot be one loop are read element by element, at computed places."""


@dataclass(frozen=True)
class Leaves:
    """What one pass accumulates and stores."""

    sums: tuple[Accumulate, ...]
    stores: tuple[Store, ...]

    @property
    def all(self) -> tuple[Tree, ...]:
        """All of them, in order."""
        return (*self.sums, *self.stores)

    @property
    def values(self) -> list[Expr]:
        """What is computed."""
        return [p.value for p in (*self.sums, *self.stores)]

    def at(self, b: Expressions, symbols: Sequence[Symbol], places: Sequence[Index]) -> Leaves:
        """The same with loop variables replaced."""
        new = dict(zip(symbols, places, strict=True))
        values = iter(b.substitute(self.values, new))
        return Leaves(
            tuple([replace(s, value=next(values)) for s in self.sums]),
            tuple([
                Store(s.buffer, substituted(s.offset, new, lambda x: x), next(values))
                for s in self.stores
            ]),
        )  # fmt: skip


class Nest:
    """The loops of a group's passes over the reduced axes."""

    def __init__(self, levels: Levels, innermost: Innermost, masked: bool = False) -> None:
        """`masked`: whether vectors of `innermost` may begin within a row."""
        self.inner: Final = levels.inner
        self.outer: Final = levels.outer
        self.rows: Final = levels.is_rows
        self.cut: Final = cut_of(levels.inner, levels.outer, levels.is_rows)
        self._levels: Final = levels
        self._b: Final = levels.trace.b
        self._innermost: Final = innermost
        last = self.inner[-1].extent
        self._wraps: Final = masked and (isinstance(last, Extent) or last >= SHORT)

    def whole(self, leaves: Leaves) -> Tree:
        """All parts, one after another."""
        sums = leaves.sums
        if not ordered(sums):
            nest = self._over(self.outer, self._run(leaves))
            return Reduce(sums, (nest,)) if sums else nest
        if self.cut.is_whole:
            return Reduce(sums, (self._over(self.outer, self._run(leaves)),))
        own = tuple([replace(s, result=Symbol(s.result.name + "p")) for s in sums])
        parts = Leaves(own, leaves.stores)
        part = Symbol("part", self.cut.count)
        joined = [
            replace(s, value=self._b.local(p.result, s.dtype))
            for s, p in zip(sums, own, strict=True)
        ]
        nest = Loop(part, (Reduce(own, (self._one(parts, variable(part)),)), *joined))
        return Reduce(sums, (self._over(self.outer, nest) if self.cut.inside else nest,))

    def part(self, leaves: Leaves, number: Index) -> Tree:
        """One part, of all."""
        if self.cut.inside:
            places = unflat(number // self.cut.count, [s.extent for s in self.outer])
            leaves = leaves.at(self._b, self.outer, places)
            number = number % self.cut.count
        return Reduce(leaves.sums, (self._one(leaves, number),))

    def _one(self, leaves: Leaves, number: Index) -> Tree:
        """The loops of a part; where the inner run is cut, inside those around it."""
        segment = Segment(number, self.cut.length)
        if self.cut.inside:
            return self._joined(leaves, segment)
        leaves, axis = self._flat(leaves, self.outer)
        return Loop(axis, (self._run(leaves),), segment)

    def _run(self, leaves: Leaves) -> Tree:
        """The inner run: of rows whose sums are ordered, in one loop."""
        if self.rows and ordered(leaves.sums):
            return self._joined(leaves, None)
        *outer, last = self.inner
        return self._over(outer, self._innermost(last, leaves.all, None, None))

    def _joined(self, leaves: Leaves, segment: Segment | None) -> Tree:
        """The inner run as one loop, or as its last axis in rows that go on where others end."""
        if len(self.inner) > 1 and self._wraps:
            leaves, around = self._flat(leaves, self.inner[:-1])
            return self._innermost(self.inner[-1], leaves.all, segment, around)
        leaves, axis = self._flat(leaves, self.inner)
        return self._innermost(axis, leaves.all, segment, None)

    def _over(self, symbols: Sequence[Symbol], nest: Tree) -> Tree:
        for symbol in reversed(symbols):
            nest = Loop(symbol, (nest,))
        return nest

    def _flat(self, leaves: Leaves, symbols: Sequence[Symbol]) -> tuple[Leaves, Symbol]:
        """The leaves with one loop variable for several."""
        if len(symbols) == 1:
            return leaves, symbols[0]
        axis = self._levels.one_for(symbols)
        places = unflat(variable(axis), [s.extent for s in symbols])
        return leaves.at(self._b, symbols, places), axis

"""Open loops, bound variables, and registers that may be reused."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Final

from weft.codegen.builder import Builder, Reg
from weft.codegen.loop.expression import Buffer
from weft.codegen.loop.index import Symbol
from weft.codegen.loop.lanes import Copy


class Scope:
    """The open loops of a builder, and the registers cached in them.

    Attributes:
        pointers: where each buffer begins.
        bound: loop variables and reductions' results, in the order in which loops opened.
        axis: the variable of the vector loop.
        lanewise: variables whose values differ from lane to lane.
        uniform: holds scalars, which are the same in all lanes.
        copies: copies to which the vector loop is unrolled.
    """

    def __init__(self, f: Builder, pointers: dict[Buffer, Reg]) -> None:
        self.f: Final = f
        self.pointers: Final = pointers
        self.bound: dict[Symbol, Reg] = {}
        self.axis: Symbol | None = None
        self.lanewise: set[Symbol] = set()
        self.uniform = Copy(1)
        self.copies: list[Copy] = []

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        """Forgets at the end what is written and bound inside."""
        holders = [self.uniform, *self.copies]
        bound, lanewise = dict(self.bound), set(self.lanewise)
        for holder in holders:
            holder.scopes.append({})
        yield
        for holder in holders:
            holder.scopes.pop()
        self.bound, self.lanewise = bound, lanewise

    @contextlib.contextmanager
    def vectors(self, axis: Symbol, first: Reg, copies: list[Copy]) -> Iterator[None]:
        """Makes `axis` the vector variable inside, starting at `first`."""
        before = (self.axis, self.copies, dict(self.bound), set(self.lanewise))
        self.axis, self.copies = axis, copies
        self.bound[axis] = first
        self.lanewise.add(axis)
        yield
        self.axis, self.copies, self.bound, self.lanewise = before

    def is_lanewise(self, symbols: Iterable[Symbol]) -> bool:
        """Whether what depends on `symbols` differs from lane to lane."""
        return not self.lanewise.isdisjoint(symbols)

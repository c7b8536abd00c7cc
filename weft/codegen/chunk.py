"""The items of a kernel, and the chunks that they are launched in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Final

from weft.codegen.builder import Builder, Reg
from weft.codegen.contraction.emit import smaller
from weft.codegen.contraction.tile import ceil_div
from weft.ir.extent import largest, smallest

CHUNKS: Final = 64
"""Maximum number of chunks: even shares for any number of threads up to 16."""


def bounds_of(b: Builder, count: Reg | int, group: Reg | int) -> tuple[Reg, Reg]:
    """The items of this call, of `count` in all: the first, and the end. A chunk has `group`."""
    first = b.mul(b.params[1], group)
    return first, smaller(b, b.mul(b.params[2], group), count)


@contextmanager
def items_of(b: Builder, count: Reg | int, group: Reg | int) -> Iterator[Reg]:
    """Loops over the items of this call."""
    with b.loop(*bounds_of(b, count, group)) as loop:
        yield loop.index


@dataclass(frozen=True)
class Items:
    """Items of work, of which a chunk has `group`: rows, blocks or panels of a kernel."""

    count: int
    group: int

    @property
    def chunks(self) -> int:
        """How many chunks there are."""
        return ceil_div(self.count, self.group)

    def bounds(self, b: Builder) -> tuple[Reg, Reg]:
        """The items of this call: the first, and the end."""
        return bounds_of(b, self.count, self.group)

    def loop(self, b: Builder) -> AbstractContextManager[Reg]:
        """Loops over the items of this call."""
        return items_of(b, self.count, self.group)


def by_work(count: int, work: int, aim: int = 1 << 16) -> Items:
    """Items of `work` units each, about one an element, in chunks of about `aim` units."""
    return Items(count, largest(1, smallest(count, aim // largest(1, work))))


def even_chunks(count: int, chunks: int = CHUNKS) -> Items:
    """Items in at most `chunks` chunks, all of one size but the last."""
    return Items(count, ceil_div(count, chunks))

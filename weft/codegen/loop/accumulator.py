"""Accumulators of reductions in registers, which loops carry from iteration to iteration."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from weft.codegen.builder import Builder, Reg, integer
from weft.codegen.loop.arithmetic import across, combine, literal, neutral
from weft.codegen.loop.convert import intrinsic
from weft.codegen.loop.emit import Writer
from weft.codegen.loop.expression import Buffer
from weft.codegen.loop.index import Symbol
from weft.codegen.loop.lanes import Copy, masked
from weft.codegen.loop.order import ACCUMULATORS, is_ordered, ordered
from weft.codegen.loop.tree import Accumulate, Segment, Vector, accumulations
from weft.ir.extent import Extent, same


class Accumulators:
    """The reductions that are open in a kernel.

    Attributes:
        masks: whether masked loads and stores are cheap; else the remainder after the last whole
            vector is done one element at a time.
        lanes_of: how many numbers of so many bytes a register holds.
        sums: accumulators by slot.
        wide: how many of them hold vectors.
        saved: copies that are unrolled, whose registers later passes over a row find.
    """

    def __init__(
        self, f: Builder, pointers: dict[Buffer, Reg], masks: bool, lanes_of: Callable[[int], int]
    ) -> None:
        self.f: Final = f
        self.masks: Final = masks
        self.lanes_of: Final = lanes_of
        self.writer: Final = Writer(f, pointers)
        self.sums: dict[Symbol, list[Reg]] = {}
        self.wide: dict[Symbol, int] = {}
        self.saved: dict[Symbol, list[Copy]] = {}

    def _begin(self, a: Accumulate, lanes: Sequence[int]) -> None:
        """Opens a reduction with accumulators of so many lanes."""
        start = neutral(a.op, a.dtype)
        self.sums[a.result] = [literal(start, a.dtype, n) for n in lanes]
        self.wide[a.result] = len([n for n in lanes if n == lanes[0]])

    def _accumulate(self, part: Accumulate, copy: Copy) -> None:
        sums = self.sums[part.result]
        value = self.writer.wide(part.value, copy)
        slot = copy.slot if copy.slot < 0 else copy.slot % self.wide[part.result]
        old = sums[slot]
        new = combine(self.f, part.op, part.dtype, old, value)
        sums[slot] = masked(self.f, copy, new, old)

    @contextlib.contextmanager
    def _open(self, start: Reg | int, stop: Reg | int, step: int) -> Iterator[Reg]:
        """A loop that carries all accumulators; yields its index."""
        slots = [(symbol, n) for symbol, regs in self.sums.items() for n in range(len(regs))]
        before = [self.sums[symbol][n] for symbol, n in slots]
        saved = dict(self.saved)
        with self.writer.scope(), self.f.loop(start, stop, step, before) as loop:
            for (symbol, n), register in zip(slots, loop.carried, strict=True):
                self.sums[symbol][n] = register
            yield loop.index
            loop.next = [self.sums[symbol][n] for symbol, n in slots]
        self.saved = saved
        for (symbol, n), register in zip(slots, loop.results, strict=True):
            self.sums[symbol][n] = register

    def _range(self, symbol: Symbol, segment: Segment | None) -> tuple[Reg, Reg]:
        if segment is None:
            return integer(0), integer(symbol.extent)
        f = self.f
        extent, size = integer(symbol.extent), integer(segment.size)
        if segment.slot is not None:
            extent = f.argument(segment.slot, "i64")
            size = f.argument(segment.slot + 1, "i64")
        if segment.part is None:
            first, last = f.params[1], f.params[2]
        else:
            first = self.writer.scalar_index(segment.part, self.writer.uniform)
            last = f.add(first, 1)
        stop = f.mul(last, size)
        if segment.part is None or not same((segment.part.high + 1) * segment.size, symbol.extent):
            stop = intrinsic(f, "llvm.smin", stop, extent)
        return f.mul(first, size), stop

    def _slots(self, inner: Vector | None, a: Accumulate) -> list[int]:
        """Lanes of a vector loop's accumulators; the last accumulator is for single elements."""
        if inner is None:
            return [1]
        count = inner.unroll
        if is_ordered(a.op, a.dtype):
            count = ACCUMULATORS * self.lanes_of(a.dtype.size) // inner.lanes
        if is_known(inner):  # the others would stay as they are
            count = min(count, -(-inner.symbol.extent // inner.lanes))
        lanes = [inner.lanes] * count
        return lanes if self.masks or inner.lanes == 1 else [*lanes, 1]

    def _total(self, a: Accumulate, sums: list[Reg]) -> Reg:
        """The result of all accumulators, by halves, as `across` goes on within a register."""
        count = self.wide.pop(a.result)
        wide, single = sums[:count], sums[count:]
        half = 1 << (count - 1).bit_length()
        while half > 1:
            half //= 2
            pairs = zip(wide, wide[half:], strict=False)
            joined = [combine(self.f, a.op, a.dtype, x, y) for x, y in pairs]
            wide = [*joined, *wide[len(joined) : half]]
        total = across(self.f, a.op, a.dtype, wide[0])
        for s in single:
            total = combine(self.f, a.op, a.dtype, total, s)
        return total


def has_order(part: Vector) -> bool:
    """Whether the order matters in which a loop's vectors are added."""
    return bool(ordered(accumulations(part.body)))


def is_known(part: Vector) -> bool:
    """Whether the iterations are the same in every run, so that they can be unrolled."""
    fixed = part.segment is None and part.around is None
    return fixed and not isinstance(part.symbol.extent, Extent)

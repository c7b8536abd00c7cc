"""The order in which a reduction combines its elements.

The order of a floating-point sum or product follows from the shape of that reduction, the type in
which it is accumulated and the target. What else a kernel computes, how a group's axes collapse,
whether sizes are numbers or extents, chunks and threads change speed, never a bit:

- Axes of one element are left out. Adjacent reduced axes are a *run*, whose elements are numbered
  in row-major order. The last run is the *inner* one, of `n` elements; the others together have
  `m` positions, which are taken in row-major order.
- *Rows*, where the last axis is reduced: element `p` of the inner run is added to accumulator
  `p % w`. There are `w` = `ACCUMULATORS` vectors of them, of as many elements of the type as the
  target's registers hold. At the end they are halved, `a[i] + a[i + w / 2]`, until one is left.
  On targets without masks this holds for whole vectors of float32; the elements that are left are
  added to one more accumulator, one after another, which is added last.
- *Columns*, where the last axis is kept: one element after another.
- A long reduction is cut in *parts* of at most `ROW` or `COLUMN` elements: parts of the inner run
  if it is longer or the only one, else as many positions outside as fit. Each part has accumulators
  of its own; the results of the parts are added one after another.
- Accumulators begin with a number that changes nothing: -0.0 for a sum.

Integers, minima and maxima give the same bits in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from weft.codegen.loop.arithmetic import EXTREMES
from weft.codegen.loop.index import Symbol
from weft.codegen.loop.tree import Accumulate
from weft.ir.dtype import DType
from weft.ir.extent import Extent, same

ACCUMULATORS: Final = 4
"""Vectors of a row's sum: they hide the latency of an addition, two of which start in a cycle."""
ROW: Final = 1 << 15
"""Elements of a part of a row: 128 KB of float32, some 10 us, far more than a chunk costs."""
COLUMN: Final = 1 << 8
"""Elements of a part of a column, whose result is written and read once more if it is a chunk."""


@dataclass(frozen=True)
class Cut:
    """How a reduction is cut.

    Attributes:
        inside: whether parts are of the inner run, or of the positions outside.
        length: iterations of a part.
        count: how many parts there are, at each position outside if they are `inside`.
        total: how many there are in all.
    """

    inside: bool
    length: int
    count: int
    total: int

    @property
    def is_whole(self) -> bool:
        """Whether there is one part for all sizes."""
        return same(self.total, 1)


def cut_of(inner: Sequence[Symbol], outer: Sequence[Symbol], rows: bool) -> Cut:
    """The cut of a reduction over the axes of an inner run and those outside."""
    most, n, m = ROW if rows else COLUMN, extent_of(inner), extent_of(outer)
    if not outer or n > most:
        count = 1 if _is_short(n, most) else -(-n // most)
        return Cut(True, most, count, count * m)
    length = most // n
    count = -(-m // length)
    return Cut(False, length, count, count)


def _is_short(n: int, most: int) -> bool:
    """Whether there is one part; with more, a kernel serves all sizes, and needs no guard."""
    return n <= most if not isinstance(n, Extent) or n.value <= most else False


def extent_of(symbols: Iterable[Symbol]) -> int:
    """The number of iterations of nested loops."""
    total = 1
    for symbol in symbols:
        total *= symbol.extent
    return total


def is_ordered(op: str, dtype: DType) -> bool:
    """Whether the result of a reduction depends on its order."""
    return dtype.is_floating and op not in EXTREMES


def ordered(sums: Iterable[Accumulate]) -> list[Accumulate]:
    """Those that depend on their order."""
    return [s for s in sums if is_ordered(s.op, s.dtype)]

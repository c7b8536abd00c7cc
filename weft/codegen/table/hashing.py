"""Hashes of ids, and prefetches: what a lookup begins with."""

from __future__ import annotations

from typing import Final

from weft.codegen.procedure import Procedure, Ref, Word
from weft.codegen.table.layout import OWNER_BITS, OWNER_SHIFT, PART_SHIFT

_FIRST: Final = 0xBF58476D1CE4E5B9
_SECOND: Final = 0x94D049BB133111EB
AHEAD: Final = 12
"""How many ids before its turn an id's memory is asked for: 100 ns of latency, 8 ns an id."""


def mixed(f: Procedure, id: Word) -> Word:
    """The hash of an id: a bijection in which each bit depends on all.

    Source: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014.
    """
    x = (id ^ (id >> 30)) * _signed(_FIRST)
    x = (x ^ (x >> 27)) * _signed(_SECOND)
    return x ^ (x >> 31)


def part_of(hash: Word) -> Word:
    """The part of a table."""
    return hash >> PART_SHIFT


def owner_of(hash: Word, owners: Word) -> Word:
    """The server among `owners`: the range of the hash's middle bits, divided evenly."""
    return ((hash >> OWNER_SHIFT) & OWNER_BITS) * owners >> (PART_SHIFT - OWNER_SHIFT)


def prefetch(f: Procedure, place: Ref, writes: bool = True) -> None:
    """Asks for a cache line."""
    flags = [f.constant(x, "i32") for x in (int(writes), 3, 1)]
    f.invoke("void", "llvm.prefetch.p0", place, *flags)


def _signed(value: int) -> int:
    return value - (1 << 64)

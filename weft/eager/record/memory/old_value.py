"""Old values that are still needed when a program overwrites their memory.

An in-place change is computed into the memory of the value before it. A thread that computes all
that it has recorded may do so, as whatever reads the old value is computed in the same program.
But other threads may have recorded a call that reads it, or be about to, and so may what this
thread has set aside. Then the old value gets a copy of the memory.

A value is needed by others if there are more references to it than the program's own records and
changes hold. So nothing has to be noted when a call is recorded. Nobody can come to need an old
value later: no tensor holds it any more.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final

import numpy as np

from weft.eager.record.call.interned_type import intern
from weft.eager.record.memory.memory_pool import copied
from weft.eager.record.pending.change import Pending
from weft.eager.record.pending.lazy import Array, Lazy, Record, begun
from weft.eager.record.pending.state import left, trace
from weft.eager.record.recognition.structure import Structure
from weft.ir.dtype import bool_
from weft.runtime.flight import land


def copies_of_needed(structure: Structure) -> dict[int, Array]:
    """Copies of the old values that others need, by their position among the leaves."""
    places = sorted({place for place in structure.homes if place >= 0})
    if not places:
        return {}
    left[:] = [x for x in left if any([y.is_live for r in x.records for y in r.outputs])]
    needed = _Needed(structure, places).found()
    if needed:
        land()
    found: dict[int, Array] = {}
    for place in needed:
        array = structure.leaves[place].array
        assert array is not None
        found[place] = copied(array, array.dtype)
    return found


class _Needed:
    """Finds which leaves that a program overwrites are needed elsewhere."""

    def __init__(self, structure: Structure, places: Sequence[int]) -> None:
        self._structure = structure
        self._places = places
        now = trace.now
        own = [now.waiting()] if now.taken is None else [now.waiting(), now.taken]
        self._records = _closure(structure, own)
        self._own = self._counted(own)

    def _counted(self, own: Iterable[Pending]) -> Counter[int]:
        """How often the program itself refers to each value, by the value's identity."""
        structure, counts = self._structure, Counter[int]()
        for record in self._records:
            counts.update(map(id, record.inputs))
        homes = {id(y): id(y.home) for r in self._records for y in r.outputs if y.home is not None}
        counts.update(homes.values())
        changes = {id(change): change for change in chain(*[x.changes for x in own])}
        counts.update(map(id, chain(*[change.values for change in changes.values()])))
        if not any([structure.leaves is record.inputs for record in structure.records]):
            counts.update(map(id, structure.leaves))
        counts.update(map(id, chain(*structure.same)))
        counts.update(map(id, structure.outputs))
        return counts

    def found(self) -> list[int]:
        """The positions of the leaves that are needed."""
        leaves = [self._structure.leaves[place] for place in self._places]
        bits = {id(leaf): 1 << i for i, leaf in enumerate(leaves)}
        needed = 0
        while leaves:
            leaf = leaves.pop()
            if _references(leaf) > self._own[id(leaf)]:
                needed |= bits[id(leaf)]
        needed |= self._read_later(bits)
        return [place for i, place in enumerate(self._places) if needed >> i & 1]

    def _read_later(self, bits: dict[int, int]) -> int:
        """The leaves that are needed for values which the program leaves pending."""
        outputs, needed = set(map(id, self._structure.outputs)), 0
        for record in self._records:
            read = 0
            for x in record.inputs:
                read |= bits.get(id(x), 0)
            if not read:
                continue
            for result in record.results:
                y = result()
                if y is None:
                    continue
                bits[id(y)] = bits.get(id(y), 0) | read
                # A later gradient may see its history.
                kept = y.tracked and y.leaf is None and record.freed is None
                if id(y) in outputs and not kept:
                    continue
                if _references(y) > self._own[id(y)]:
                    needed |= read
        return needed


def _closure(structure: Structure, own: Sequence[Pending]) -> list[Record]:
    """The program's records and others of this thread, with all that these wait for; in order."""
    found: dict[Record, None] = {}
    stack = [*structure.records, *chain(*[x.records for x in own])]
    for change in chain(*[x.changes for x in own]):
        stack += [y.record for y in change.values if y.record is not None and y.array is None]
    while stack:
        record = stack.pop()
        if record not in found:
            found[record] = None
            stack += [x.record for x in record.inputs if x.record and x.array is None]
    return sorted(found, key=_serial)


def _serial(record: Record) -> int:
    return record.serial


def _references(lazy: Lazy) -> int:
    """The number of references to a value besides those of the caller."""
    return sys.getrefcount(lazy) - _CALLER[0]


def _counted_once() -> int:
    """What `sys.getrefcount` gives where a caller's variable is the only reference."""
    lazy = begun(Lazy(), intern(bool_, ()))
    lazy.array = np.zeros((), np.bool_)
    return _references(lazy)


_CALLER: Final = [0]
_CALLER[0] = _counted_once()

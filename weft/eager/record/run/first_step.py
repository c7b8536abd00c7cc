"""Computes data and states made before the first step apart from it.

The program of the first step is then the program of all steps.
"""

from __future__ import annotations

from typing import Any, Final

from weft.eager.record.listing.collective_calls import calls_others
from weft.eager.record.pending.lazy import Lazy, Record
from weft.eager.record.recognition.structure import Structure
from weft.ops.declaration import Op

MOST: Final = 512  # forgotten together
_begun: Final[set[tuple[Any, ...]]] = set()  # structures of training steps that were met once


def made_once(structure: Structure) -> list[Lazy]:
    """Pending values that depend on numbers alone, such as data or states made before the first
    step.

    If they are computed beforehand, the program of the first step is the program of all steps. If
    they are made again at every step, they are part of the step's program from the second step on.
    What calls other ranks stays in its place: they may have met the structure before.
    """
    key, records = structure.key, structure.records
    if key in _begun or not any([r.plan.follows for r in records]):
        return []
    if len(_begun) >= MOST:
        _begun.clear()
    _begun.add(key)
    made: set[Record] = set()
    for record in records:
        known = [x.record in made if x.array is None else _is_number(x) for x in record.inputs]
        if all(known) and not (_changes_memory(record) or _is_exchange(record)):
            made.add(record)
    found = [y for y in structure.outputs if y.record in made and not y.tracked]
    if len(found) == len(structure.outputs) or calls_others(found):
        return []
    return found


def _changes_memory(record: Record) -> bool:
    """Whether it would overwrite memory that other records of the step may still read."""
    return any([y.home is not None for y in record.outputs])


def _is_exchange(record: Record) -> bool:
    called = record.plan.pattern.called
    return isinstance(called, Op) and called.facts.ordered


def _is_number(lazy: Lazy) -> bool:
    return lazy.type.shape == () and not lazy.tracked

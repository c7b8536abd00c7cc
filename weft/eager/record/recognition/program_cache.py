"""Recognizes repeated recordings, such as the steps of a training loop, by one comparison.

Walking back from the wanted values, numbering values and hashing the result takes as long as
recording did. Once there is a program, the same calls with the same edges need none of that: what
was found the last time is checked in one pass over the records. Sizes may differ each time, as
those of a growing text do, since the edges do not depend on them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final

from weft.eager.record.call.plan import Plan
from weft.eager.record.pending.lazy import Alias, Lazy, Number, Record
from weft.eager.record.recognition.structure import Memo, Structure

MOST: Final = 64  # sequences of calls; the least recently used goes first
MOST_WAYS: Final = 8  # sets of edges and wanted results for the same calls
_LEAF: Final = -1


class _Step:
    """One record: the origin of its inputs, which results are wanted, whether one is tracked.

    An input is a pair: the numbers of a record and its result, or `_LEAF` and the number of a leaf.
    """

    __slots__ = ("inputs", "tracked", "wanted")

    def __init__(self, inputs: tuple[tuple[int, int], ...], wanted: int, tracked: bool) -> None:
        self.inputs = inputs
        self.wanted = wanted  # a bit for each result
        self.tracked = tracked


class Recurrence:
    """A structure without its values, to recognize the next one like it."""

    def __init__(self, structure: Structure) -> None:
        self._key = structure.key  # for the last sizes and plans
        self._plans = [record.plan for record in structure.records]
        self._places = [i for i, item in enumerate(self._key) if isinstance(item, Plan)]
        self.homes = structure.homes
        self.memo = Memo()
        self._follows = any([record.plan.follows for record in structure.records])
        number = {record: i for i, record in enumerate(structure.records)}
        leaves = {leaf: i for i, leaf in enumerate(structure.leaves)}
        wanted = dict.fromkeys(structure.records, 0)
        for y in structure.outputs:
            if y.record is not None:
                wanted[y.record] |= 1 << y.index
        self._steps = [
            _Step(
                tuple([
                    (_LEAF, leaves[x]) if x.array is not None or x.record is None
                    else (number[x.record], x.index)
                    for x in record.inputs
                ]),
                wanted[record],
                any([y.tracked for y in record.outputs]),
            )
            for record in structure.records
        ]  # fmt: skip

    def structure(self, records: Sequence[Record]) -> Structure | None:
        """The structure of these pending records, if it matches."""
        leaves: list[Lazy] = []
        outputs: list[Lazy] = []
        for record, step in zip(records, self._steps, strict=True):
            for lazy, (place, index) in zip(record.inputs, step.inputs, strict=True):
                if place != _LEAF:
                    if lazy.record is not records[place] or lazy.index != index:
                        return None
                elif index < len(leaves):
                    if lazy is not leaves[index]:
                        return None
                elif _is_leaf(lazy, self._follows):
                    leaves.append(lazy)
                else:
                    return None
            if not _collect(record, step, outputs):
                return None
        if not _apart(leaves) or not self._at_home(outputs, leaves):
            return None
        return self._of_these(records, leaves, outputs)

    def _of_these(
        self, records: Sequence[Record], leaves: Sequence[Lazy], outputs: Sequence[Lazy]
    ) -> Structure | None:
        """The structure at the sizes of these records, unless it should be split."""
        plans = [record.plan for record in records]
        key = self.key_of(plans)
        values = tuple(records), tuple(leaves), tuple(outputs)
        found = Structure(key, *values, self.homes, (), memo=self.memo)
        if key is not self._key:
            self._key, self._plans = key, plans
        return found

    def key_of(self, plans: list[Plan]) -> tuple[Any, ...]:
        """The key of a structure with these plans, which may have other sizes."""
        if plans == self._plans:
            return self._key
        key = list(self._key)
        for place, plan in zip(self._places, plans, strict=True):
            key[place] = plan
        return tuple(key)

    def _at_home(self, outputs: Sequence[Lazy], leaves: Sequence[Lazy]) -> bool:
        """Whether outputs overwrite the memory of the same leaves as before, and may do so."""
        for y, place in zip(outputs, self.homes, strict=True):
            home = y.home
            if home is None:
                if place >= 0:
                    return False
            elif place < 0 or home is not leaves[place] or not _is_free(home):
                return False
        return True


def _is_free(home: Lazy) -> bool:
    """Whether the memory of a value may be overwritten, and no tensor holds the value."""
    return home.owner is None and home.array is not None and home.array.flags.writeable


def _is_leaf(lazy: Lazy, follows: bool) -> bool:
    """Whether a value is computed, and no gradient needs its history.

    Args:
        follows: whether there are backward passes among the calls.
    """
    if lazy.array is None or (follows and lazy.record is not None and lazy.leaf is None):
        return False
    return type(lazy) is not Alias or lazy.base.array is lazy.array


def _collect(record: Record, step: _Step, outputs: list[Lazy]) -> bool:
    """Add the results of a record that tensors hold; whether they and the tracked are as before."""
    wanted, tracked = 0, False
    for result in record.results:
        y = result()
        if y is None:
            continue
        if y.array is not None:
            return False
        tracked = tracked or y.tracked
        if y.owner is not None and y.owner() is not None:
            wanted |= 1 << y.index
            outputs.append(y)
    return wanted == step.wanted and tracked is step.tracked


def _apart(leaves: Sequence[Lazy]) -> bool:
    """Whether no two leaves share an array."""
    places = {id(x) if type(x) is Number else id(x.array) for x in leaves}
    return len(places) == len(leaves)


_met: Final[OrderedDict[tuple[object, ...], list[Recurrence]]] = OrderedDict()
"""The recurrences of each sequence, latest first: loops may alternate."""


def _calls(records: Sequence[Record]) -> tuple[object, ...]:
    """What is called in which order, regardless of sizes."""
    return tuple([record.plan.pattern for record in records])


def recurring(records: Sequence[Record]) -> Structure | None:
    """The structure of all that is pending, if it is known."""
    found = _met_before(records)
    if found is not None:
        return found
    needed = _needed(records)
    return _met_before(needed) if 0 < len(needed) < len(records) else None


def _needed(records: Sequence[Record]) -> list[Record]:
    """The records without those whose results are unused."""
    read: set[Lazy] = set()
    found: list[Record] = []
    for record in reversed(records):
        if any([y in read or y.is_live for y in record.outputs]):
            found.append(record)
            read.update(record.inputs)
    return found[::-1]


def _met_before(records: Sequence[Record]) -> Structure | None:
    ways = _met.get(_calls(records), [])
    for i, way in enumerate(ways):
        found = way.structure(records)
        if found is not None:
            if i:
                ways[:] = [way, *ways[:i], *ways[i + 1 :]]
            return found
    return None


def learn(structure: Structure) -> None:
    """Add a structure that has a program, before it runs, if it is simple enough."""
    calls, plans = _calls(structure.records), [record.plan for record in structure.records]
    ways = _met.get(calls, [])
    if len(ways) >= MOST_WAYS or any([way.key_of(plans) == structure.key for way in ways]):
        return
    if not _is_simple(structure):
        return
    _met[calls] = [Recurrence(structure), *ways]
    if len(_met) > MOST:
        _met.popitem(last=False)


def _is_simple(structure: Structure) -> bool:
    """Whether leaves come in order and share no array, and no call needs a path of its own."""
    if structure.same:
        return False
    if any([hasattr(record, "captured") for record in structure.records]):
        return False
    follows = any([record.plan.follows for record in structure.records])
    if not all([_is_leaf(x, follows) for x in structure.leaves]):
        return False
    inputs = dict.fromkeys([
        x for r in structure.records for x in r.inputs if x.array is not None or x.record is None
    ])  # fmt: skip
    return tuple(inputs) == structure.leaves

"""Listings: which routines compute recorded calls, in which order, on which values.

A listing does not depend on sizes, so one serves all recordings that differ in sizes alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from weft.eager.record.backward_calls import BackwardPass, Key, Origin, Step, Temporary
from weft.eager.record.call_routine import Pull, backward, forward, sum_of
from weft.eager.record.lazy import Record
from weft.eager.record.structure import Structure
from weft.ir.node import TensorType
from weft.library.routine import NoRoutineError, Placed


class Kind(NamedTuple):
    """Where the type of a value is found: that of a result of a record, or of an input."""

    record: int
    place: int
    is_input: bool

    def type(self, records: Sequence[Record]) -> TensorType:
        """The type."""
        record = records[self.record]
        return record.inputs[self.place].type if self.is_input else record.plan.types[self.place]


class Listed(NamedTuple):
    """A routine on values, which are numbered: the leaves first, then what is computed.

    Attributes:
        record: the number of the call.
        pull: its gradient is meant; `None`: the call itself.
        parts: if not 0, so many cotangents are added up instead.
        outputs: the results, and where their types are found.
        dead: values whose memory is not needed any more after it.
    """

    record: int
    pull: Pull | None
    parts: int
    inputs: tuple[int, ...]
    outputs: tuple[tuple[int, Kind], ...]
    dead: tuple[int, ...]

    def placed(self, records: Sequence[Record]) -> Placed:
        """The routine at the sizes of these records."""
        if self.parts:
            return sum_of(self.outputs[0][1].type(records), self.parts)
        record = records[self.record]
        return forward(record) if self.pull is None else backward(record, self.pull).placed


@dataclass(frozen=True, eq=False)
class Listing:
    """What computes a structure.

    Attributes:
        count: how many values there are.
        fills: values that are one number throughout, where their types are found, the number.
        shared: values with the memory of another one, and that one.
        outputs: the values that are the structure's outputs, and those whose memory they have.
    """

    steps: tuple[Listed, ...]
    count: int
    fills: tuple[tuple[int, Kind, int], ...]
    shared: tuple[tuple[int, int], ...]
    outputs: tuple[tuple[int, int], ...]


def listing_of(structure: Structure) -> Listing:
    """The listing of a structure.

    Raises:
        NoRoutineError: a call has no routine.
    """
    return _Lister(structure).listing()


class _Lister:
    """Lists the steps of a structure's records, then numbers their values."""

    def __init__(self, structure: Structure) -> None:
        if any([x.tracked and first.tracked for x, first in structure.same]):
            raise NoRoutineError
        self._structure = structure
        self._steps: list[Step] = []
        self._stands_for: dict[Key, Key] = {}  # a gradient -> the value that it is
        self._results: dict[Record, tuple[Key, ...]] = {}
        records = structure.records
        last = max([r.serial for r in records if r.plan.follows], default=-1)
        for i, record in enumerate(records):
            self._add(record, records[:i], last)
        self._place = {record: i for i, record in enumerate(records)}
        self._number: dict[Key, int] = {x: i for i, x in enumerate(structure.leaves)}
        self._number.update({x: self._number[first] for x, first in structure.same})
        self._count = len(structure.leaves)
        self._root: dict[int, int] = {}  # a value -> the one whose memory it has
        self._fills: list[tuple[int, Kind, int]] = []

    def _add(self, record: Record, history: Sequence[Record], last: int) -> None:
        plan = record.plan
        if plan.variable:
            raise NoRoutineError
        pairs = [
            (Temporary(Origin(record, i)) if (y := result()) is None else y, Origin(record, i))
            for i, result in enumerate(record.results)
        ]  # fmt: skip
        results = self._results[record] = tuple([y for y, _ in pairs])
        if plan.follows:
            passed = BackwardPass(record, history, self._results.__getitem__, last)
            self._steps += passed.steps
            self._stands_for.update(zip(results, passed.found, strict=True))
        elif any([isinstance(y, Temporary) or y.array is None for y in results]):  # no history
            forward(record)
            self._steps.append(Step(record, None, 0, record.inputs, tuple(pairs)))

    def listing(self) -> Listing:
        """The listing."""
        outputs = tuple(map(self._key, self._structure.outputs))
        needed = self._needed(outputs)
        steps = [self._numbered(step, reads) for step, reads in needed]
        numbers = [self._numbered_key(y) for y in outputs]
        roots = [self._root.get(n, n) for n in numbers]
        return Listing(
            tuple(self._with_dead(steps, frozenset(roots))), self._count, tuple(self._fills),
            tuple(self._root.items()), tuple(zip(numbers, roots, strict=True)),
        )  # fmt: skip

    def _key(self, key: Key) -> Key:
        """What a value is computed as."""
        while key in self._stands_for:
            key = self._stands_for[key]
        return key

    def _needed(self, outputs: Sequence[Key]) -> list[tuple[Step, Placed]]:
        """The steps that matter, in order, with their routines."""
        wanted = set(outputs)
        found: list[tuple[Step, Placed]] = []
        for step in reversed(self._steps):
            if any([y in wanted for y, _ in step.outputs]):
                placed = _placed(step)
                found.append((step, placed))
                wanted.update([self._key(step.inputs[i]) for i in placed.routine.reads])
        return found[::-1]

    def _numbered(self, step: Step, placed: Placed) -> Listed:
        routine = placed.routine
        inputs = [
            self._numbered_key(self._key(x)) if i in routine.reads else -1
            for i, x in enumerate(step.inputs)
        ]  # fmt: skip
        outputs: list[tuple[int, Kind]] = []
        for i, ((y, origin), number) in enumerate(zip(step.outputs, routine.results, strict=True)):
            own = self._new(y)
            outputs.append((own, self._kind(origin)))
            if number < routine.inputs:
                self._root[own] = self._root.get(inputs[number], inputs[number])
            elif number < routine.inputs + i:
                first = outputs[number - routine.inputs][0]
                self._root[own] = self._root.get(first, first)
        place = self._place[step.record]
        return Listed(place, step.pull, step.parts, tuple(inputs), tuple(outputs), ())

    def _new(self, key: Key) -> int:
        self._number[key] = self._count
        self._count += 1
        return self._count - 1

    def _numbered_key(self, key: Key) -> int:
        found = self._number.get(key)
        if found is None:  # a constant, such as the cotangent at the start
            assert isinstance(key, Temporary) and key.fill is not None
            found = self._new(key)
            self._fills.append((found, self._kind(key.origin), key.fill))
        return found

    def _kind(self, origin: Origin) -> Kind:
        return Kind(self._place[origin.record], origin.place, origin.is_input)

    def _with_dead(self, steps: Sequence[Listed], kept: frozenset[int]) -> list[Listed]:
        """The steps with what is dead after each: what is read or written last there."""
        seen = set(kept) | set(range(len(self._structure.leaves)))
        found: list[Listed] = []
        for step in reversed(steps):
            used = [*step.inputs, *[y for y, _ in step.outputs]]
            roots = dict.fromkeys([self._root.get(n, n) for n in used if n >= 0])
            found.append(step._replace(dead=tuple([n for n in roots if n not in seen])))
            seen.update(roots)
        return found[::-1]


def _placed(step: Step) -> Placed:
    if step.parts:
        return sum_of(step.outputs[0][1].type, step.parts)
    if step.pull is None:
        return forward(step.record)
    return backward(step.record, step.pull).placed

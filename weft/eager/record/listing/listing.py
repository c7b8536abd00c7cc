"""Listings: which routines compute recorded calls, in which order, on which values.

A listing does not depend on sizes, so one serves all recordings that differ in sizes alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

from weft.eager.record.listing.backward_calls import (
    JOIN,
    MOST_DENSE,
    SPLIT,
    BackwardPass,
    Fill,
    Key,
    Step,
    Temporary,
    Way,
    is_join,
    type_at,
)
from weft.eager.record.listing.call_routine import Pull, backward, forward, sum_of
from weft.eager.record.pending.lazy import Lazy, Record
from weft.eager.record.recognition.structure import Structure, meet_values
from weft.ir.node import TensorType
from weft.ir.shape import known, size
from weft.library.formula import packed
from weft.library.kernel_list import KernelList, Row
from weft.library.routine import NoRoutineError
from weft.ops.declaration import Op


class Kind(NamedTuple):
    """Where the type of a value is found: in a record, as `type_at` takes it."""

    record: int
    place: int

    def type(self, records: Sequence[Record]) -> TensorType:
        """The type."""
        return type_at(records[self.record], self.place)


class Listed(NamedTuple):
    """A step.

    Attributes:
        record: the number of the call.
        pull: its gradient is meant; `None`: the call itself.
        parts: see `Way`.
        place: where the type of its first result is found.
    """

    record: int
    pull: Pull | None
    parts: int
    place: int

    def add(self, records: Sequence[Record]) -> None:
        """Makes the routine at the sizes of these records."""
        record = records[self.record]
        if self.parts > 0:
            sum_of(type_at(record, self.place), self.parts)
        elif self.pull is None:
            forward(record, anew=True)
        else:
            backward(record, self.pull, anew=True)


@dataclass(frozen=True, eq=False)
class Listing:
    """What computes a structure.

    Attributes:
        kernels: the steps as native code takes them.
        fills: values that are one number throughout, where their types are found, the number.
        outputs: the values whose memory the structure's outputs have.
        owned: values with arrays of their own, and where their types are found.
        updates: those that are written where the leaves lie that they replace.
        guard: the first step that does so, if an earlier one may fail; else 0.
        rest: sizes behind those of the plans.
        bytes: of all sizes.
    """

    steps: tuple[Listed, ...]
    kernels: KernelList
    fills: tuple[tuple[int, Kind, int], ...]
    outputs: tuple[int, ...]
    owned: tuple[tuple[int, Kind], ...]
    updates: dict[int, int]
    guard: int
    rest: bytes
    bytes: int

    def sizes(self, records: Sequence[Record]) -> bytes | None:
        """All sizes of these records; `None` if the listing does not fit them."""
        found = b"".join([*[record.plan.packed for record in records], self.rest])
        return found if len(found) == self.bytes else None


def listing_of(structure: Structure) -> Listing:
    """The listing of a structure.

    Raises:
        NoRoutineError: a call has no routine.
    """
    return _Lister(structure).listing()


class Calls:
    """The calls of a structure and their gradients.

    Attributes:
        results: what a record's results are known by.
        gradients: for each record the gradients and sums that it stands for, if it is a backward
            pass.

    Raises:
        NoRoutineError: a backward pass goes through more than calls with gradients of their own, a
            gradient is to stay row-sparse, or a view has no room.
    """

    def __init__(self, structure: Structure) -> None:
        meet_values(structure)
        if any([x.tracked and first.tracked for x, first in structure.same]):
            raise NoRoutineError
        records = structure.records
        plans = dict.fromkeys([record.plan for record in records])
        if any([plan.boundless for plan in plans]):
            raise NoRoutineError  # a view may be larger than memory: only a whole program fuses it
        if any([_is_recomputed(plan.pattern.called) for plan in plans]):
            raise NoRoutineError  # in backward passes, which only a whole program does
        self.results: dict[Record, tuple[Key, ...]] = {
            record: tuple([result() or Temporary() for result in record.results])
            for record in records
        }
        self.gradients: list[Sequence[Step]] = []
        self._stands_for: dict[Key, Key] = {}  # a gradient -> the value that it is
        self._ways: dict[Any, Way] = {}
        last = max([r.serial for r in records if r.plan.follows], default=-1)
        takes_rows = any([plan.pattern.takes_rows for plan in plans])
        needs_rows = any([plan.pattern.needs_rows for plan in plans])
        most = (lambda _: 0) if needs_rows else _most_dense(structure)
        for i, record in enumerate(records):
            if not record.plan.follows:
                self.gradients.append(())
                continue
            shown = any([y.record is record for y in structure.outputs])
            dense = most if shown or takes_rows else lambda _: math.inf
            found = BackwardPass(record, records[:i], self.results, self._ways, last, dense)
            self._stands_for.update(zip(self.results[record], found.found, strict=True))
            self.gradients.append(found.steps)

    def key(self, key: Key) -> Key:
        """What a value is computed as."""
        while key in self._stands_for:
            key = self._stands_for[key]
        return key

    def keys(self, keys: tuple[Key, ...]) -> tuple[Key, ...]:
        """What values are computed as."""
        if self._stands_for.keys().isdisjoint(keys):
            return keys
        return tuple(map(self.key, keys))

    def call(self, record: Record) -> Step | None:
        """A call itself; `None` if its results are known: then it is history alone."""
        results = self.results[record]
        if record.plan.follows or all(
            [isinstance(y, Lazy) and y.array is not None for y in results]
        ):
            return None
        way = self._ways.get(record.plan)
        if way is None:
            places, count = range(len(results)), len(record.inputs)
            if is_join(record):
                way = Way([*places, *[~i for i in range(count)]], None, JOIN)
                outputs = (*results, *[Temporary() for _ in range(count)])
                return Step(record, way, record.inputs, outputs)
            way = self._ways[record.plan] = Way(places)
        return Step(record, way, record.inputs, results)


def _most_dense(structure: Structure) -> Callable[[TensorType], float]:
    """Elements of the largest array of a type whose gradient is dense if it could be row-sparse.

    If what else is read is larger, such as layers that are updated as a whole, it takes more time.
    """
    tables = {x for r in structure.records if r.plan.pattern.takes_rows for x in r.inputs}
    sizes: Counter[TensorType] = Counter()
    for x in structure.leaves:
        sizes[x.type] += 0 if x in tables else size(known(x.type.shape))
    return lambda kind: max(MOST_DENSE, sizes.total() - sizes[kind])


def _is_recomputed(called: object) -> bool:
    return isinstance(called, Op) and called.facts.again is not None


_Numbered = tuple[int, Step, Sequence[int], range]
"""A step and the number of its call, on values by number: the leaves first, then what is computed;
-1 is an input that is not computed, as only its type is read."""


class _Lister:
    """Numbers the values of a structure."""

    def __init__(self, structure: Structure) -> None:
        self._structure = structure
        self._calls = Calls(structure)
        counts = [len(record.plan.packed) // 8 for record in structure.records]
        *self._begins, self._end = accumulate(counts, initial=0)  # of the sizes of each plan
        self._rest: list[int] = []  # sizes that are in no plan, behind the others
        self._place = {record: i for i, record in enumerate(structure.records)}
        self._number: dict[Key, int] = {x: i for i, x in enumerate(structure.leaves)}
        self._number.update({x: self._number[first] for x, first in structure.same})
        self._count = len(structure.leaves)
        self._root: dict[int, int] = {}  # a value -> the one whose memory it has
        self._place_of: dict[int, int] = {}  # a value -> an earlier one that begins where it does
        self._inner: set[int] = set()  # values in the middle of others' memory
        self._fills: list[tuple[int, Kind, int]] = []
        self._constant: dict[int, int] = {}  # a value -> the constant of its routine that it is

    def listing(self) -> Listing:
        """The listing."""
        outputs = self._calls.keys(self._structure.outputs)
        steps = [self._numbered(*each) for each in self._needed(outputs)]
        numbers = [self._numbered_key(y) for y in outputs]
        kept = frozenset([self._root.get(n, n) for n in numbers])
        owned = tuple([
            (y, Kind(place, at))
            for place, step, _, ys in steps
            if not kept.isdisjoint(ys)
            for y, at in _own(step, ys)
            if y in kept and y not in self._constant
        ])  # fmt: skip
        leaves = range(len(self._structure.leaves))
        given = [*leaves, *[y for y, *_ in self._fills], *[y for y, _ in owned]]
        is_given = frozenset(given)
        dead = self._dead(steps, kept)
        rows = [self._row(step, is_given, ends) for step, ends in zip(steps, dead, strict=True)]
        kernels = KernelList(rows, self._count, given)
        roots = tuple([n if n in self._inner else self._root.get(n, n) for n in numbers])
        updates, guard = self._updates(steps, roots)
        listed = [Listed(i, s.way.pull, s.way.parts, s.way.places[0]) for i, s, _, _ in steps]
        return Listing(
            tuple(listed), kernels, tuple(self._fills), roots, owned, updates, guard,
            packed(self._rest), 8 * (self._end + len(self._rest)),
        )  # fmt: skip

    def _updates(
        self, steps: Sequence[_Numbered], roots: Sequence[int]
    ) -> tuple[dict[int, int], int]:
        """What is written where the leaf lies that it replaces; see `Listing`.

        Nothing may read the leaf later, and nothing may fail any more.
        """
        homes = dict(zip(roots, self._structure.homes, strict=True))
        ways = {step.way: step.way.ready for _, step, _, _ in steps}
        routines = {way: ready and ready.case.routine for way, ready in ways.items()}
        if max(homes.values(), default=-1) < 0 or any([r and r.calls for r in routines.values()]):
            return {}, 0  # Ctrl-C may end a call of Python
        found: dict[int, int] = {}
        first, read = len(steps), set(roots)
        for i in range(len(steps) - 1, -1, -1):
            _, step, inputs, ys = steps[i]
            inputs, routine = [self._root.get(n, n) for n in inputs], routines[step.way]
            if routine is None:
                read.update(inputs)
                continue
            if routine.fails:
                return found, first if found else 0
            for k, y in enumerate(ys, routine.inputs):
                home = homes.get(y, -1)
                if home < 0 or home in read or roots.count(y) > 1:
                    continue
                places = [j for j in routine.reads if inputs[j] == home]
                if all([(j, k) in routine.updates for j in places]):
                    found[y], first = home, i
            read.update([inputs[j] for j in routine.reads])
        return found, 0

    def _row(self, each: _Numbered, given: frozenset[int], dead: Sequence[int]) -> Row:
        """A step as native code takes it."""
        place, (record, way, _, _), inputs, ys = each
        begin, is_shared = self._begins[place], record.plan.pattern.shared
        outputs: list[int] = []
        for y, at, (item, offset, rank) in zip(ys, way.places, way.sizes, strict=True):
            first = begin + offset
            if not is_shared:  # the plan has no sizes, as it is for one size alone
                first = self._end + len(self._rest)
                self._rest += known(type_at(record, at).shape)
            same, constant = self._place_of.get(y, -1), self._constant.get(y, -1)
            outputs += (y, same, constant, y in given, item, first, rank)
        if way.ready is None:
            if way.parts == SPLIT:
                outputs, inputs = [inputs[0], -1, -1, 1, 0, 0, 0, *outputs], []
            return Row(None, 0, 0, inputs, outputs, dead)
        if way.parts:
            begin = outputs[5]
        return Row(way.ready.call.choice, begin, way.ready.case.layout, inputs, outputs, dead)

    def _needed(self, outputs: tuple[Key, ...]) -> list[tuple[Step, tuple[Key, ...]]]:
        """The steps that matter, in order, with what their inputs are computed as."""
        wanted, calls, records = set(outputs), self._calls, self._structure.records
        found: list[tuple[Step, tuple[Key, ...]]] = []
        for place in range(len(records) - 1, -1, -1):
            steps = calls.gradients[place]
            if not (steps or wanted.isdisjoint(calls.results[records[place]])):
                call = calls.call(records[place])
                steps = () if call is None else (call,)
            for step in reversed(steps):
                if wanted.isdisjoint(step.outputs):
                    continue
                inputs, reads = calls.keys(step.inputs), step.way.reads
                if reads is None:
                    reads = step.way.prepared(step)
                found.append((step, inputs))
                wanted.update([inputs[i] for i in reads])
        return found[::-1]

    def _numbered(self, step: Step, keys: Sequence[Key]) -> _Numbered:
        record, way, _, results = step
        find = self._number.get
        inputs = [find(x, -1) for x in keys]
        if -1 in inputs:
            for i in way.reads or ():
                inputs[i] = self._numbered_key(keys[i])
        first = self._count
        self._count += len(results)
        ys = range(first, self._count)
        self._number.update(zip(results, ys, strict=True))
        if way.ready is None:
            whole, parts = (ys[0], ys[1:]) if way.parts == JOIN else (inputs[0], ys)
            self._root.update(dict.fromkeys(parts, self._root.get(whole, whole)))
            self._inner.update(parts)
        elif not way.own:
            for y, result in zip(ys, way.ready.case.routine.results, strict=True):
                self._note_same(y, result - len(inputs), inputs, ys)
        return self._place[record], step, inputs, ys

    def _note_same(self, y: int, result: int, inputs: Sequence[int], ys: range) -> None:
        """Notes what a value is if it is an input, another result, or a constant."""
        if result >= len(ys):
            self._constant[y] = result - len(ys)
            return
        same = inputs[result] if result < 0 else ys[result]
        if same == y:
            return
        self._place_of[y] = same
        self._root[y] = self._root.get(same, same)
        if same in self._inner:
            self._inner.add(y)

    def _numbered_key(self, key: Key) -> int:
        found = self._number.get(key)
        if found is None:  # a constant, such as the cotangent at the start
            assert isinstance(key, Fill)
            found = self._number[key] = self._count
            self._count += 1
            self._fills.append((found, Kind(self._place[key.record], ~key.place), key.number))
        return found

    def _dead(self, steps: Sequence[_Numbered], kept: frozenset[int]) -> list[Sequence[int]]:
        """What is dead after each step: what is read or written last there."""
        seen = {-1, *kept, *range(len(self._structure.leaves))}
        root = [*range(self._count), -1]  # the last one is that of -1
        for y, same in self._root.items():
            root[y] = same
        found: list[Sequence[int]] = []
        for _, _, inputs, ys in reversed(steps):
            used = {root[n] for n in (*inputs, *ys)}  # a few of them are not read
            used -= seen
            seen |= used
            found.append([*used])
        return found[::-1]


def _own(step: Step, ys: Sequence[int]) -> Sequence[tuple[int, int]]:
    """The outputs that may have arrays of their own, and where their types are found."""
    way = step.way
    last = 0 if way.parts == SPLIT else 1 if way.parts == JOIN else len(ys)
    return [*zip(ys[:last], way.places, strict=False)]

"""Listings: which routines compute recorded calls, in which order, on which values.

A listing does not depend on sizes, so one serves all recordings that differ in sizes alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from weft.eager.record.call.plan import Plan
from weft.eager.record.listing.backward_calls import (
    DENSE_SHARE,
    JOIN,
    MOST_DENSE,
    SPLIT,
    BackwardPass,
    Key,
    Origin,
    Step,
    Temporary,
    is_join,
)
from weft.eager.record.listing.call_routine import Pull, Ready, backward, forward, sum_of
from weft.eager.record.pending.lazy import Lazy, Record
from weft.eager.record.recognition.structure import Structure, meet_values
from weft.ir.node import TensorType
from weft.ir.shape import known, size
from weft.library.formula import packed
from weft.library.kernel_list import KernelList, Output, Row
from weft.library.routine import NoRoutineError
from weft.ops.declaration import Op


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
        parts: see `Step`.
        inputs: -1 is one that is not computed, as only its type is read.
        outputs: the results, and where their types are found.
        ready: how it is computed at the sizes for which it was listed; none if memory is divided.
        dead: values whose memory is not needed any more after it.
    """

    record: int
    pull: Pull | None
    parts: int
    inputs: tuple[int, ...]
    outputs: tuple[tuple[int, Kind], ...]
    ready: Ready | None
    dead: tuple[int, ...] = ()

    def add(self, records: Sequence[Record]) -> None:
        """Makes the routine at the sizes of these records."""
        if self.parts > 0:
            sum_of(self.outputs[0][1].type(records), self.parts)
        elif self.pull is None:
            forward(records[self.record], anew=True)
        else:
            backward(records[self.record], self.pull, anew=True)


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
        if any([record.plan.boundless for record in records]):
            raise NoRoutineError  # a view may be larger than memory: only a whole program fuses it
        if any(map(_is_recomputed, records)):
            raise NoRoutineError  # in backward passes, which only a whole program does
        self.results: dict[Record, tuple[Key, ...]] = {
            record: tuple([
                Temporary(Origin(record, i)) if (y := result()) is None else y
                for i, result in enumerate(record.results)
            ])
            for record in records
        }  # fmt: skip
        self.gradients: list[Sequence[Step]] = []
        self._stands_for: dict[Key, Key] = {}  # a gradient -> the value that it is
        last = max([r.serial for r in records if r.plan.follows], default=-1)
        takes_rows = any([r.plan.pattern.takes_rows for r in records])
        most = 0 if any([r.plan.pattern.needs_rows for r in records]) else _most_dense(structure)
        for i, record in enumerate(records):
            self.gradients.append(())
            if record.plan.follows:
                shown = any([y.record is record for y in structure.outputs])
                dense = most if shown or takes_rows else math.inf
                found = BackwardPass(record, records[:i], self.results.__getitem__, last, dense)
                self._stands_for.update(zip(self.results[record], found.found, strict=True))
                self.gradients[i] = found.steps

    def key(self, key: Key) -> Key:
        """What a value is computed as."""
        while key in self._stands_for:
            key = self._stands_for[key]
        return key

    def steps(self, structure: Structure) -> list[Step]:
        """All calls and gradients in order."""
        found: list[Step] = []
        for record, steps in zip(structure.records, self.gradients, strict=True):
            results = self.results[record]
            known = all([isinstance(y, Lazy) and y.array is not None for y in results])
            if not (record.plan.follows or known):  # else it is history alone
                pairs = tuple([(y, Origin(record, j)) for j, y in enumerate(results)])
                parts = 0
                if is_join(record):
                    origins = [Origin(record, j, True) for j in range(len(record.inputs))]
                    parts, pairs = JOIN, (*pairs, *[(Temporary(o), o) for o in origins])
                found.append(Step(record, None, parts, record.inputs, pairs))
            found += steps
        return found


def _most_dense(structure: Structure) -> int:
    """Elements of the largest array whose gradient is dense if it could be row-sparse."""
    given = sum([size(known(x.type.shape)) for x in structure.leaves])
    return max(MOST_DENSE, given // DENSE_SHARE)


class Sizes:
    """Where the sizes of records are: those of their plans, one after another."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = records
        self.begins: list[int] = []
        self._end = 0
        self._rest: list[int] = []
        self._offsets: dict[Plan, list[int]] = {}
        for record in records:
            self.begins.append(self._end)
            self._end += len(record.plan.packed) // 8

    def first(self, kind: Kind) -> int:
        """The place of the first of the sizes of a type."""
        plan = self._records[kind.record].plan
        if not plan.pattern.shared:  # the plan has no sizes, as it is for one size alone
            shape = known(kind.type(self._records).shape)
            self._rest += shape
            return self._end + len(self._rest) - len(shape)
        offsets = self._offsets.get(plan)
        if offsets is None:
            ranks = [len(known(t.shape)) for t in (*plan.given, *plan.types)]
            offsets = self._offsets[plan] = [0, *itertools.accumulate(ranks)]
        place = kind.place if kind.is_input else len(plan.given) + kind.place
        return self.begins[kind.record] + offsets[place]

    @property
    def rest(self) -> bytes:
        """The sizes that are in no plan, behind the others."""
        return packed(self._rest)

    @property
    def bytes(self) -> int:
        """Of all sizes."""
        return 8 * (self._end + len(self._rest))


def _is_recomputed(record: Record) -> bool:
    called = record.plan.pattern.called
    return isinstance(called, Op) and called.facts.again is not None


class _Lister:
    """Numbers the values of a structure."""

    def __init__(self, structure: Structure) -> None:
        self._structure = structure
        self._calls = Calls(structure)
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
        outputs = tuple(map(self._calls.key, self._structure.outputs))
        steps = [self._numbered(*each) for each in self._needed(outputs)]
        numbers = [self._numbered_key(y) for y in outputs]
        kept = frozenset([self._root.get(n, n) for n in numbers])
        steps = tuple(self._with_dead(steps, kept))
        owned = tuple([
            (y, kind)
            for step in steps
            for y, kind in _own(step)
            if y in kept and y not in self._constant
        ])  # fmt: skip
        leaves = range(len(self._structure.leaves))
        given = [*leaves, *[y for y, *_ in self._fills], *[y for y, _ in owned]]
        sizes = Sizes(self._structure.records)
        is_given = frozenset(given)
        rows = [self._row(step, sizes, is_given) for step in steps]
        kernels = KernelList(rows, self._count, given)
        roots = tuple([n if n in self._inner else self._root.get(n, n) for n in numbers])
        updates, guard = self._updates(steps, roots)
        return Listing(
            steps, kernels, tuple(self._fills), roots, owned, updates, guard, sizes.rest,
            sizes.bytes,
        )  # fmt: skip

    def _updates(self, steps: Sequence[Listed], roots: Sequence[int]) -> tuple[dict[int, int], int]:
        """What is written where the leaf lies that it replaces; see `Listing`.

        Nothing may read the leaf later, and nothing may fail any more.
        """
        homes = dict(zip(roots, self._structure.homes, strict=True))
        routines = [step.ready.case.routine if step.ready else None for step in steps]
        if max(homes.values(), default=-1) < 0 or any([r and r.calls for r in routines]):
            return {}, 0  # Ctrl-C may end a call of Python
        found: dict[int, int] = {}
        first, read = len(steps), set(roots)
        for i in range(len(steps) - 1, -1, -1):
            step, routine = steps[i], routines[i]
            if routine is None:
                read |= {self._root.get(n, n) for n in step.inputs}
                continue
            if routine.fails:
                return found, first if found else 0
            inputs = [self._root.get(n, n) for n in step.inputs]
            now = {inputs[j] for j in routine.reads}
            for k, (y, _) in enumerate(step.outputs, routine.inputs):
                home = homes.get(y, -1)
                if home < 0 or home in read or roots.count(y) > 1:
                    continue
                places = [j for j in routine.reads if inputs[j] == home]
                if all([(j, k) in routine.updates for j in places]):
                    found[y], first = home, i
            read |= now
        return found, 0

    def _row(self, step: Listed, sizes: Sizes, given: frozenset[int]) -> Row:
        """A step as native code takes it."""
        first = sizes.begins[step.record]
        if step.parts > 0:
            first = sizes.first(step.outputs[0][1])
        records, places, constants = self._structure.records, self._place_of, self._constant
        outputs: list[Output] = []
        for y, kind in step.outputs:
            dtype, shape = kind.type(records)
            outputs.append(Output(
                y, places.get(y, -1), constants.get(y, -1), int(y in given), dtype.size,
                sizes.first(kind), len(known(shape)),
            ))  # fmt: skip
        if step.ready is None:
            inputs = step.inputs
            if step.parts == SPLIT:
                outputs, inputs = [Output(step.inputs[0], -1, -1, 1, 0, 0, 0), *outputs], ()
            return Row(None, 0, 0, inputs, outputs, step.dead)
        cases, layout = step.ready.call.choice, step.ready.case.layout
        return Row(cases, first, layout, step.inputs, outputs, step.dead)

    def _needed(self, outputs: Sequence[Key]) -> list[tuple[Step, Ready | None]]:
        """The steps that matter, in order, with their routines."""
        wanted, key = set(outputs), self._calls.key
        found: list[tuple[Step, Ready | None]] = []
        for step in reversed(self._calls.steps(self._structure)):
            if any([y in wanted for y, _ in step.outputs]):
                ready = None if step.parts < 0 else _ready(step)
                found.append((step, ready))
                inputs = step.inputs
                if ready is not None:
                    inputs = [inputs[i] for i in ready.case.routine.reads]
                wanted.update(map(key, inputs))
        return found[::-1]

    def _numbered(self, step: Step, ready: Ready | None) -> Listed:
        key, place = self._calls.key, self._place[step.record]
        if ready is None:
            inputs = [self._numbered_key(key(x)) for x in step.inputs]
            outputs = [(self._new(y), self._kind(origin)) for y, origin in step.outputs]
            whole, parts = inputs[0], outputs
            if step.parts == JOIN:
                (whole, _), *parts = outputs
            for part, _ in parts:
                self._root[part] = self._root.get(whole, whole)
            self._inner.update([part for part, _ in parts])
            return Listed(place, None, step.parts, tuple(inputs), tuple(outputs), None)
        routine, number = ready.case.routine, self._number
        reads = routine.reads
        inputs = [
            self._numbered_key(key(x)) if i in reads else number.get(key(x), -1)
            for i, x in enumerate(step.inputs)
        ]
        outputs = []
        for i, ((y, origin), result) in enumerate(zip(step.outputs, routine.results, strict=True)):
            own = self._new(y)
            outputs.append((own, self._kind(origin)))
            if result == routine.inputs + i:
                continue
            if result >= routine.inputs + len(step.outputs):
                self._constant[own] = result - routine.inputs - len(step.outputs)
                continue
            is_input = result < routine.inputs
            same = inputs[result] if is_input else outputs[result - routine.inputs][0]
            self._place_of[own] = same
            self._root[own] = self._root.get(same, same)
            if same in self._inner:
                self._inner.add(own)
        return Listed(place, step.pull, step.parts, tuple(inputs), tuple(outputs), ready)

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
            used = [*step.inputs, *[y for y, _ in step.outputs]]  # a few of them are not read
            roots = dict.fromkeys([self._root.get(n, n) for n in used if n >= 0])
            found.append(step._replace(dead=tuple([n for n in roots if n not in seen])))
            seen.update(roots)
        return found[::-1]


def _own(step: Listed) -> Sequence[tuple[int, Kind]]:
    """The outputs that may have arrays of their own."""
    return () if step.parts == SPLIT else step.outputs[:1] if step.parts == JOIN else step.outputs


def _ready(step: Step) -> Ready:
    if step.parts > 0:
        return sum_of(step.outputs[0][1].type, step.parts)
    return forward(step.record) if step.pull is None else backward(step.record, step.pull)

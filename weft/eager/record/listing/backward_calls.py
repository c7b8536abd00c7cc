"""Backward passes as calls: the gradient of each recorded call, and the sums of cotangents."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

from weft.eager.record.listing.call_routine import Pull, Ready, backward, forward, sum_of
from weft.eager.record.pending.lazy import Lazy, Record
from weft.eager.record.recognition.structure import is_cut
from weft.ir.node import TensorType
from weft.ir.shape import known, size
from weft.library.routine import NoRoutineError
from weft.ops.declaration import REGISTRY


class Temporary:
    """A value that no tensor holds: a cotangent, or a result that is not referred to."""

    __slots__ = ()


class Fill(Temporary):
    """A cotangent that is one number throughout, of the type of an input of a record."""

    __slots__ = ("number", "place", "record")

    def __init__(self, record: Record, place: int, number: int) -> None:
        self.record: Final = record
        self.place: Final = place
        self.number: Final = number


Key = Lazy | Temporary
"""What stands for a value."""


def type_at(record: Record, place: int) -> TensorType:
    """The type of a result of a record, or of input `~place`."""
    return record.plan.types[place] if place >= 0 else record.inputs[~place].type


class Way:
    """What steps on equal plans do: a call, its gradient, or a sum of cotangents.

    Attributes:
        pull: which gradient; `None`: the call itself.
        parts: if above 0, so many cotangents are added up instead; if `JOIN`, the inputs are copied
            to the other outputs, which the memory of the first one consists of; if `SPLIT`, the
            outputs are what the memory of the input consists of.
        places: where the types of the outputs are found, as `type_at` takes it.
        reads: the inputs that are read, once it is `prepared`.
        ready: how it is computed then; `None` if memory is divided.
        own: whether all outputs have memory of their own.
        sizes: for the types of the outputs the bytes of an element, the place of the first size
            among those of the plan, and the rank.
    """

    __slots__ = ("own", "parts", "places", "pull", "reads", "ready", "sizes")

    def __init__(
        self, places: Sequence[int], pull: Pull | None = None, parts: int = 0,
        ready: Ready | None = None,
    ) -> None:  # fmt: skip
        self.places: Final = places
        self.pull: Final = pull
        self.parts: Final = parts
        self.ready = ready
        self.reads: Collection[int] | None = None
        self.own = False
        self.sizes: list[tuple[int, int, int]] = []

    def prepared(self, step: Step) -> Collection[int]:
        """Finds the routine at the sizes of a step; returns which inputs are read.

        Raises:
            NoRoutineError: there is none.
        """
        record = step.record
        if self.ready is None and self.parts >= 0:
            kind = type_at(record, self.places[0])
            self.ready = sum_of(kind, self.parts) if self.parts else forward(record)
        if self.ready is None:
            self.reads = range(len(step.inputs))
        else:
            routine = self.ready.case.routine
            self.reads = routine.reads
            count = len(routine.results)
            self.own = routine.results == (*range(routine.inputs, routine.inputs + count),)
        given, kinds = record.plan.given, (*record.plan.given, *record.plan.types)
        ranks = [len(known(kind.shape)) for kind in kinds]
        begins = [*accumulate(ranks, initial=0)]
        at = [len(given) + place if place >= 0 else ~place for place in self.places]
        self.sizes = [(kinds[i].dtype.size, begins[i], ranks[i]) for i in at]
        return self.reads


class Step(NamedTuple):
    """A call, its gradient, or a sum of cotangents, on values."""

    record: Record
    way: Way
    inputs: tuple[Key, ...]
    outputs: tuple[Key, ...]


JOIN, SPLIT = -1, -2
LEAST_PARTS: Final = 4
"""Arrays from which on joining them is no call: each number of arrays would need kernels."""


def is_join(record: Record) -> bool:
    """Whether a call puts many arrays one behind another in memory."""
    plan, inputs = record.plan, record.inputs
    if len(inputs) < LEAST_PARTS or plan.pattern.called not in _JOINS:
        return False
    return plan.static["axis"] == 0 and plan.pattern.shared and len({*inputs}) == len(inputs)


_JOINS: Final = (REGISTRY["concatenate"], REGISTRY["stack"])
MOST_DENSE: Final = 1 << 20
"""Elements of an array whose gradient is made dense: adding so many zeros takes about 200 us."""


MOST_TERMS: Final = 8  # that one routine adds up


class BackwardPass:
    """The steps of one backward pass, in order.

    Args:
        record: the pass.
        history: records before it, in order.
        results: the keys of the records' results.
        ways: those of gradients and sums that were met before; it adds others.
        last: the number of the last backward pass: what is recorded before it and not tracked stops
            gradients.
        dense: elements of the largest array of a type whose gradient is dense if it could be
            row-sparse.

    Raises:
        NoRoutineError: a call has no gradient of its own, as a backward pass has none, or one that
            is to stay row-sparse.
    """

    def __init__(
        self, record: Record, history: Sequence[Record],
        results: Mapping[Record, tuple[Key, ...]], ways: dict[Any, Way], last: int,
        dense: Callable[[TensorType], float],
    ) -> None:  # fmt: skip
        if record.plan.pattern.called != "gradients":
            raise NoRoutineError
        given = record.plan.static["given"]
        count = len(given)
        inputs = record.inputs
        first = count + sum(given)
        end = first + len(record.plan.types)
        self._stop: Final = frozenset(inputs[end:])
        self._parts: dict[Key, list[Key]] = {}
        self._results = results
        self._ways = ways
        self._dense = dense
        self.steps: Final[list[Step]] = []
        starts = iter(inputs[count:first])
        for place, (y, has) in enumerate(zip(inputs[:count], given, strict=True)):
            start = next(starts) if has else Fill(record, place, 1)
            if y.type.dtype.is_inexact:
                self._parts.setdefault(y, []).append(start)
        # Values that depend on some x differentiably
        self._reached: set[Key] = {x for x in inputs[first:end] if x.type.dtype.is_inexact}
        for call in reversed(self._leading(history, last)):
            self._visit(call)
        self.found: Final = tuple(
            [
                self._total(x, record, ~place) or Fill(record, place, 0)
                for place, x in enumerate(inputs[first:end], first)
            ]
        )

    def _leading(self, history: Sequence[Record], last: int) -> list[Record]:
        """The records on a path from some x."""
        found: list[Record] = []
        reached, stop, results = self._reached, self._stop, self._results
        for call in history:
            if reached.isdisjoint(call.inputs) or (call.serial < last and is_cut(call)):
                continue
            found.append(call)
            for y, kind in zip(results[call], call.plan.types, strict=True):
                if kind.dtype.is_inexact and y not in stop:
                    reached.add(y)
        return found

    def _total(self, key: Key, record: Record, place: int) -> Key | None:
        """The sum of a value's cotangents; always the same one."""
        parts = self._parts.get(key)
        if not parts:
            return None
        if len(parts) == 1:
            return parts[0]
        kind = type_at(record, place).dtype
        narrow = kind.is_floating and kind.size < 4  # rounded once, at the end
        most = len(parts) if narrow else MOST_TERMS
        while len(parts) > 1:  # in order, so that a few routines serve sums of any length
            total, terms = Temporary(), parts[:most]
            like = record.plan, place, len(terms)
            way = self._ways.get(like)
            if way is None:
                way = self._ways[like] = Way([place], None, len(terms))
            self.steps.append(Step(record, way, tuple(terms), (total,)))
            parts[:most] = [total]
        return parts[0]

    def _visit(self, call: Record) -> None:
        results, inputs, plan, reached = self._results[call], call.inputs, call.plan, self._reached
        totals = [
            None if y in self._stop else self._total(y, call, i) for i, y in enumerate(results)
        ]  # fmt: skip
        there = [g for g in totals if g is not None]
        if not there:
            return
        if plan.follows:
            raise NoRoutineError
        if is_join(call):
            self._split(call, there[0])
            return
        first: dict[Lazy, int] = {}
        same = tuple([first.setdefault(x, i) for i, x in enumerate(inputs)])
        wanted = tuple([x in reached and same[i] == i for i, x in enumerate(inputs)])
        given = tuple([g is not None for g in totals])
        way = self._ways.get((plan, given, wanted, same))
        if way is None:
            way = self._ways[plan, given, wanted, same] = self._pulled(call, given, wanted, same)
        outputs: list[Key] = []
        for place in way.places:
            g = Temporary()
            outputs.append(g)
            self._parts.setdefault(inputs[~place], []).append(g)
        self.steps.append(Step(call, way, (*inputs, *results, *there), tuple(outputs)))

    def _pulled(
        self, call: Record, given: tuple[bool, ...], wanted: tuple[bool, ...], same: tuple[int, ...]
    ) -> Way:
        """The gradient of a call."""
        pull = Pull(given, wanted, same)
        ready = backward(call, pull)
        case = ready.case
        if case.rows and any(map(self._is_too_large, call.inputs)):
            raise NoRoutineError
        targets = [i for i, is_wanted in enumerate(wanted) if is_wanted]
        places = [~i for i, g in zip(targets, case.found, strict=True) if g >= 0]
        return Way(places, pull, 0, ready)

    def _is_too_large(self, x: Lazy) -> bool:
        return size(known(x.type.shape)) > self._dense(x.type)

    def _split(self, call: Record, total: Key) -> None:
        """The cotangents of arrays that were joined: parts of that of the whole."""
        parts = tuple([Temporary() for _ in call.inputs])
        way = Way([~i for i in range(len(parts))], None, SPLIT)
        self.steps.append(Step(call, way, (total,), parts))
        for x, part in zip(call.inputs, parts, strict=True):
            if x in self._reached:
                self._parts.setdefault(x, []).append(part)

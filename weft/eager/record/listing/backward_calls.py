"""Backward passes as calls: the gradient of each recorded call, and the sums of cotangents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from weft.eager.record.listing.call_routine import Pull, backward
from weft.eager.record.pending.lazy import Lazy, Record
from weft.eager.record.recognition.structure import is_cut
from weft.ir.node import TensorType
from weft.ir.shape import known, size
from weft.library.routine import NoRoutineError
from weft.ops.declaration import REGISTRY


class Origin(NamedTuple):
    """Where the type of a value is found: that of a result of a record, or of an input."""

    record: Record
    place: int
    is_input: bool = False

    @property
    def type(self) -> TensorType:
        """The type."""
        if self.is_input:
            return self.record.inputs[self.place].type
        return self.record.plan.types[self.place]


class Temporary:
    """A value that no tensor holds: a cotangent, or a result that is not referred to.

    Attributes:
        fill: the number that it is throughout, if it is not computed.
    """

    __slots__ = ("fill", "origin")

    def __init__(self, origin: Origin, fill: int | None = None) -> None:
        self.origin: Final = origin
        self.fill: Final = fill


Key = Lazy | Temporary
"""What stands for a value."""


class Step(NamedTuple):
    """A call, its gradient, or a sum of cotangents.

    Attributes:
        pull: which gradient; `None`: the call itself.
        parts: if above 0, so many cotangents are added up instead; if `JOIN`, the inputs are copied
            to the other outputs, which the memory of the first one consists of; if `SPLIT`, the
            outputs are what the memory of the input consists of.
        outputs: the results, and where their types are found.
    """

    record: Record
    pull: Pull | None
    parts: int
    inputs: tuple[Key, ...]
    outputs: tuple[tuple[Key, Origin], ...]


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
DENSE_SHARE: Final = 4
"""So is a larger one's, of at most this part of all that a structure reads: parameters beside it
are updated, too, so that it takes little of the time."""


MOST_TERMS: Final = 8  # that one routine adds up


class BackwardPass:
    """The steps of one backward pass, in order.

    Args:
        record: the pass.
        history: records before it, in order.
        results: gives the keys of a record's results.
        last: the number of the last backward pass: what is recorded before it and not tracked stops
            gradients.
        dense: elements of the largest array whose gradient is dense if it could be row-sparse.

    Raises:
        NoRoutineError: a call has no gradient of its own, as a backward pass has none, or one that
            is to stay row-sparse.
    """

    def __init__(
        self, record: Record, history: Sequence[Record],
        results: Callable[[Record], Sequence[Key]], last: int, dense: float,
    ) -> None:  # fmt: skip
        if record.plan.pattern.called != "gradients":
            raise NoRoutineError
        given = record.plan.static["given"]
        count = len(given)
        inputs = record.inputs
        first = count + sum(given)
        end = first + len(record.plan.types)
        self._xs: Final = frozenset(inputs[first:end])
        self._stop: Final = frozenset(inputs[end:])
        self._parts: dict[Key, list[Key]] = {}
        self._results = results
        self._dense = dense
        self.steps: Final[list[Step]] = []
        starts = iter(inputs[count:first])
        for place, (y, has) in enumerate(zip(inputs[:count], given, strict=True)):
            start = next(starts) if has else Temporary(Origin(record, place, True), 1)
            if y.type.dtype.is_inexact:
                self._parts.setdefault(y, []).append(start)
        active = self._leading(history, last)
        for call in reversed(history):
            if call in active:
                self._visit(call)
        origins = [Origin(record, place, True) for place in range(first, end)]
        self.found: Final = tuple([
            self._total(x, origin) or Temporary(origin, 0)
            for x, origin in zip(inputs[first:end], origins, strict=True)
        ])  # fmt: skip

    def _leading(self, history: Sequence[Record], last: int) -> set[Record]:
        """The records on a path from some x."""
        found: set[Record] = set()
        self._reached: set[Key] = set()
        for call in history:
            if call.serial < last and is_cut(call):
                continue
            if any([self._varies(x) for x in call.inputs]):
                found.add(call)
                self._reached.update(self._results(call))
        return found

    def _varies(self, x: Lazy) -> bool:
        """Whether a value depends on some x differentiably."""
        if not x.type.dtype.is_inexact:
            return False
        return x in self._xs or (x not in self._stop and x in self._reached)

    def _total(self, key: Key, origin: Origin) -> Key | None:
        """The sum of a value's cotangents; always the same one."""
        parts = self._parts.get(key)
        if not parts:
            return None
        kind = origin.type.dtype
        narrow = kind.is_floating and kind.size < 4  # rounded once, at the end
        most = len(parts) if narrow else MOST_TERMS
        while len(parts) > 1:  # in order, so that a few routines serve sums of any length
            total, terms = Temporary(origin), parts[:most]
            self.steps.append(
                Step(origin.record, None, len(terms), tuple(terms), ((total, origin),))
            )
            parts[:most] = [total]
        return parts[0]

    def _visit(self, call: Record) -> None:
        results = self._results(call)
        totals = [
            None if y in self._stop else self._total(y, Origin(call, i))
            for i, y in enumerate(results)
        ]  # fmt: skip
        if not any(totals):
            return
        if call.plan.follows:
            raise NoRoutineError
        if is_join(call):
            self._split(call, totals[0])
            return
        first = {x: i for i, x in reversed(list(enumerate(call.inputs)))}
        same = tuple([first[x] for x in call.inputs])
        wanted = tuple([self._varies(x) and same[i] == i for i, x in enumerate(call.inputs)])
        pull = Pull(tuple([g is not None for g in totals]), wanted, same)
        case = backward(call, pull).case
        if case.rows and any([size(known(x.type.shape)) > self._dense for x in call.inputs]):
            raise NoRoutineError
        places = iter(case.found)
        outputs: list[tuple[Key, Origin]] = []
        for i, (x, varies) in enumerate(zip(call.inputs, wanted, strict=True)):
            if varies and next(places) >= 0:
                origin = Origin(call, i, True)
                g = Temporary(origin)
                outputs.append((g, origin))
                self._parts.setdefault(x, []).append(g)
        inputs = (*call.inputs, *results, *[g for g in totals if g is not None])
        self.steps.append(Step(call, pull, 0, inputs, tuple(outputs)))

    def _split(self, call: Record, total: Key | None) -> None:
        """The cotangents of arrays that were joined: parts of that of the whole."""
        assert total is not None
        parts = [
            (Temporary(o), o) for i in range(len(call.inputs)) for o in [Origin(call, i, True)]
        ]
        self.steps.append(Step(call, None, SPLIT, (total,), tuple(parts)))
        for x, (part, _) in zip(call.inputs, parts, strict=True):
            if self._varies(x):
                self._parts.setdefault(x, []).append(part)

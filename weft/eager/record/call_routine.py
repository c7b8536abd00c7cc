"""Routines of recorded calls and of their gradients, cached with the call's plan."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from weft.codegen.target import portable
from weft.eager.record.attribute_pattern import refilled
from weft.eager.record.lazy import Record
from weft.eager.record.plan import placeholders
from weft.eager.record.sized_call import Made, Ready, SizedCall, Sizes
from weft.errors import CompileError
from weft.ir.graph import Graph
from weft.ir.node import TensorType, Value
from weft.ir.shape import known
from weft.library.form import UnsizedError
from weft.library.routine import NoRoutineError, routine
from weft.ops.declaration import catalogue
from weft.transform.gradient import Cotangent, gradients

MOST_CALLS: Final = 1 << 12  # forgotten together


class Pull(NamedTuple):
    """Which gradient of a call is meant.

    Attributes:
        given: for each result whether it has a cotangent.
        wanted: for each input whether its cotangent is wanted.
        same: for each input the first one that is the same value: only its cotangent is wanted.
    """

    given: tuple[bool, ...]
    wanted: tuple[bool, ...]
    same: tuple[int, ...]


Expand = Callable[..., Sequence[Cotangent]]
_calls: Final[dict[Any, SizedCall]] = {}


def forward(record: Record) -> Ready:
    """The routine of a call.

    Raises:
        NoRoutineError: it has none.
    """
    return _ready(record, None)


def backward(record: Record, pull: Pull) -> Ready:
    """The routine of a call's gradient.

    Its inputs are the call's inputs, its results, and the given cotangents. `found` has for each
    wanted input the number of its cotangent among the results; -1 if no gradient reaches it.

    Raises:
        NoRoutineError: it has none, as one with row-sparse results.
    """
    return _ready(record, pull)


@functools.lru_cache(maxsize=1 << 10)
def sum_of(kind: TensorType, count: int) -> Ready:
    """The routine that adds up so many cotangents."""

    def make(sizes: Sizes) -> Made:
        graph = Graph()
        with graph.as_default():
            parts = placeholders([TensorType(kind.dtype, sizes)] * count)
            total = catalogue.add_n(*parts)
        return Made(routine(graph, [total], parts, portable()))

    shape = known(kind.shape)
    if 0 in shape:
        return Ready(make(shape))
    return _call(("sum", kind.dtype, len(shape), count)).at(shape, make)


def _ready(record: Record, pull: Pull | None) -> Ready:
    plan = record.plan
    found = plan.routines.get(pull)
    if found is None:
        try:
            found = _made(record, pull)
        except (NoRoutineError, UnsizedError, CompileError):
            found = False
        plan.routines[pull] = found
    if found is False:
        raise NoRoutineError
    return found


def _made(record: Record, pull: Pull | None) -> Ready:
    plan, types = record.plan, [x.type for x in record.inputs]
    if not plan.pattern.shared or any([0 in known(t.shape) for t in types]):
        return Ready(_written(types, plan.expand, pull))
    pattern, own = plan.general

    def make(sizes: Sizes) -> Made:
        if sizes is own:
            return _written(types, plan.expand, pull)
        if plan.follows:
            raise NoRoutineError
        left = iter(sizes)
        given = [TensorType(t.dtype, refilled(known(t.shape), left)) for t in types]
        for kind in plan.types:
            refilled(known(kind.shape), left)  # which follow from the others
        static = {name: refilled(value, left) for name, value in plan.static.items()}
        return _written(given, lambda *values: pattern.expand(values, static), pull)

    return _call((pattern, pull)).at(own, make)


def _call(key: Any) -> SizedCall:
    """What is known of a call at several sizes."""
    found = _calls.get(key)
    if found is None:
        if len(_calls) >= MOST_CALLS:
            _calls.clear()
        found = _calls[key] = SizedCall()
    return found


def _written(types: Sequence[TensorType], expand: Expand, pull: Pull | None) -> Made:
    graph = Graph()
    with graph.as_default():
        xs = placeholders(types)
        if pull is not None:
            xs = [xs[first] for first in pull.same]
        ys = _dense(expand(*xs))
        if pull is None:
            return Made(routine(graph, ys, xs, portable()))
        pairs = [
            (y, placeholders([y.type])[0]) for y, has in zip(ys, pull.given, strict=True) if has
        ]
        targets = [x for x, wanted in zip(xs, pull.wanted, strict=True) if wanted]
        found = gradients([y for y, _ in pairs], targets, [g for _, g in pairs])
        reached = _dense([g for g in found if g is not None])
        taken = set(xs)
        given = _apart(xs)
        results: list[Value] = []  # what the call has computed is not computed again
        for y in ys:
            results.append(placeholders([y.type])[0] if y in taken else y)
            taken.add(y)
    made = routine(graph, reached, [*given, *results, *[g for _, g in pairs]], portable())
    numbers = iter(range(len(reached)))
    return Made(made, tuple([-1 if g is None else next(numbers) for g in found]))


def _apart(xs: Sequence[Value]) -> list[Value]:
    """The values, with others in place of those that are there already."""
    return [placeholders([x.type])[0] if x in xs[:i] else x for i, x in enumerate(xs)]


def _dense(values: Sequence[Cotangent]) -> list[Value]:
    found = [y for y in values if isinstance(y, Value)]
    if len(found) < len(values):
        raise NoRoutineError
    return found

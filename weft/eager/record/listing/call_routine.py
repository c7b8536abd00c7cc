"""Routines of recorded calls and of their gradients, cached with the call's plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from weft.codegen.target import portable
from weft.eager.record.call.attribute_pattern import refilled
from weft.eager.record.call.pattern import Expand as OfPattern
from weft.eager.record.call.pieces import PIECES
from weft.eager.record.call.plan import Plan, placeholders
from weft.eager.record.listing.kept_routine import kept, text_of_call
from weft.eager.record.listing.sized_call import SizedCall, Sizes
from weft.eager.record.pending.lazy import Record
from weft.errors import CompileError
from weft.ir.extent import Extent
from weft.ir.graph import Graph
from weft.ir.node import TensorType, Value, user_source
from weft.ir.shape import known
from weft.library.case import Case, Made
from weft.library.form import UnsizedError
from weft.library.routine import NoRoutineError, Routine, joined, routine
from weft.ops.declaration import catalogue
from weft.ops.indexing.row_sparse import RowSparse
from weft.transform.gradient import Cotangent, dense, gradients

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


class Ready(NamedTuple):
    """A call at certain sizes.

    Attributes:
        call: the same at any sizes.
        case: what computes it.
    """

    call: SizedCall
    case: Case


def forward(record: Record, anew: bool = False) -> Ready:
    """How a call is computed.

    Args:
        anew: the stitcher has no case for it.

    Raises:
        NoRoutineError: it has no routine.
    """
    return _ready(record, None, anew)


def backward(record: Record, pull: Pull, anew: bool = False) -> Ready:
    """How a call's gradient is computed.

    Its inputs are the call's inputs, its results, and the given cotangents. `found` has for each
    wanted input the number of its cotangent among the results; -1 if no gradient reaches it.
    Row-sparse cotangents are dense.

    Raises:
        NoRoutineError: it has no routine.
    """
    return _ready(record, pull, anew)


def sum_of(kind: TensorType, count: int) -> Ready:
    """How so many cotangents are added up."""

    def make(sizes: Sizes) -> Made:
        graph = Graph()
        with graph.as_default():
            parts = placeholders([TensorType(kind.dtype, sizes)] * count)
            total = catalogue.add_n(*parts)
        return Made(routine(graph, [total], parts, portable()))

    shape = known(kind.shape)
    call = _call(("sum", kind.dtype, len(shape), count))
    return Ready(call, call.at(shape, make, 0 in shape))


def _ready(record: Record, pull: Pull | None, anew: bool) -> Ready:
    routines = record.plan.routines
    known: Ready | bool | None = routines.get(pull)
    if known is False:
        raise NoRoutineError
    if isinstance(known, Ready) and not anew:
        return known
    try:
        found = _found(record, pull, known.call if isinstance(known, Ready) else SizedCall())
    except (NoRoutineError, UnsizedError, CompileError, OverflowError):
        routines[pull] = False
        raise NoRoutineError from None
    routines[pull] = found
    return found


def _found(record: Record, pull: Pull | None, own_call: SizedCall) -> Ready:
    """Looks up or makes a routine; `own_call` is what is known of a call that shares nothing."""
    plan, types = record.plan, [x.type for x in record.inputs]
    if not plan.pattern.shared:
        made = own_call.at((), lambda _: _of_plan(plan, types, pull), True)
        return Ready(own_call, made)
    pattern, own = plan.pattern, tuple(plan.sizes)

    def make(sizes: Sizes) -> Made:
        if sizes is own:
            text = text_of_call(pattern.called, types, plan.static)
            return kept(text and f"{text} {pull}", None, lambda: _of_plan(plan, types, pull))
        if plan.follows:
            raise NoRoutineError
        left = iter(sizes)
        given = [TensorType(t.dtype, refilled(known(t.shape), left)) for t in types]
        for kind in plan.types:
            refilled(known(kind.shape), left)  # which follow from the others
        static = {name: refilled(value, left) for name, value in plan.static.items()}
        text = text_of_call(pattern.called, given, static)
        extents = next((n.extents for n in sizes if type(n) is Extent), None)
        bases = "" if extents is None else extents.state["bases"]

        def write() -> Made:
            return _written(given, lambda *values: pattern.expand(values, static), pull)

        return kept(text and f"{text} {pull} {bases}", extents, write)

    call = _call((pattern, pull))
    return Ready(call, call.at(own, make, any([0 in known(t.shape) for t in types])))


def _call(key: Any) -> SizedCall:
    """What is known of a call at several sizes."""
    found = _calls.get(key)
    if found is None:
        if len(_calls) >= MOST_CALLS:
            _calls.clear()
        found = _calls[key] = SizedCall()
    return found


def _of_plan(plan: Plan, types: Sequence[TensorType], pull: Pull | None) -> Made:
    """The routine at the sizes of a plan; in pieces, each of which is written once."""
    pattern = plan.pattern
    if pull is None and pattern.called in PIECES:
        known: dict[tuple[int, ...], Routine] = {}
        pieces = PIECES[pattern.called](**plan.static)
        keys = [piece.key(types) for piece in pieces]
        for key, (xs, _, static) in zip(keys, pieces, strict=True):
            if key not in known:
                expand = partial(_expanded, pattern.expand, static)
                known[key] = _written([types[x] for x in xs], expand, None).routine
        if not any([each.calls for each in known.values()]):
            parts = [(known[k], p.inputs, p.outputs) for k, p in zip(keys, pieces, strict=True)]
            return Made(joined(parts, len(types), len(plan.types)))
    return _written(types, plan.expand, pull)


def _expanded(expand: OfPattern, static: Mapping[str, Any], *values: Any) -> Sequence[Cotangent]:
    return expand(values, static)


def _written(types: Sequence[TensorType], expand: Expand, pull: Pull | None) -> Made:
    graph = Graph()
    with graph.as_default(), graph.at(user_source()):  # looked up once, not for every node
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
        reached = [dense(g) for g in found if g is not None]
        taken = set(xs)
        given = _apart(xs)
        results: list[Value] = []  # what the call has computed is not computed again
        for y in ys:
            results.append(placeholders([y.type])[0] if y in taken else y)
            taken.add(y)
    made = routine(graph, reached, [*given, *results, *[g for _, g in pairs]], portable())
    numbers = iter(range(len(reached)))
    places = tuple([-1 if g is None else next(numbers) for g in found])
    return Made(made, places, any([isinstance(g, RowSparse) for g in found]))


def _apart(xs: Sequence[Value]) -> list[Value]:
    """The values, with others in place of those that are there already."""
    return [placeholders([x.type])[0] if x in xs[:i] else x for i, x in enumerate(xs)]


def _dense(values: Sequence[Cotangent]) -> list[Value]:
    found = [y for y in values if isinstance(y, Value)]
    if len(found) < len(values):
        raise NoRoutineError
    return found

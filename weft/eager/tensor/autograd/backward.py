"""Backward passes: finds the history of values and records their gradients.

A gradient is one recorded call, which adds the backward graph when it is expanded. Hooks and custom
functions have to see gradients in the middle, so there the pass is cut into several calls.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.eager.record.call.gradient_plan import gradient_plan
from weft.eager.record.call.plan import function_plan, op_plan
from weft.eager.record.memory.snapshot import as_now
from weft.eager.record.pending.conjugate import conjugated
from weft.eager.record.pending.lazy import Lazy, Record, Tracer
from weft.eager.record.pending.mode import Setting
from weft.eager.record.pending.state import computing, trace
from weft.eager.tensor.autograd.call_hook import Around, around, call_of, fitting
from weft.eager.tensor.autograd.custom_function import Custom
from weft.eager.tensor.autograd.hook import Afterwards, backward_pass, note_gradients
from weft.eager.tensor.dispatch import unowned, wrap
from weft.eager.tensor.retain import Retain
from weft.errors import GradientError
from weft.ir.node import Value
from weft.ops.declaration import REGISTRY
from weft.ops.shape.creation import zeros_like

Starts = Sequence[tuple[Lazy, Lazy | None]]
"""Values to differentiate, with their cotangents; ones where missing."""


@dataclass(frozen=True)
class History:
    """The records that some values depend on, as far as gradients flow; latest first."""

    records: dict[Record, None]
    values: dict[Lazy, None]

    def towards(self, xs: Sequence[Lazy], stops: Collection[Lazy] = ()) -> History:
        """The part through which gradients flow to `xs` without passing `stops`."""
        values = dict.fromkeys(xs)
        records: dict[Record, None] = {}
        for record in sorted(self.records, key=lambda r: r.serial):
            if any([x in values for x in record.inputs]):
                records[record] = None
                values.update(dict.fromkeys([y for y in record.outputs if y not in stops]))
        return History(records, values)


def history(ys: Sequence[Lazy], ends: Sequence[Lazy] = ()) -> History:
    """Walk back from `ys` to the leaves that require grad, or to `ends`.

    Raises:
        GradientError: an earlier backward pass freed the graph.
    """
    records: dict[Record, None] = {}
    values: dict[Lazy, None] = {}
    last = set(ends)
    stack = [y for y in ys if y.tracked]
    while stack:
        lazy = stack.pop()
        if lazy in values:
            continue
        values[lazy] = None
        if lazy.leaf is not None or type(lazy) is Tracer or (last and lazy in last):
            continue
        record = lazy.record
        if record is None or record.freed is not None:
            raise GradientError.here(
                "backward: the graph behind this value was freed by an earlier backward pass; "
                "call that one with retain_graph=True"
            )
        if record not in records:
            records[record] = None
            stack += [x for x in record.inputs if x.tracked]
    return History(records, values)


def pull(starts: Starts, xs: Sequence[Lazy], past: History, create_graph: bool) -> list[Lazy]:
    """Record the gradients with respect to `xs`; zeros for each that none reaches."""
    with backward_pass(), Setting("grad_mode", create_graph):
        found = walk(starts, xs, past)
        return [zeros(x) if g is None else g for g, x in zip(found, xs, strict=True)]


def _zeros(x: Value) -> Value:
    return zeros_like(x)


def zeros(x: Lazy) -> Lazy:
    """Zeros with the type of a value."""
    return trace.now.record(function_plan(_zeros, (x.type,), {}, differentiable=False), (x,))[0]


class _Pieces:
    """A backward pass in pieces: the gradients that have reached each wanted value."""

    def __init__(
        self, xs: Sequence[Lazy], cuts: Sequence[Lazy], past: History, outside: Sequence[Lazy]
    ) -> None:
        self.past = past
        self.ends = dict.fromkeys(outside)
        self.stops = dict.fromkeys(cuts)  # where a piece ends: at hooks and custom functions
        self.wanted = {**dict.fromkeys(xs), **self.stops}
        self.parts: dict[Lazy, list[Lazy]] = {}

    def spread(self, starts: Starts, skip: Lazy | None = None) -> None:
        """Record the gradients of `starts` with respect to the wanted values, within the piece."""
        walked: list[tuple[Lazy, Lazy | None]] = []
        for y, g in starts:
            if g is not None and y is not skip and (self._ends(y) or y.leaf is not None):
                if y in self.wanted:
                    self.parts.setdefault(y, []).append(g)
            else:
                walked.append((y, g))
        reached = self._reached([y for y, _ in walked])
        targets = [x for x in self.wanted if x in reached and x is not skip]
        if targets:
            ends = [*self.stops, *self.ends]
            for x, g in zip(targets, _record(walked, targets, ends), strict=True):
                self.parts.setdefault(x, []).append(g)

    def _ends(self, x: Lazy) -> bool:
        return x in self.stops or x in self.ends

    def _reached(self, ys: Sequence[Lazy]) -> set[Lazy]:
        """The records of the piece, and whatever recorded gradients read.

        Recorded gradients read the history of what they differentiate, also outside the piece.
        """
        found: set[Lazy] = set()
        behind: set[Lazy] = set()
        stack = [(y, False) for y in ys]
        while stack:
            x, read = stack.pop()
            if x in behind or (x in found and not read):
                continue
            found.add(x)
            if read:
                behind.add(x)
            if x.leaf is None and x.record is not None and (read or not self._ends(x)):
                inputs, follows = x.record.inputs, x.record.plan.follows
                stack += [(v, read or i < follows) for i, v in enumerate(inputs) if v.tracked]
        return found.intersection(self.past.values)

    def total(self, x: Lazy) -> Lazy | None:
        """The full gradient of a value after its hooks; computed once."""
        parts = self.parts.get(x)
        if parts is None:
            return None
        total = parts[0]
        for part in parts[1:]:
            total = add(total, part)
        if x in self.stops:
            total = seen(x, total)
            del self.stops[x]
        self.parts[x] = [total]
        return total


def is_watched(x: Lazy) -> bool:
    """Whether a hook or custom function needs the gradient of a value."""
    if type(x) is Custom and not x.call.passed:
        return True
    return bool(x.hooks) and x.leaf is None


def walk(
    starts: Starts, xs: Sequence[Lazy], past: History, begins: bool = False,
    outside: Sequence[Lazy] = (),
) -> list[Lazy | None]:  # fmt: skip
    """Record the gradients with respect to `xs`, in pieces cut at hooks and custom functions.

    Args:
        outside: those of `xs` at which the walk stops, without calling their hooks.
        begins: whether prehooks of the nodes of `xs` see the gradients that stop there.
    """
    cuts = [x for x in past.values if (x.hooks or type(x) is Custom) and is_watched(x)]
    cuts = [x for x in cuts if x not in outside]
    ways = past.towards(xs) if cuts else past
    cuts = [x for x in cuts if x in ways.values]
    if not cuts:
        targets = [x for x in xs if x in past.values]
        ends = [x for x in targets if x in outside]
        found = dict(zip(targets, _record(starts, targets, ends), strict=True)) if targets else {}
        return [found.get(x) for x in xs]
    pieces = _Pieces(xs, cuts, past, outside)
    pieces.spread(starts)
    for group in _groups(cuts):  # the latest first: then its whole gradient is known
        known = {x.index: g for x in group if (g := pieces.total(x)) is not None}
        first = group[0]
        if not known:
            continue
        hooks = around(first)
        if first.record not in ways.records:  # it is one of `xs`, and no other is behind it
            if begins and hooks is not None:
                hooks.begin(_reaching(group, known))
            continue
        if hooks is not None:
            pieces.spread(_through(group, known, hooks))
        elif isinstance(first, Custom):
            pieces.spread(pull_call(group, known))
        else:
            pieces.spread([(first, known[first.index])], skip=first)
    return [pieces.total(x) for x in xs]


def pull_call(group: Sequence[Lazy], gs: Mapping[int, Lazy]) -> list[tuple[Lazy, Lazy]]:
    """Record the gradients of the inputs of the call with results `group`."""
    first = group[0]
    if isinstance(first, Custom):
        return first.call.pull({x.index: x for x in group}, gs)
    assert first.record is not None
    inputs = list(dict.fromkeys([x for x in first.record.inputs if x.tracked]))
    starts = [(y, gs[y.index]) for y in group if y.index in gs]
    return list(zip(inputs, _record(starts, inputs, inputs), strict=True))


def arguments(y: Lazy) -> Sequence[Lazy | None]:
    """The inputs of a value's call, `None` for those without gradient; empty for a leaf."""
    if isinstance(y, Custom):
        return y.call.inputs
    if y.leaf is not None or y.record is None:
        return ()
    return [x if x.tracked else None for x in y.record.inputs]


def results(y: Lazy) -> Sequence[int | None]:
    """For each result of the call behind a value, its index among the differentiable results."""
    if isinstance(y, Custom):
        return y.call.places
    call = call_of(y)
    return (y.index,) if isinstance(call, Lazy) else range(len(call.plan.types))


def pull_all(group: Sequence[Lazy], gs: Sequence[Lazy | None]) -> list[Lazy | None]:
    """Record the gradient of each argument of a call from those of all its results.

    An argument that occurs twice has its whole gradient at its first position, except in a custom
    function.
    """
    places = results(group[0])
    given = {p: g for p, g in zip(places, gs, strict=True) if p is not None and g is not None}
    pairs = pull_call(group, given) if given else []
    found: list[Lazy | None] = []
    for x in arguments(group[0]):
        at = next((i for i, (y, _) in enumerate(pairs) if y is x), None)
        found.append(None if at is None else pairs.pop(at)[1])
    return found


def _through(
    group: Sequence[Lazy], known: Mapping[int, Lazy], hooks: Around
) -> list[tuple[Lazy, Lazy]]:
    """The gradients of the inputs of a call after its hooks."""
    gs = hooks.begin(_reaching(group, known))
    found = hooks.end(pull_all(group, gs), gs)
    pairs = zip(arguments(group[0]), found, strict=True)
    return [(x, g) for x, g in pairs if x is not None and g is not None]


def _reaching(group: Sequence[Lazy], known: Mapping[int, Lazy]) -> list[Lazy | None]:
    """The gradient of each result of the call that `group` belongs to."""
    return [None if p is None else known.get(p) for p in results(group[0])]


def _groups(cuts: Sequence[Lazy]) -> list[list[Lazy]]:
    """Values where pieces begin, latest first; results of one function are grouped."""
    groups: dict[Any, list[Lazy]] = {}
    for x in cuts:
        together = isinstance(x, Custom) or around(x) is not None
        groups.setdefault(call_of(x) if together else x, []).append(x)

    def serial(group: list[Lazy]) -> int:
        record = group[0].record
        return -1 if record is None else record.serial

    return sorted(groups.values(), key=serial, reverse=True)


def _record(starts: Starts, xs: Sequence[Lazy], stop: Sequence[Lazy]) -> tuple[Lazy, ...]:
    given = [as_now(g) for _, g in starts if g is not None]
    inputs = (*[y for y, _ in starts], *given, *xs, *stop)
    each = tuple([g is not None for _, g in starts])
    plan = gradient_plan([x.type for x in inputs], each, len(stop))
    found = trace.now.record(plan, inputs)
    note_gradients(found)
    return found


def seen(x: Lazy, g: Lazy) -> Lazy:
    """The gradient of a value after its hooks."""
    if x.hooks is None:
        return g
    hooks = list(x.hooks.values())
    for hook in hooks:
        if not isinstance(hook, Retain | Afterwards | Around):
            g = _changed(hook, g)
    for hook in hooks:
        tensor = hook.tensor() if isinstance(hook, Retain) else None
        if tensor is not None:
            add_to(tensor, conjugated(g))
    return g


def _changed(hook: Callable[[Any], Any], g: Lazy) -> Lazy:
    """The gradient after a hook."""
    tensor = wrap(unowned(conjugated(g)))
    found = hook(tensor)
    return conjugated(tensor.lazy) if found is None else fitting("a hook", found, g)


def add(x: Lazy, y: Lazy) -> Lazy:
    """The sum of two values of one type."""
    return trace.now.record(op_plan(REGISTRY["add"], (x.type, y.type), {}), (x, y))[0]


def add_to(tensor: Any, g: Lazy) -> None:
    """Add a gradient to `.grad` of a tensor."""
    with computing:  # other threads may add to the same
        before = tensor._grad
        if before is None:
            Given().give(tensor, unowned(g))
        elif trace.now.grad_mode:  # the old gradient may be part of a recorded graph
            Given().give(tensor, add(before.lazy, g))
        else:
            before.replace(add(before.lazy, g))


class Given:
    """Gradients given to tensors, undone together."""

    def __init__(self) -> None:
        self._given: list[tuple[weakref.ref[Any], weakref.ref[Any], Any]] = []

    def give(self, tensor: Any, g: Lazy) -> None:
        """Set `.grad` of a tensor to a value that no other tensor holds."""
        before = tensor._grad
        trace.now.expect(g)
        tensor._grad = found = wrap(g)
        if not self._given:
            trace.now.on_failure(g, self._take_back)
        self._given.append((weakref.ref(tensor), weakref.ref(found), before))

    def _take_back(self) -> None:
        for reference, gradient, before in self._given:
            tensor = reference()
            if tensor is not None and tensor._grad is gradient():
                tensor._grad = before

"""Doors that remember calls: what a function records mostly follows from its arguments' types.

Most functions check and convert their arguments, then record one call on them. Another call with
arguments of these types, and the same other arguments, is recorded at once. Nobody declares which
functions are like that: each is watched. What reads a value, a layout or a setting (`weft.ir.look`)
or records anything besides is not remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeVar

from weft.eager.functions.indexing.basic_index import Part
from weft.eager.functions.recall.call import Calls, Ref, Shape, items_of
from weft.eager.functions.recall.code import Way, way_of
from weft.eager.record.pending.lazy import Lazy, Number, Record
from weft.eager.record.pending.state import trace
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.view.view_transform import layout_of
from weft.ir.hooks import HOOKS
from weft.ir.look import looks
from weft.ops.refusal import remembering as remembering

MOST_SHAPES: Final = 4  # ways in which one function is called
MOST_STEPS: Final = 3  # calls that one call of a function records
MOST_VIEWS: Final = 8  # that one call gives
MOST_PAUSE: Final = 32
MOST_WATCHED: Final = 4
"""Calls of one shape before their way is written: the ninth is the fourth that is watched. Writing
takes 0.5 ms, which some 30 calls earn."""
TRIES: Final = 16  # calls in a row that cannot be remembered, after which a door no longer watches
F = TypeVar("F", bound=Callable[..., Any])


def of_any_sizes(function: F) -> F:
    """Marks a function that looks at dtypes and ranks alone, besides what the calls check that it
    records."""
    vars(function)["sizeless"] = True
    return function


def of_asked_shape(function: F) -> F:
    """Marks a function of a tensor and of the shape in which all its elements are shown."""
    vars(function)["reshapes"] = True
    return function


class Before(NamedTuple):
    """What there was before a call that is watched."""

    pending: list[Record]
    calls: int
    changes: int
    looks: int
    layouts: int


class _Given:
    """The arguments of a call that was watched, and its results.

    The items of a list or tuple of tensors, as the first argument, are as many arguments.

    Attributes:
        laid: whether it was asked how tensors lie in memory.
    """

    def __init__(
        self, args: Sequence[Any], options: Mapping[str, Any], found: Any, laid: bool
    ) -> None:
        items = items_of(args)
        given: list[Any] = [*items, *args[1 if items else 0 :], *options.values()]
        self.positional, self.names = len(given) - len(options), tuple(options)
        self.listed, self.laid = len(items), laid
        self.found: Sequence[Any] = found if type(found) is tuple else (found,)
        self.several = type(found) is tuple
        self.tensors = tuple([i for i, x in enumerate(given) if isinstance(x, Handle)])
        self.handles: list[Handle] = [given[i] for i in self.tensors]
        self.values: list[Lazy] = [x.shown for x in self.handles]
        self.types: list[Any] = [x.type for x in self.values]
        if laid:
            self.types += [*map(layout_of, self.handles)]
        self.others = [x for i, x in enumerate(given) if i not in self.tensors]
        self.first: Any = self.handles[0] if self.handles else None

    @property
    def is_plain(self) -> bool:
        """Whether its tensors differ, and the results are like the first."""
        apart = len({id(x) for x in self.values}) == len(self.values)
        kinds = {type(x) for x in self.found}
        return (
            bool(self.tensors) and apart and kinds == {self.first.kind} and None not in self.types
        )

    @property
    def is_view(self) -> bool:
        """Whether all results are views of its only tensor."""
        views = [x.window for x in self.found]
        return len(self.tensors) == 1 and all([
            view is not None and view.base is self.first and not view.lens.detached
            for view in views
        ])  # fmt: skip

    def refs(self) -> dict[Lazy, Ref]:
        """What calls on its tensors read: their values, or copies of what others may write to."""
        refs: dict[Lazy, Ref] = {}
        for i, x in zip(self.tensors, self.values, strict=True):
            copy = None if x.loan is None or x.loan.last is None else x.loan.last()
            if copy is not None:
                refs[copy] = ("x", i)
            refs[x] = ("x", i)
        return refs


class Memory:
    """What is known of the calls of a function.

    Attributes:
        way: records those that are known. `None` if none is and none will be.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._sizeless = bool(getattr(function, "sizeless", False))
        self._reshapes = bool(getattr(function, "reshapes", False))
        self._calls: dict[Shape, Calls] = {}
        self._tries = TRIES
        self._pause = 0
        self.way: Way | None = _asked

    def watch(self) -> Before | None:
        """What there is before a call; `None` if it is not watched.

        So it is if many could not be remembered, and mostly while none that was has come again.
        """
        if self._pause:
            self._pause -= 1
            return None
        if self._tries <= 0:
            if not self._calls:
                self.way = None
            return None
        unused = [calls.unused for calls in self._calls.values()]
        self._pause = min(MOST_PAUSE, min(unused, default=0))
        now = trace.now
        seen = looks.count, looks.layouts
        return Before(now.pending, len(now.pending), len(now.changes), *seen)

    def learn(
        self, before: Before, args: tuple[Any, ...], options: Mapping[str, Any], found: Any
    ) -> None:
        """Remember a call that was watched, if that can be."""
        self._tries -= 1
        several = type(found) is tuple and all([isinstance(y, Handle) for y in found])
        if not (several or isinstance(found, Handle)) or _has_more(before):
            return
        laid = looks.layouts != before.layouts
        given, made = _Given(args, options, found, laid), before.pending[before.calls :]
        if given.is_plain:
            with suppress(TypeError):
                if self._learn_calls(given, made) if made else self._learn_part(given):
                    self._tries = TRIES

    def _learn_calls(self, given: _Given, made: Sequence[Record]) -> bool:
        views = [y.window for y in given.found if y.window is not None]
        if views or given.several:
            results = [y.shown.record for y in given.found]
            if not given.is_view or [*map(id, results)] != [*map(id, made)]:
                return False
            if len(made) > MOST_VIEWS:
                return False
        elif given.found[0].shown.record is not made[-1] or len(made) > MOST_STEPS:
            return False
        refs, numbers = given.refs(), list[Number]()
        if not all([_refer(record, i, refs, numbers) for i, record in enumerate(made)]):
            return False
        steps = tuple([tuple([refs[x] for x in record.inputs]) for record in made])
        calls = self._shaped(given, steps)
        if calls is None:
            return False
        plans = tuple([record.plan for record in made])
        lenses = tuple([view.lens for view in views])
        found = (given.first.kind, plans, tuple(numbers), lenses or None)
        calls.learn(given.types, given.others, found, self._sizeless, self._reshapes)
        return True

    def _learn_part(self, given: _Given) -> bool:
        """Remember a view of a computed tensor, which records nothing."""
        view = given.found[0].window
        if given.several or view is None or type(view.lens) is not Part or not given.is_view:
            return False
        if given.first.window is not None:
            return False
        calls = self._shaped(given, ((("x", given.tensors[0]),),))
        if calls is None:
            return False
        calls.learn_part(given.types[0].shape, given.others, view.lens)
        return True

    def _shaped(self, given: _Given, steps: tuple[tuple[Ref, ...], ...]) -> Calls | None:
        """The calls of a shape; `None` for one too many."""
        views = 0 if given.found[0].window is None else len(given.found)
        of_view = bool(views) and given.first.window is not None
        shape = Shape(
            given.positional, given.names, given.tensors, steps, views, given.several, of_view,
            given.listed, given.laid,
        )  # fmt: skip
        found = self._calls.get(shape)
        if found is None and len(self._calls) < MOST_SHAPES:
            found = self._calls[shape] = Calls(shape)
        if found is not None:
            found.watched += 1
            if found.watched == MOST_WATCHED:
                self.way = way_of([x for x in self._calls.values() if x.watched >= MOST_WATCHED])
        return found


def _asked(args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """The way while no call is known."""


def _has_more(before: Before) -> bool:
    """Whether a call did more than record others, or what it did depends on more than types."""
    now = trace.now
    return (
        now.pending is not before.pending or len(now.changes) != before.changes
        or looks.count != before.looks or now.autocast is not None or now.depth > 0
    )  # fmt: skip


def _refer(record: Record, number: int, refs: dict[Lazy, Ref], numbers: list[Number]) -> bool:
    """Add the numbers that a recorded call reads, and its result; whether nothing else is read."""
    for x in record.inputs:
        if x not in refs:
            if type(x) is not Number:
                return False
            refs[x] = ("n", len(numbers))
            numbers.append(x)
    result = record.results[0]()
    if result is not None:
        refs[result] = ("y", number)
    return record.plan.single


HOOKS.memory = Memory

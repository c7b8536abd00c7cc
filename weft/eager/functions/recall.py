"""Doors that remember calls: what a function records mostly follows from its arguments' types.

Most functions check and convert their arguments, then record one call on them. Another call with
arguments of these types, and the same other arguments, is recorded at once. Nobody declares which
functions are like that: each is watched. What reads a value, a layout or a setting (`weft.ir.look`)
or records anything besides is not remembered.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from types import EllipsisType
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from weft.eager.functions.indexing.basic_index import Part
from weft.eager.record.global_mark import inferring
from weft.eager.record.interned_type import intern
from weft.eager.record.lazy import Lazy, Record, known
from weft.eager.record.plan import Plan, SizedPlan
from weft.eager.record.state import State, trace
from weft.eager.tensor.handle import Handle, handle_of
from weft.eager.tensor.view.view import View
from weft.host.compiled_method import compiled_function
from weft.ir.dtype import DType
from weft.ir.hooks import HOOKS
from weft.ir.look import looks
from weft.ir.node import TensorType
from weft.ops.refusal import remembering as remembering
from weft.runtime.flight import aloft, land_for

MOST_SHAPES: Final = 4  # ways in which one function is called
MOST_CALLS: Final = 256  # of a shape: they keep their plans alive; forgotten together
MOST_PAUSE: Final = 32
TRIES: Final = 16  # calls in a row that cannot be remembered, after which a door no longer watches
F = TypeVar("F", bound=Callable[..., Any])
_ABSENT: Final = object()
_NOTHING: Final = (None, None, None)
_BOOLS: Final = {False: "False", True: "True"}  # which equal 0 and 1


def of_any_sizes(function: F) -> F:
    """Marks a function that looks at dtypes and ranks alone, besides what the calls check that it
    records."""
    vars(function)["sizeless"] = True
    return function


class Shape(NamedTuple):
    """How a function is called.

    Attributes:
        count: arguments without names.
        names: those of the others.
        tensors: which arguments are tensors.
        order: which arguments are the inputs of the recorded call.
        is_view: whether the result is a view of the only tensor.
    """

    count: int
    names: tuple[str, ...]
    tensors: tuple[int, ...]
    order: tuple[int, ...]
    is_view: bool


Found = tuple[Any, Plan | None, Any]
"""The class of the result, the plan, and the lens of a view."""


class Calls:
    """The calls of one shape.

    Attributes:
        latest: the types of the tensors, the other arguments, the class of the first tensor; and
            what was found.
    """

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.latest: tuple[Any, ...] = (None,) * (len(shape.names) + shape.count + 1) + _NOTHING
        self._found: dict[Any, Found] = {}
        self._sized: dict[Any, SizedPlan] = {}  # by dtypes and ranks
        self._order = tuple([shape.tensors.index(i) for i in shape.order])
        self._ordered = self._order == tuple(range(len(shape.tensors)))
        self.parts: dict[Any, Part] = {}
        self.unused = 0  # calls that were remembered since one came again

    def find(self, types: Sequence[TensorType], others: Sequence[Any], kind: Any) -> Found:
        """What a call records, if it is known."""
        try:
            static = tuple([*map(_hashable, others)])
        except TypeError:
            return _NOTHING
        key = (kind, static, *map(id, types))
        found = self._found.get(key)
        if found is None:
            found = self._resized(key, types)
            if found is None:
                return _NOTHING
        self.unused = 0
        self.latest = (*types, *others, kind, *found)
        return found

    def _resized(self, key: Any, types: Sequence[TensorType]) -> Found | None:
        """The same for other sizes, if only types and ranks matter."""
        sized = self._sized and self._sized.get((*key[:2], *_without_sizes(types)))
        if not sized:
            return None
        plan = sized.at(types if self._ordered else [types[i] for i in self._order])
        return None if plan is None else self._enter(key, (key[0], plan, None))

    def _enter(self, key: Any, found: Found) -> Found:
        if len(self._found) >= MOST_CALLS:
            self._found.clear()
        self._found[key] = found
        return found

    def learn(
        self, types: Sequence[TensorType], others: Sequence[Any], found: Found, sizeless: bool
    ) -> None:
        """Remember a call.

        Args:
            sizeless: whether sizes do not matter.
        """
        static = tuple([*map(_hashable, others)])
        self.unused += 1
        self._enter((found[0], static, *map(id, types)), found)
        plan = found[1]
        if sizeless and plan is not None and found[2] is None:
            self._sized[found[0], static, *_without_sizes(types)] = SizedPlan(plan)

    def part(self, others: Sequence[Any]) -> Part | None:
        """The lens of a view of a computed tensor."""
        try:
            return self.parts.get(_hashable(others))
        except TypeError:
            return None


def _without_sizes(types: Sequence[TensorType]) -> list[Any]:
    found: list[Any] = []
    for kind in types:
        shape: Any = kind.shape  # always known
        found += (kind.dtype, len(shape), kind.__class__)
    return found


_BOUNDS: Final = frozenset({int, type(None)})
_PLAIN: Final = frozenset({int, str, type(None), DType, EllipsisType})


def _hashable(value: Any) -> Any:
    """An argument as a key that equals no other one's.

    Raises:
        TypeError: it is none of which that is known.
    """
    kind = value.__class__
    if kind in _PLAIN:
        return value
    if kind is bool:
        return _BOOLS[value]
    if kind is float and value:  # 0.0 equals -0.0
        return (float, value)
    if kind is slice:
        start, stop, step = value.start, value.stop, value.step
        if start.__class__ in _BOUNDS and stop.__class__ in _BOUNDS and step.__class__ in _BOUNDS:
            return (slice, start, stop, step)
        raise TypeError
    if kind is tuple:
        return tuple([*map(_hashable, value)])
    raise TypeError


class Memory:
    """What is known of the calls of a function.

    Attributes:
        way: records a call and gives its result; `None` for a call that is not known.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._sizeless = bool(getattr(function, "sizeless", False))
        self._calls: dict[Shape, Calls] = {}
        self._tries = TRIES
        self._pause = 0
        self.way: Callable[[tuple[Any, ...], dict[str, Any]], Any] = _no_way

    def watch(self) -> tuple[list[Record], int, int, int]:
        """What is there before a call that is watched."""
        now = trace.now
        pending = now.pending
        return pending, len(pending), len(now.changes), looks.count

    def learn(
        self, before: tuple[list[Record], int, int, int], args: tuple[Any, ...],
        options: Mapping[str, Any], found: Any,
    ) -> None:  # fmt: skip
        """Remember a call that was watched, if that can be."""
        now = trace.now
        pending, count, changes, seen = before
        if (
            now.pending is pending and len(now.changes) == changes and looks.count == seen
            and now.autocast is None and not now.depth and isinstance(found, Handle)
            and type(found) is found.kind
        ):  # fmt: skip
            made = len(pending) - count
            if made == 1 and self._learn_call(now, (*args, *options.values()), options, found):
                self._tries = TRIES
                return
            if not made and self._learn_part((*args, *options.values()), options, found):
                self._tries = TRIES
                return
        self._tries -= 1

    @property
    def open(self) -> bool:
        """Whether the next call is watched.

        Not if many could not be remembered, and seldom while none that was has come again.
        """
        if self._pause:
            self._pause -= 1
            return False
        self._pause = min([MOST_PAUSE, *[calls.unused for calls in self._calls.values()]])
        return self._tries > 0

    def _learn_call(
        self, now: State, given: tuple[Any, ...], options: Mapping[str, Any], found: Handle
    ) -> bool:
        record, lazy, view = now.pending[-1], found.shown, found.window
        tensors = tuple([i for i, x in enumerate(given) if isinstance(x, Handle)])
        if lazy.record is not record or not record.plan.single or not tensors:
            return False
        first: Any = given[tensors[0]]
        values: list[Lazy] = [given[i].shown for i in tensors]
        if type(found) is not first.kind or len({id(x) for x in values}) < len(values):
            return False
        if view is not None and not (
            len(tensors) == 1 and view.base is first and first.window is None
            and not view.lens.detached and first.shown.loan is None
        ):  # fmt: skip
            return False
        order: list[int] = []
        for x in record.inputs:
            place = next((i for i, y in zip(tensors, values, strict=True) if x is y), None)
            if place is None:
                return False
            order.append(place)
        calls = self._shaped(given, options, tensors, tuple(order), view is not None)
        if calls is None:
            return False
        lens = None if view is None else view.lens
        others = [x for i, x in enumerate(given) if i not in tensors]
        try:
            types = [x.type for x in values]
            calls.learn(types, others, (first.kind, record.plan, lens), self._sizeless)
        except TypeError:
            return False
        return True

    def _learn_part(
        self, given: tuple[Any, ...], options: Mapping[str, Any], found: Handle
    ) -> bool:
        """Remember a view of a computed tensor, which records nothing."""
        view = found.window
        if view is None or type(view.lens) is not Part:
            return False
        tensors = tuple([i for i, x in enumerate(given) if isinstance(x, Handle)])
        base: Any = view.base
        if len(tensors) != 1 or given[tensors[0]] is not base or base.window is not None:
            return False
        if type(found) is not base.kind or base.shown.loan is not None:
            return False
        calls = self._shaped(given, options, tensors, tensors, True)
        if calls is None:
            return False
        try:
            key = _hashable(tuple([x for i, x in enumerate(given) if i not in tensors]))
        except TypeError:
            return False
        if len(calls.parts) >= MOST_CALLS:
            calls.parts.clear()
        calls.parts[key] = view.lens
        return True

    def _shaped(
        self, given: Sequence[Any], options: Mapping[str, Any], tensors: tuple[int, ...],
        order: tuple[int, ...], is_view: bool,
    ) -> Calls | None:  # fmt: skip
        """The calls of a shape; `None` for one too many."""
        shape = Shape(len(given) - len(options), tuple(options), tensors, order, is_view)
        found = self._calls.get(shape)
        if found is None and len(self._calls) < MOST_SHAPES:
            found = self._calls[shape] = Calls(shape)
            self.way = _written([*self._calls.values()])
        return found


def _no_way(args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    del args, options


def _written(known_calls: Sequence[Calls]) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
    """A function for calls of these shapes, without a loop."""
    names: dict[str, Any] = {
        "trace": trace, "Handle": Handle, "handle_of": handle_of, "View": View, "absent": _ABSENT,
        "frame": sys._getframe,  # pyright: ignore[reportPrivateUsage]
        "part_of": _part, "inferring": inferring, "new": object.__new__,
    }  # fmt: skip
    lines = ["now = trace.now", "if now.autocast is not None: return None"]
    for number, calls in enumerate(known_calls):
        names[f"calls{number}"] = calls
        lines += _lines(calls.shape, f"calls{number}")
    return compiled_function(__name__, "way", ["args", "options"], lines, names)


def _lines(shape: Shape, calls: str) -> list[str]:
    count, whole = shape.count, shape.count + len(shape.names)
    names = [f"x{i}" for i in range(whole)]
    others = [f"x{i}" for i in range(whole) if i not in shape.tensors]
    types = [f"v{i}.type" for i in shape.tensors]
    first = f"x{shape.tensors[0]}"
    latest = [f"l{i}" for i in range(whole)]
    differ = [f"{a} is not {b}" for a, b in zip(latest, [*types, *others], strict=True)]
    inner = [*[f"v{i} = x{i}.shown if x{i}.window is None else x{i}.lazy" for i in shape.tensors]]
    find = f"{calls}.find(({', '.join(types)},), ({''.join([o + ', ' for o in others])}), {first}.kind)"
    look = [
        f"{', '.join(latest)}, like, kind, plan, lens = {calls}.latest",
        f"if {' or '.join(differ)} or like is not {first}.kind: kind, plan, lens = {find}",
    ]
    inputs = "".join([f"v{i}, " for i in shape.order])
    made = f"handle_of(kind, now.record_one(plan, ({inputs}), frame(2)))"
    if shape.is_view:
        v = f"v{shape.tensors[0]}"
        given = f"({''.join([o + ', ' for o in others])})"
        inner = [
            f"version, {v} = {first}._version, {first}.shown",
            f"if {first}.window is None and {v}.loan is None:",
            f"    if {v}.array is not None and {calls}.parts and not "
            f"(({v}.tracked and now.grad_mode) or now.depth or now.inspect is not None):",
            f"        return part_of({first}, {v}, {calls}.part({given}), version)",
            *["    " + line for line in look],
            "    if plan is not None:",
            f"        found = {made}",
            "        found.window = view = new(View)",
            f"        view.base, view.lens, view._version = {first}, lens, version",
            "        view.flows = now.grad_mode",
            f"        {first}.views += 1",
            f"        if inferring.used: found.inferred = getattr({first}, 'inferred', False)",
            "        return found",
        ]
    else:
        inner += [*look, f"if plan is not None: return {made}"]
    taken = [f"{', '.join(names[:count])}, = args"] if count else []
    taken += [f"{x} = options.get({n!r}, absent)" for x, n in zip(names[count:], shape.names, strict=True)]
    are = " and ".join([f"isinstance(x{i}, Handle)" for i in shape.tensors])
    body = [*taken, f"if {are}:", *["    " + line for line in inner]]
    named = f" and len(options) == {len(shape.names)}" if shape.names else " and not options"
    return [f"if len(args) == {count}{named}:", *["    " + line for line in body]]


def _part(x: Handle, base: Lazy, lens: Part | None, version: int) -> Any:
    """A view of a computed tensor: a copy of the part; `None` if it is not known."""
    array = base.array
    if lens is None or array is None:
        return None
    if aloft:
        land_for(id(array))
    try:
        part = array[lens.entries]
    except IndexError:
        return None
    dtype = base.type.dtype
    found = handle_of(x.kind, known(np.array(part, order="C"), intern(dtype, part.shape)))
    found.look(View(x, lens, version))
    return found


HOOKS.memory = Memory

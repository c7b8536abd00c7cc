"""Doors that remember calls: what a function records mostly follows from its arguments' types.

Most functions check and convert their arguments, then record one call on them. Another call with
arguments of these types, and the same other arguments, is recorded at once. Nobody declares which
functions are like that: each is watched. What reads a value, a layout or a setting (`weft.ir.look`)
or records anything besides is not remembered.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import EllipsisType
from typing import Any, Final, NamedTuple, TypeVar

from weft.eager.functions.indexing.basic_index import Part, copied_part
from weft.eager.record.global_mark import inferring
from weft.eager.record.lazy import Lazy, Number, Record, begun
from weft.eager.record.plan import Plan, SizedPlan
from weft.eager.record.state import trace
from weft.eager.tensor.handle import Handle, handle_of
from weft.eager.tensor.recorder import recorder
from weft.eager.tensor.view.view import View
from weft.host.compiled_method import compiled_function
from weft.ir.dtype import DType
from weft.ir.hooks import HOOKS
from weft.ir.look import looks
from weft.ir.node import TensorType
from weft.ops.refusal import remembering as remembering

MOST_SHAPES: Final = 4  # ways in which one function is called
MOST_CALLS: Final = 256  # of a shape: they keep their plans alive; forgotten together
MOST_STEPS: Final = 3  # calls that one call of a function records
MOST_PAUSE: Final = 32
TRIES: Final = 16  # calls in a row that cannot be remembered, after which a door no longer watches
F = TypeVar("F", bound=Callable[..., Any])
_ABSENT: Final = object()
_BOOLS: Final = {False: "False", True: "True"}  # which equal 0 and 1


def of_any_sizes(function: F) -> F:
    """Marks a function that looks at dtypes and ranks alone, besides what the calls check that it
    records."""
    vars(function)["sizeless"] = True
    return function


Ref = tuple[str, int]
"""An input of a recorded call: an argument "x", a number "n", or the result "y" of an earlier one,
and which of these."""


class Shape(NamedTuple):
    """How a function is called, and what it records.

    Attributes:
        count: arguments without names.
        names: those of the others.
        tensors: which arguments are tensors.
        steps: the inputs of each recorded call.
        is_view: whether the result is a view of the only tensor.
    """

    count: int
    names: tuple[str, ...]
    tensors: tuple[int, ...]
    steps: tuple[tuple[Ref, ...], ...]
    is_view: bool


Found = tuple[Any, tuple[Plan, ...] | None, tuple[Number, ...], Any]
"""The class of the result, the plans, the numbers among their inputs, and the lens of a view."""
_NOTHING: Final[Found] = (None, None, (), None)


class _Sized:
    """What a call records in any sizes."""

    def __init__(self, shape: Shape, found: Found) -> None:
        self._kind, plans, self._numbers, _ = found
        self._plans = [*map(SizedPlan, plans or ())]
        self._steps = shape.steps
        self._place = {i: place for place, i in enumerate(shape.tensors)}
        order = [self._place.get(i, -1) if of == "x" else -1 for of, i in shape.steps[0]]
        self._plain = len(shape.steps) == 1 and order == [*range(len(shape.tensors))]

    def at(self, types: Sequence[TensorType]) -> Found | None:
        """What it records on tensors of these types; `None` if that is not known."""
        if self._plain:  # most calls
            plan = self._plans[0].at(types)
            return None if plan is None else (self._kind, (plan,), self._numbers, None)
        plans: list[Plan] = []
        for each, refs in zip(self._plans, self._steps, strict=True):
            given = [
                types[self._place[i]] if of == "x" else
                plans[i].types[0] if of == "y" else self._numbers[i].type
                for of, i in refs
            ]  # fmt: skip
            plan = each.at(given)
            if plan is None:
                return None
            plans.append(plan)
        return self._kind, tuple(plans), self._numbers, None


class Calls:
    """The calls of one shape.

    Attributes:
        latest: the types of the tensors, the other arguments, the class of the first tensor; and
            what was found.
        parts: the lenses of views of computed tensors, by the other arguments.
        unused: how many calls were remembered since one came again.
    """

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.latest: tuple[Any, ...] = (None,) * (len(shape.names) + shape.count + 1) + _NOTHING
        self._found: dict[Any, Found] = {}
        self._sized: dict[Any, _Sized] = {}  # by dtypes and ranks
        self.parts: dict[Any, Part] = {}
        self.unused = 0

    def find(self, types: Sequence[TensorType], others: Sequence[Any], kind: Any) -> Found:
        """What a call records, if it is known."""
        try:
            static = tuple([*map(_hashable, others)]) if others else ()
        except TypeError:
            return _NOTHING
        if self._sized:
            sized = self._sized.get((kind, static, *_without_sizes(types)))
            found = None if sized is None else sized.at(types)
        else:
            found = self._found.get((kind, static, *map(id, types)))
        if found is None:
            return _NOTHING
        self.unused = 0
        self.latest = (*types, *others, kind, *found)
        return found

    def learn(
        self, types: Sequence[TensorType], others: Sequence[Any], found: Found, sizeless: bool
    ) -> None:
        """Remember a call.

        Args:
            sizeless: whether sizes do not matter.

        Raises:
            TypeError: an argument is not known to stay what it is.
        """
        static = tuple([*map(_hashable, others)])
        kind, _, _, lens = found
        self.unused += 1
        if sizeless and lens is None:
            self._sized[kind, static, *_without_sizes(types)] = _Sized(self.shape, found)
            return
        if len(self._found) >= MOST_CALLS:
            self._found.clear()
        self._found[kind, static, *map(id, types)] = found

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
        way: records a call and gives its result; `None` for a call that is not known. `None` if it
            knows none and never will.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._sizeless = bool(getattr(function, "sizeless", False))
        self._calls: dict[Shape, Calls] = {}
        self._tries = TRIES
        self._pause = 0
        self.way: Callable[[tuple[Any, ...], dict[str, Any]], Any] | None = _no_way

    def watch(self) -> tuple[list[Record], int, int, int] | None:
        """What is there before a call; `None` if it is not watched.

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
        pending = now.pending
        return pending, len(pending), len(now.changes), looks.count

    def learn(
        self, before: tuple[list[Record], int, int, int], args: tuple[Any, ...],
        options: Mapping[str, Any], found: Any,
    ) -> None:  # fmt: skip
        """Remember a call that was watched, if that can be."""
        now = trace.now
        pending, count, changes, seen = before
        self._tries -= 1
        if (
            now.pending is pending and len(now.changes) == changes and looks.count == seen
            and now.autocast is None and not now.depth and isinstance(found, Handle)
            and type(found) is found.kind
        ):  # fmt: skip
            given, made = (*args, *options.values()), pending[count:]
            learn = partial(self._learn_calls, made) if made else self._learn_part
            with suppress(TypeError):
                if learn(given, options, found):
                    self._tries = TRIES

    def _learn_calls(
        self, made: Sequence[Record], given: tuple[Any, ...], options: Mapping[str, Any],
        found: Handle,
    ) -> bool:  # fmt: skip
        lazy, view = found.shown, found.window
        tensors = tuple([i for i, x in enumerate(given) if isinstance(x, Handle)])
        if lazy.record is not made[-1] or len(made) > MOST_STEPS or not tensors:
            return False
        first: Any = given[tensors[0]]
        values: list[Lazy] = [given[i].shown for i in tensors]
        if type(found) is not first.kind or len({id(x) for x in values}) < len(values):
            return False
        if view is not None and not (
            len(tensors) == len(made) == 1 and view.base is first and first.window is None
            and not view.lens.detached and first.shown.loan is None
        ):  # fmt: skip
            return False
        refs: dict[Lazy, Ref] = {x: ("x", i) for i, x in zip(tensors, values, strict=True)}
        for i, x in zip(tensors, values, strict=True):
            copy = None if x.loan is None or x.loan.last is None else x.loan.last()
            if copy is not None:  # what is recorded reads the copy
                refs[copy] = ("x", i)
        numbers: list[Number] = []
        for i, record in enumerate(made):
            result = record.results[0]()
            if not record.plan.single:
                return False
            for x in record.inputs:
                if x not in refs:
                    if type(x) is not Number:
                        return False
                    refs[x] = ("n", len(numbers))
                    numbers.append(x)
            if result is not None:
                refs[result] = ("y", i)
        steps = tuple([tuple([refs[x] for x in record.inputs]) for record in made])
        calls = self._shaped(given, options, tensors, steps, view is not None)
        if calls is None:
            return False
        lens = None if view is None else view.lens
        others = [x for i, x in enumerate(given) if i not in tensors]
        plans = tuple([record.plan for record in made])
        types = [x.type for x in values]
        calls.learn(types, others, (first.kind, plans, tuple(numbers), lens), self._sizeless)
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
        if type(found) is not base.kind:
            return False
        calls = self._shaped(given, options, tensors, ((("x", tensors[0]),),), True)
        if calls is None:
            return False
        key = _hashable(tuple([x for i, x in enumerate(given) if i not in tensors]))
        if len(calls.parts) >= MOST_CALLS:
            calls.parts.clear()
        calls.parts[key] = view.lens
        return True

    def _shaped(
        self, given: Sequence[Any], options: Mapping[str, Any], tensors: tuple[int, ...],
        steps: tuple[tuple[Ref, ...], ...], is_view: bool,
    ) -> Calls | None:  # fmt: skip
        """The calls of a shape; `None` for one too many."""
        shape = Shape(len(given) - len(options), tuple(options), tensors, steps, is_view)
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
        "trace": trace, "Handle": Handle, "recorder": recorder, "View": View, "absent": _ABSENT,
        "frame": sys._getframe,  # pyright: ignore[reportPrivateUsage]
        "part_of": _part, "again": _again, "inferring": inferring, "new": object.__new__,
    }  # fmt: skip
    lines = ["now = trace.now", "if now.autocast is not None or now.depth: return None"]
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
        f"{', '.join(latest)}, like, kind, plans, numbers, lens = {calls}.latest",
        f"if {' or '.join(differ)} or like is not {first}.kind: "
        f"kind, plans, numbers, lens = {find}",
    ]
    count_ = max([i + 1 for step in shape.steps for of, i in step if of == "n"], default=0)
    made = [
        "at = frame(2)",
        f"{''.join([f'p{i}, ' for i in range(len(shape.steps))])}= plans",
        *[f"n{i} = again(numbers[{i}])" for i in range(count_)],
        *[
            f"y{i} = now.record_one(p{i}, ({_inputs(step)}), at)"
            for i, step in enumerate(shape.steps[:-1])
        ],
    ]
    last = len(shape.steps) - 1
    result = f"recorder.made(kind, now, p{last}, ({_inputs(shape.steps[-1])}), at)"
    if shape.is_view:
        v = f"v{shape.tensors[0]}"
        given = f"({''.join([o + ', ' for o in others])})"
        inner = [
            f"version, {v} = {first}._version, {first}.shown",
            f"if {first}.window is None:",
            f"    if {v}.array is not None and {calls}.parts and not "
            f"(({v}.tracked and now.grad_mode) or now.depth or now.inspect is not None):",
            f"        return part_of({first}, {v}, {calls}.part({given}), version)",
            f"    if {v}.loan is not None: return None",
            *["    " + line for line in look],
            "    if plans is not None:",
            *["        " + line for line in made],
            f"        found = {result}",
            "        found.window = view = new(View)",
            f"        view.base, view.lens, view._version = {first}, lens, version",
            "        view.flows = now.grad_mode",
            f"        {first}.views += 1",
            f"        if inferring.used: found.inferred = getattr({first}, 'inferred', False)",
            "        return found",
        ]
    else:
        inner += [*look, "if plans is not None:", *["    " + line for line in made]]
        inner.append(f"    return {result}")
    taken = [f"{', '.join(names[:count])}, = args"] if count else []
    taken += [
        f"{x} = options.get({n!r}, absent)" for x, n in zip(names[count:], shape.names, strict=True)
    ]
    are = " and ".join([f"isinstance(x{i}, Handle)" for i in shape.tensors])
    body = [*taken, f"if {are}:", *["    " + line for line in inner]]
    named = f" and len(options) == {len(shape.names)}" if shape.names else " and not options"
    return [f"if len(args) == {count}{named}:", *["    " + line for line in body]]


def _inputs(step: Sequence[Ref]) -> str:
    return "".join([f"{'v' if of == 'x' else of}{i}, " for of, i in step])


def _again(number: Number) -> Number:
    """An equal number, which is another input."""
    found = begun(Number(), number.type)
    found.array = number.array
    return found


def _part(x: Handle, base: Lazy, lens: Part | None, version: int) -> Any:
    """A view of a computed tensor: a copy of the part; `None` if it is not known."""
    if lens is None:
        return None
    found = handle_of(x.kind, copied_part(base, lens.entries))
    found.look(View(x, lens, version))
    return found


HOOKS.memory = Memory

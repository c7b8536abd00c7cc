"""Writes the function that records the known calls of another: code without a loop."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from weft.eager.functions.indexing.basic_index import Part, copied_part
from weft.eager.functions.recall.call import Calls, Ref, Shape, are_same
from weft.eager.record.memory.snapshot import is_open
from weft.eager.record.pending.global_mark import changes, inferring
from weft.eager.record.pending.lazy import Lazy, Number, begun
from weft.eager.record.pending.state import trace
from weft.eager.tensor.handle import Handle, handle_of
from weft.eager.tensor.recorder import recorder
from weft.eager.tensor.view.view import View
from weft.eager.tensor.view.view_transform import layout_of
from weft.host.compiled_method import compiled_function

Way = Callable[[tuple[Any, ...], dict[str, Any]], Any]
"""Records a call with these arguments and gives its result; `None` if the call is not known."""
_ABSENT: Final = object()


def way_of(known: Sequence[Calls]) -> Way:
    """The function for calls of these shapes.

    In its text `x` are arguments, `v` values of tensors, `p` plans, `n` numbers, `y` results.
    """
    names: dict[str, Any] = {
        "trace": trace, "Handle": Handle, "recorder": recorder, "View": View, "absent": _ABSENT,
        "frame": sys._getframe,  # pyright: ignore[reportPrivateUsage]
        "part_of": _part, "are_same": are_same, "again": _again,
        "inferring": inferring, "new": object.__new__, "changes": changes, "layout_of": layout_of,
        "is_open": is_open,
    }  # fmt: skip
    lines = ["now = trace.now", "if now.autocast is not None or now.depth: return None"]
    for number, calls in enumerate(known):
        names[f"calls{number}"] = calls
        lines += _Text(calls.shape, f"calls{number}").lines()
    return compiled_function(__name__, "way", ["args", "options"], lines, names)


def _indented(lines: Sequence[str]) -> list[str]:
    return ["    " + line for line in lines]


def _tuple(items: Sequence[str]) -> str:
    return f"({''.join([item + ', ' for item in items])})"


def _inputs(step: Sequence[Ref]) -> str:
    return _tuple([f"{'v' if of == 'x' else of}{i}" for of, i in step])


class _Text:
    """The text for calls of one shape."""

    def __init__(self, shape: Shape, calls: str) -> None:
        self._shape = shape
        self._calls = calls
        whole = shape.positional + len(shape.names)
        self._names = [f"x{i}" for i in range(whole)]
        self._others = [f"x{i}" for i in range(whole) if i not in shape.tensors]
        self._first = f"x{shape.tensors[0]}"

    def lines(self) -> list[str]:
        """For arguments of this shape."""
        shape, names = self._shape, self._names
        first, given = shape.listed, shape.positional
        firsts = [f"({', '.join(names[:first])},)"] if first else []
        taken = [f"{', '.join([*firsts, *names[first:given]])}, = args"] if given else []
        for x, name in zip(names[shape.positional :], shape.names, strict=True):
            taken.append(f"{x} = options.get({name!r}, absent)")
        are = " and ".join([f"isinstance(x{i}, Handle)" for i in shape.tensors])
        inner = self._view() if shape.views else self._call()
        named = f"len(options) == {len(shape.names)}" if shape.names else "not options"
        if first:
            given -= first - 1
            is_list = "(args[0].__class__ is list or args[0].__class__ is tuple)"
            named += f" and {is_list} and len(args[0]) == {first}"
        head = f"if len(args) == {given} and {named}:"
        return [head, *_indented([*taken, f"if {are}:", *_indented(inner)])]

    def _found(self) -> list[str]:
        """Looks up what a call records: mostly what the latest one did."""
        types = [f"v{i}.type" for i in self._shape.tensors]
        if self._shape.laid:
            types += [f"layout_of(x{i})" for i in self._shape.tensors]
        latest = [f"l{i}" for i in range(len(types) + len(self._others))]
        count = len(types)
        differ = [f"{a} is not {b}" for a, b in zip(latest[:count], types, strict=True)]
        for a, b in zip(latest[count:], self._others, strict=True):
            differ.append(f"({a} is not {b} and not are_same({a}, {b}))")
        first, calls = self._first, self._calls
        return [
            f"{', '.join(latest)}, like, kind, plans, numbers, lenses = {calls}.latest",
            f"if {' or '.join(differ)} or like is not {first}.kind:",
            f"    kind, plans, numbers, lenses = {calls}.find("
            f"{_tuple(types)}, {_tuple(self._others)}, {first}.kind)",
        ]

    def _made(self) -> list[str]:
        """Records it; the result is `made`."""
        *before, last = self._shape.steps
        numbers = {i for step in self._shape.steps for of, i in step if of == "n"}
        count = len(before)
        return [
            "at = frame(2)",
            f"{''.join([f'p{i}, ' for i in range(count + 1)])}= plans",
            *[f"n{i} = again(numbers[{i}])" for i in numbers],
            *[
                f"y{i} = recorder.made(kind, now, p{i}, {_inputs(step)}, at).shown"
                for i, step in enumerate(before)
            ],
            f"made = recorder.made(kind, now, p{count}, {_inputs(last)}, at)",
        ]

    def _call(self) -> list[str]:
        values = [
            f"v{i} = x{i}.shown if x{i}.window is None else x{i}.lazy" for i in self._shape.tensors
        ]
        return [
            *values, *self._found(), "if plans is not None:",
            *_indented([*self._made(), "return made"]),
        ]  # fmt: skip

    def _view(self) -> list[str]:
        """Views of a tensor; of a computed one that is no view itself they are copies."""
        shape, x, v, calls = self._shape, self._first, f"v{self._shape.tensors[0]}", self._calls
        made = [f"y{i}" for i in range(shape.views)]
        recorded = [
            f"if {v}.loan is not None and is_open({v}): return None",
            *self._found(),
            "if plans is not None:",
            "    at = frame(2)",
            f"    {''.join([f'p{i}, ' for i in range(shape.views)])}= plans",
            f"    {''.join([f'lens{i}, ' for i in range(shape.views)])}= lenses",
        ]
        for i, y in enumerate(made):
            recorded += [
                f"    {y} = recorder.made(kind, now, p{i}, ({v},), at)",
                f"    {y}.window = view = new(View)",
                f"    view.base, view.lens, view._version = {x}, lens{i}, version",
                "    view.mark, view.layout, view.flows = mark, None, now.grad_mode",
                f"    if inferring.used: {y}.inferred = getattr({x}, 'inferred', False)",
            ]
        recorded += [
            f"    {x}.views += {shape.views}",
            f"    return {_tuple(made) if shape.several else made[0]}",
        ]
        if shape.of_view:  # the mark first: another thread may change the base
            return [
                f"window, mark = {x}.window, changes.mark",
                "if window is not None:",
                f"    if window.mark is mark: {v}, version = {x}.shown, window._version",
                f"    else: version, {v} = {x}.version, {x}.lazy",
                *_indented(recorded),
            ]
        return [
            "mark = changes.mark",
            f"version, {v} = {x}._version, {x}.shown",  # first: another thread may change it
            f"if {x}.window is None:",
            f"    if getattr({x}, 'lent', False): mark = None",
            f"    if {v}.array is not None and {calls}.parts and now.inspect is None and not "
            f"({v}.tracked and now.grad_mode):",
            f"        return part_of({x}, {v}, {calls}.part({v}.type.shape, "
            f"{_tuple(self._others)}), version)",
            *_indented(recorded),
        ]


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

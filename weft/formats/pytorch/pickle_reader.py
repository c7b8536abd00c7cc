"""Reads pickles as data: executes instructions that build containers, and imports no names.

A pickle is a program for a stack machine; two of its instructions import any function by name and
call it. Here `Objects` decides what a name and a call of it are, and anything unexpected is an
error. Nothing is imported, and the size of the result is bounded by the bytes read.

Source: the table of instructions in Python's `pickletools`.
"""

from __future__ import annotations

import pickletools
import struct
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any, Final, NamedTuple, Protocol, cast

from weft.errors import DataError


class Name(NamedTuple):
    """The name of a class or a function, unresolved."""

    module: str
    name: str

    def __str__(self) -> str:
        module = "builtins" if self.module == "__builtin__" else self.module
        return f"{module}.{self.name}"


class Unpicklable(Exception):
    """The pickle has more than data."""


class Objects(Protocol):
    """What a pickle's names and calls stand for."""

    def value(self, name: Name) -> Any:
        """What a name stands for: a value, or the name itself."""
        ...

    def call(self, name: Name, arguments: tuple[Any, ...]) -> Any:
        """The result of calling a name, or the object of a class.

        Raises:
            Unpicklable: the name is not known.
        """
        ...

    def build(self, target: Any, state: Any) -> None:
        """Sets the state of an object.

        Raises:
            Unpicklable: the object has none, or another one.
        """
        ...

    def load(self, identity: tuple[Any, ...]) -> Any:
        """The object of a persistent id."""
        ...

    def checked(self, whole: Any) -> Any:
        """The content of the pickle.

        Raises:
            Unpicklable: something in it is no data.
        """
        ...


_MARK: Final = object()
_FAULTS: Final = (
    Unpicklable, ValueError, TypeError, LookupError, AttributeError, struct.error, RecursionError,
    OverflowError,
)  # fmt: skip


def read_pickle(data: bytes | IO[bytes], objects: Objects, what: str) -> Any:
    """The content of a pickle, which may be the next one of a file.

    Args:
        what: the pickle's source, for errors.

    Raises:
        DataError: it is damaged, or has more than data.
    """
    machine = _Machine(objects)
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name == "STOP":
                return objects.checked(machine.result())
            step = _STEPS.get(opcode.name)
            if step is None:
                raise Unpicklable(f"instruction {opcode.name}")
            step(machine, argument)
    except _FAULTS as error:
        raise DataError(f"load: {what}: expected tensors and containers, got {error}") from None
    raise DataError(f"load: {what}: it is truncated")


def contents(whole: Any) -> Iterator[Any]:
    """Each object in containers, once, and the containers themselves."""
    seen: set[int] = set()
    waiting = [whole]
    while waiting:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        yield item
        if isinstance(item, Mapping | Namespace):
            entries = cast("dict[Any, Any]", vars(item) if isinstance(item, Namespace) else item)
            waiting += [*entries.keys(), *entries.values()]
        elif isinstance(item, list | tuple | set | frozenset):
            waiting += cast("list[Any]", item)


class _Machine:
    """The stack, and the memo."""

    def __init__(self, objects: Objects) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.objects = objects

    def pop(self) -> Any:
        found = self.stack.pop()
        if found is _MARK:
            raise Unpicklable("a mark in place of a value")
        return found

    def result(self) -> Any:
        if len(self.stack) != 1:
            raise Unpicklable(f"{len(self.stack)} values at the end")
        return self.pop()

    def top(self, kind: type) -> Any:
        found = self.stack[-1]
        if not isinstance(found, kind):
            raise Unpicklable(f"{type(found).__name__} in place of {kind.__name__}")
        return found

    def to_mark(self) -> list[Any]:
        """Pops everything above the last mark, and the mark."""
        for place in range(len(self.stack) - 1, -1, -1):
            if self.stack[place] is _MARK:
                found = self.stack[place + 1 :]
                del self.stack[place:]
                return found
        raise Unpicklable("no mark")

    # -- instructions

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def tuple_of(self, count: int) -> None:
        values = [self.pop() for _ in range(count)]
        self.push(tuple(reversed(values)))

    def append(self, _: Any) -> None:
        value = self.pop()
        self.top(list).append(value)

    def appends(self, _: Any) -> None:
        values = self.to_mark()
        self.top(list).extend(values)

    def add_items(self, _: Any) -> None:
        values = self.to_mark()
        self.top(set).update(values)

    def set_item(self, _: Any) -> None:
        value, key = self.pop(), self.pop()
        self.top(dict)[key] = value

    def set_items(self, _: Any) -> None:
        values = self.to_mark()
        self.top(dict).update(zip(values[::2], values[1::2], strict=True))

    def put(self, place: int) -> None:
        if self.stack[-1] is _MARK:
            raise Unpicklable("a mark in place of a value")
        self.memo[place] = self.stack[-1]

    def memoize(self, _: Any) -> None:
        self.put(len(self.memo))

    def get(self, place: int) -> None:
        self.push(self.memo[place])

    def name(self, text: str) -> None:
        module, _, name = text.partition(" ")
        self.push(self.objects.value(Name(module, name)))

    def stack_name(self, _: Any) -> None:
        name, module = self.pop(), self.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise Unpicklable("a name that is not a string")
        self.push(self.objects.value(Name(module, name)))

    def call(self, _: Any) -> None:
        arguments, function = self.pop(), self.pop()
        if not isinstance(function, Name) or not isinstance(arguments, tuple):
            raise Unpicklable("a call of something that is not a name")
        self.push(self.objects.call(function, arguments))  # pyright: ignore[reportUnknownArgumentType]

    def call_with_names(self, _: Any) -> None:
        named = self.pop()
        if named:
            raise Unpicklable(f"{self.stack[-2]} with arguments by name")
        self.call(None)

    def old_object(self, text: str) -> None:
        arguments = tuple(self.to_mark())
        self.name(text)
        self.push(arguments)
        self.call(None)

    def older_object(self, _: Any) -> None:
        function, *arguments = self.to_mark()
        self.push(function)
        self.push(tuple(arguments))
        self.call(None)

    def build(self, _: Any) -> None:
        state = self.pop()
        self.objects.build(self.stack[-1], state)

    def persistent(self, _: Any) -> None:
        identity = self.pop()
        if not isinstance(identity, tuple):
            raise Unpicklable("a persistent id that is not a tuple")
        self.push(self.objects.load(identity))  # pyright: ignore[reportUnknownArgumentType]

    def old_text(self, text: str) -> None:
        """Bytes, which Python 2 called text; `pickletools` gives them as Latin-1."""
        self.push(text.encode("latin-1").decode("utf-8"))


def _constant(value: Any) -> Callable[[_Machine, Any], None]:
    return lambda machine, _: machine.push(value)


_PUSHED: Final = (
    "BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT", "BINUNICODE",
    "SHORT_BINUNICODE", "BINUNICODE8", "SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "BYTEARRAY8",
)  # fmt: skip
_STEPS: Final[dict[str, Callable[[_Machine, Any], None]]] = {
    **dict.fromkeys(_PUSHED, _Machine.push),
    "PROTO": lambda machine, version: None,
    "FRAME": lambda machine, size: None,
    "NONE": _constant(None),
    "NEWTRUE": _constant(True),
    "NEWFALSE": _constant(False),
    "MARK": _constant(_MARK),
    "EMPTY_TUPLE": _constant(()),
    "EMPTY_LIST": lambda machine, _: machine.push([]),
    "EMPTY_DICT": lambda machine, _: machine.push({}),
    "TUPLE": lambda machine, _: machine.push(tuple(machine.to_mark())),
    "TUPLE1": lambda machine, _: machine.tuple_of(1),
    "TUPLE2": lambda machine, _: machine.tuple_of(2),
    "TUPLE3": lambda machine, _: machine.tuple_of(3),
    "APPEND": _Machine.append,
    "APPENDS": _Machine.appends,
    "ADDITEMS": _Machine.add_items,
    "SETITEM": _Machine.set_item,
    "SETITEMS": _Machine.set_items,
    "BINPUT": _Machine.put,
    "LONG_BINPUT": _Machine.put,
    "MEMOIZE": _Machine.memoize,
    "BINGET": _Machine.get,
    "LONG_BINGET": _Machine.get,
    "GLOBAL": _Machine.name,
    "STACK_GLOBAL": _Machine.stack_name,
    "REDUCE": _Machine.call,
    "NEWOBJ": _Machine.call,
    "NEWOBJ_EX": _Machine.call_with_names,
    "INST": _Machine.old_object,
    "OBJ": _Machine.older_object,
    "SHORT_BINSTRING": _Machine.old_text,
    "BINSTRING": _Machine.old_text,
    "EMPTY_SET": lambda machine, _: machine.push(set()),
    "FROZENSET": lambda machine, _: machine.push(frozenset(machine.to_mark())),
    "BUILD": _Machine.build,
    "BINPERSID": _Machine.persistent,
}

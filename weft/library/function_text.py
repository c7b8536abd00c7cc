"""What tells a function from others, across processes: its code and all that this refers to."""

from __future__ import annotations

import builtins
import dis
import functools
import marshal
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from weft.ops.declaration import Op, catalogue
from weft.runtime.compilation.cache import digest
from weft.runtime.compilation.fingerprint import DECISIVE, UNKNOWN, text_of

_HASHED: Final = tuple([f"weft.{package}." for package in DECISIVE])
"""Packages whose text is part of every key: names tell what is in them."""


class NoFunctionTextError(Exception):
    """A function refers to something that has no text."""


def text_of_value(value: Any) -> str:
    """An attribute of a call as text, also one that holds functions.

    Raises:
        NoFunctionTextError: there is none.
    """
    if isinstance(value, FunctionType):
        return text_of_function(value)
    if isinstance(value, Op):
        return f"op {value.name}"
    if isinstance(value, tuple):
        return f"({','.join([text_of_value(x) for x in value])})"  # pyright: ignore[reportUnknownVariableType]
    text = text_of(value)
    if text.endswith(UNKNOWN):
        raise NoFunctionTextError
    return text


@functools.lru_cache(maxsize=1024)
def text_of_function(function: FunctionType) -> str:
    """A function as text.

    Raises:
        NoFunctionTextError: there is none.
    """
    return digest(*_parts(function, set()))


def _parts(function: FunctionType, met: set[FunctionType]) -> Iterator[str]:
    """What a function is made of, and what it refers to; each function once."""
    code, name = function.__code__, f"{function.__module__}:{function.__qualname__}"
    yield name
    if function in met:
        return
    met.add(function)
    for cell in function.__closure__ or ():
        yield from _referred(cell.cell_contents, met)
    yield from _referred((function.__defaults__, *(function.__kwdefaults__ or {}).items()), met)
    if name.startswith(_HASHED):
        yield str(code.co_firstlineno)
        return
    yield marshal.dumps(code).hex()
    for used in dict.fromkeys(_globals(code)):
        if used in function.__globals__:
            yield from _referred(function.__globals__[used], met)
        elif not hasattr(builtins, used):
            raise NoFunctionTextError


def _globals(code: CodeType) -> Iterator[str]:
    """The names of globals that code reads."""
    for step in dis.get_instructions(code):
        if step.opname == "LOAD_GLOBAL":
            yield step.argval
        elif step.opname == "IMPORT_NAME":
            raise NoFunctionTextError
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _globals(inner)


def _referred(value: Any, met: set[FunctionType]) -> Iterator[str]:
    if isinstance(value, FunctionType):
        yield from _parts(value, met)
    elif isinstance(value, tuple):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _referred(item, met)
    elif isinstance(value, ModuleType | type):
        name = f"{value.__name__}." if isinstance(value, ModuleType) else f"{value.__module__}."
        if not name.startswith((*_HASHED, "builtins.", "math.", "numpy.")):
            raise NoFunctionTextError
        yield name + value.__name__
    elif value is catalogue:
        yield "catalogue"
    else:
        yield text_of_value(value)

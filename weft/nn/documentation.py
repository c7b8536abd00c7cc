"""Descriptions of arguments that are written once and shown by every function with the argument."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def entries(doc: str | None) -> Iterator[tuple[list[str], str]]:
    """The names and the text of each entry of the section `Args:`.

    Args:
        doc: a docstring.

    >>> list(entries("Sum.\\n\\nArgs:\\n    x, y: the terms."))
    [(['x', 'y'], ' the terms.')]
    """
    section = inspect.cleandoc(doc or "").partition("\nArgs:\n")[2].partition("\n\n")[0]
    for entry in re.split(r"\n(?=    \S)", section):
        names, _, text = entry.strip().partition(":")
        if text:
            yield names.split(", "), text


def with_arguments(doc: str | None, names: Iterable[str], *sources: Any) -> str:
    """A docstring that also describes the arguments that other docstrings describe.

    Args:
        doc: the docstring.
        names: the arguments.
        sources: functions and classes whose docstrings describe them; the first that does counts.
    """
    text = inspect.cleandoc(doc or "")
    rest = set(names) - {name for described, _ in entries(doc) for name in described}
    lines: list[str] = []
    for source in sources:
        for described, meaning in entries(source.__doc__) if rest else ():
            shown = [name for name in described if name in rest]
            if shown:
                lines.append(f"    {', '.join(shown)}:{meaning}")
                rest.difference_update(shown)
    if not lines:
        return text
    head, section, tail = text.partition("\nArgs:\n")
    if section:
        own, gap, tail = tail.partition("\n\n")
        return "\n".join([f"{head}{section}{own}", *lines]) + gap + tail
    head, gap, tail = re.split(r"(\n\n(?=Raises:|Source:|>>> )|\Z)", text, maxsplit=1)
    return "\n".join([head, "", "Args:", *lines]) + gap + tail


def arguments_of(*sources: Any) -> Callable[[F], F]:
    """A decorator: arguments that a docstring leaves out are described as by other functions.

    Args:
        sources: the functions; the first that describes an argument counts.
    """

    def described(function: F) -> F:
        code = inspect.unwrap(function).__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        function.__doc__ = with_arguments(function.__doc__, names, *sources)
        return function

    return described

"""Descriptions of arguments that are written once and shown by every function with the argument."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

_REST: Final = re.compile(r"(?=\n\n(?:(?:Raises|Returns|Example|Source):|>>> )|\Z)")
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
        names: the arguments, in order.
        sources: functions and classes whose docstrings describe them; the first that does counts.
    """
    text, order = inspect.cleandoc(doc or ""), list(names)
    described = list(entries(doc))
    rest = set(order).difference(*[entry for entry, _ in described])
    for source in sources if rest else ():
        for entry, meaning in entries(source.__doc__):
            shown = [name for name in entry if name in rest]
            described += [(shown, meaning)] if shown else []
            rest.difference_update(shown)
    if not described:
        return text
    place = {name: i for i, name in enumerate(order)}
    described.sort(key=lambda entry: min([place.get(name, len(place)) for name in entry[0]]))
    lines = [f"    {', '.join(entry)}:{meaning}" for entry, meaning in described]
    before, section, after = text.partition("\nArgs:\n")
    if section:
        after = "".join(after.partition("\n\n")[1:])
    else:
        before, after = re.split(
            r"(?=\n\n(?:(?:Raises|Returns|Example|Source):|>>> )|\Z)", text, maxsplit=1
        )
        before += "\n"
    return "\n".join([before, "Args:", *lines]) + after


def inherit_arguments(cls: type[Any]) -> None:
    """Describe arguments that the docstring of a class of the package leaves out as its bases do.

    Args:
        cls: the class, which `__init_subclass__` of a base passes.
    """
    if cls.__module__.startswith("weft."):
        names = inspect.signature(cls.__init__).parameters
        cls.__doc__ = with_arguments(cls.__doc__, names, *cls.__mro__[1:])


def arguments_of(*sources: Any) -> Callable[[F], F]:
    """A decorator: arguments that a docstring leaves out are described as by others.

    Args:
        sources: functions and classes; the first that describes an argument counts.
    """

    def described(thing: F) -> F:
        names = inspect.signature(thing).parameters
        thing.__doc__ = with_arguments(thing.__doc__, names, *sources)
        return thing

    return described

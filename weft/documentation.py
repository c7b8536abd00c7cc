"""Descriptions of arguments that are written once and shown by every function with the argument."""

from __future__ import annotations

import inspect
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar, overload

Entry = tuple[list[str], str]
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

_LATER: Final = re.compile(
    r"(?=\n\n(?:(?:Raises|Returns|Example|Source):|>>> )|\Z)"
)  # the sections after `Args:`


def entries(doc: str | None) -> Iterator[Entry]:
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
    text = inspect.cleandoc(doc or "")
    described = _described(doc, list(names), sources)
    if not described:
        return text
    lines = [f"    {', '.join(entry)}:{meaning}" for entry, meaning in described]
    before, section, after = text.partition("\nArgs:\n")
    if section:
        after = "".join(after.partition("\n\n")[1:])
    else:
        before, after = _LATER.split(text, maxsplit=1)
        before = f"{before}\n"
    return "\n".join([before, "Args:", *lines]) + after


def _described(doc: str | None, names: list[str], sources: tuple[Any, ...]) -> list[Entry]:
    """The entries of a docstring and of others, in the order of the arguments."""
    described = list(entries(doc))
    rest = set(names).difference(*[entry for entry, _ in described])
    for source in sources if rest else ():
        for entry, meaning in entries(source.__doc__):
            shown = [name for name in entry if name in rest]
            described.extend([(shown, meaning)] if shown else [])
            rest.difference_update(shown)
    place = {name: i for i, name in enumerate(names)}
    return sorted(described, key=lambda e: min([place.get(name, len(place)) for name in e[0]]))


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


def named(name: str, doc: str | None, module: str | None = None) -> Callable[[F], F]:
    """A decorator for functions that are made in a function: their names and docstrings.

    Args:
        name: the name.
        doc: the docstring.
        module: the name of the module, if it is another than that of the code.

    >>> twice = named("twice", "Two times a number.")(lambda x: 2 * x)
    >>> twice.__name__, twice.__doc__
    ('twice', 'Two times a number.')
    """

    def renamed(function: F) -> F:
        function.__name__ = function.__qualname__ = name
        function.__doc__ = doc
        function.__module__ = module or function.__module__
        return function

    return renamed


class Reads(property, Generic[T]):
    """A property that reads another attribute, or one of a part: its type, its path, its docstring.

    Args:
        path: the attribute that it reads, such as `progress.step`.
        doc: the docstring.

    >>> class Run:
    ...     steps = range(10)
    ...     most = Reads[int]("steps.stop", "The number of steps.")
    >>> Run().most
    10
    """

    def __init__(self, path: str, doc: str) -> None:
        super().__init__(operator.attrgetter(path))
        self.__doc__ = doc

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: type[Any], /) -> Self: ...
        @overload
        def __get__(self, instance: Any, owner: type[Any] | None = None, /) -> T: ...
        def __get__(self, instance: Any, owner: type[Any] | None = None, /) -> Any: ...

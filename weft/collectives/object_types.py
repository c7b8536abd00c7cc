"""Types of containers in objects that ranks exchange, other than dicts, lists and tuples.

An object is sent with the place and a description of each such container. The receiver looks types
up by name: only named tuples and the dicts of `collections`.
"""

from __future__ import annotations

import builtins
import collections
import sys
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from weft.errors import DTypeError
from weft.exports import home_of
from weft.ir.node import at_user_line

Where = list[Any]
"""The path of keys from the outermost container to an inner one."""
_FACTORIES: Final = (None, list, dict, tuple, set, int, float, str, bool)


def described(obj: Any) -> list[tuple[Where, list[Any]]]:
    """The paths and types of an object's special containers, outer ones first.

    Raises:
        DTypeError: a type that other ranks could not look up.

    Example:
        >>> described([collections.OrderedDict(a=1)])
        [([0], ['OrderedDict'])]
    """
    descriptions: list[tuple[Where, list[Any]]] = []
    waiting: list[tuple[Any, Where]] = [(obj, [])]
    seen: set[int] = set()
    while waiting:
        item, where = waiting.pop()
        if not isinstance(item, Mapping | list | tuple) or id(item) in seen:
            continue
        if not isinstance(item, tuple):
            seen.add(id(item))
        description = _kind(item)
        if description:
            descriptions.append((where, description))
        items = item.items() if isinstance(item, Mapping) else enumerate(item)
        waiting += [(x, [*where, key]) for key, x in items]
    return descriptions


def _kind(item: Any) -> list[Any]:
    """The description of a container's type; empty for plain ones."""
    of = type(item)
    if of in (dict, list, tuple) or home_of(of).startswith("weft."):
        return _of_named(of) if hasattr(of, "_fields") else []
    if of in (collections.OrderedDict, collections.Counter):
        return [of.__name__]
    if of is collections.defaultdict:
        if item.default_factory not in _FACTORIES:
            raise _unknown(f"a defaultdict of {item.default_factory!r}")
        factory = item.default_factory
        return [of.__name__, None if factory is None else factory.__name__]
    if isinstance(item, tuple) and hasattr(of, "_fields"):
        return _of_named(of)
    raise _unknown(of.__name__)


def _of_named(of: Any) -> list[Any]:
    return ["namedtuple", home_of(of), of.__qualname__, list(of._fields)]


def _unknown(got: str) -> DTypeError:
    return DTypeError(
        f"save: expected dicts, lists, tuples, named tuples and the dicts of collections, got "
        f"{got}; send its parts{at_user_line()}"
    )


def with_types(obj: Any, kinds: list[tuple[Where, list[Any]]]) -> Any:
    """An object of plain containers with those that `described` has found."""
    outer = [obj]
    for where, description in reversed(kinds):  # inner ones first
        path = [0, *where]
        _replace(outer, path, _made(description, _at(outer, path)))
    return outer[0]


def _at(outer: Any, path: Where) -> Any:
    for key in path:
        outer = outer[key]
    return outer


def _replace(outer: Any, path: Where, value: Any) -> None:
    """Replace the value at a path; tuples on the path are copied."""
    container = _at(outer, path[:-1])
    if isinstance(container, tuple):
        items: list[Any] = list(container)  # pyright: ignore[reportUnknownArgumentType]
        items[path[-1]] = value
        _replace(outer, path[:-1], tuple(items))
    else:
        container[path[-1]] = value


def _made(description: list[Any], plain: Any) -> Any:
    if description[0] == "namedtuple":
        return _named_type(*description[1:])(*plain)
    if description[0] == "defaultdict":
        factory = None if description[1] is None else getattr(builtins, description[1])
        return collections.defaultdict(factory, plain)
    return getattr(collections, description[0])(plain)


def _named_type(module: str, name: str, fields: list[str]) -> Any:
    """This rank's named tuple of that name; a new one like it if it cannot be looked up."""
    named: Any = sys.modules.get(module)
    for part in name.split("."):
        named = getattr(named, part, None)
    right = isinstance(named, type) and issubclass(named, tuple)
    if right and list(getattr(named, "_fields", ())) == fields:
        return named
    return NamedTuple(name.rpartition(".")[2], [(field, Any) for field in fields])  # pyright: ignore

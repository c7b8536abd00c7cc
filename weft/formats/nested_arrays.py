"""Nested dicts, lists and tuples as a flat list, and back.

The parts of a dict, list or tuple come before it, so the list is flat and any depth works:

    {"w": tensor, "lr": [0.1]}   ["tensor","w"], ["plain",0.1], ["list",1], ["dict",["w","lr"]]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeGuard

import numpy as np

from weft.errors import DTypeError, TreeError
from weft.formats.safetensors_header import METADATA

Array = np.ndarray[Any, Any]
TREE: Final = "weft.tree"  # metadata key: the nesting of the arrays, and all other values
LONGEST_NAME: Final = 1000  # characters; deeper keys are replaced by numbers
MOST_BITS: Final = 4096  # of an integer: Python parses at most 4300 digits
_TENSOR: Final = "tensor"
_PLAIN: Final = (str, int, float, bool, type(None))
_KINDS: Final = {"list": list, "tuple": tuple}


class _Place(NamedTuple):
    """A place in the structure: a key, and the place of its container."""

    outer: _Place | None
    key: Any

    def __str__(self) -> str:
        keys: list[str] = []
        place: _Place | None = self
        while place is not None:
            keys.append(str(place.key))
            place = place.outer
        return ".".join(reversed(keys))


class _End(NamedTuple):
    """Marks the end of a container."""

    container: Any
    part: tuple[str, Any]


def parts(
    obj: Any, is_tensor: Callable[[Any], bool], array_of: Callable[[Any], Array],
    arrays: dict[str, Array], unfold: Callable[[Any], Any] | None = None,
) -> Iterator[tuple[str, Any]]:  # fmt: skip
    """The structure as a flat list; its arrays are collected by name.

    Args:
        is_tensor: whether something is saved as an array, by `array_of`.
        unfold: converts an object to what is saved, or returns it; a ValueError says what was
            expected, and what it is.

    Raises:
        DTypeError: something is neither tensor, number nor string, or a key neither string nor
            integer.
        TreeError: something contains itself.
    """
    around: set[int] = set()
    waiting: list[tuple[Any, _Place | None, int]] = [(obj, None, 0)]
    while waiting:
        item, place, letters = waiting.pop()
        if isinstance(item, _End):
            around.remove(id(item.container))
            yield item.part
            continue
        try:
            item = item if unfold is None else unfold(item)
        except ValueError as error:
            raise DTypeError.here(f"save: expected {error} {_at(place)}; save its parts") from None
        if is_tensor(item):
            name = _free_name(place, letters, arrays)
            arrays[name] = array_of(item)
            yield _TENSOR, name
        elif isinstance(item, Mapping | list | tuple):
            if id(item) in around:
                raise TreeError(f"save: the {type(item).__name__} {_at(place)} contains itself")
            around.add(id(item))
            part, items = _opened(item)
            waiting.append((_End(item, part), None, 0))
            waiting += [
                (x, _Place(place, key), letters + 1 + len(str(key))) for key, x in reversed(items)
            ]
        else:
            yield "plain", _plain(item, place)


def _opened(container: Any) -> tuple[tuple[str, Any], list[tuple[Any, Any]]]:
    """The entry of a container itself, and its items by key."""
    if isinstance(container, Mapping):
        items = [(_key(k), x) for k, x in container.items()]
        return ("dict", [k for k, _ in items]), items
    kind = "list" if isinstance(container, list) else "tuple"
    return (kind, len(container)), list(enumerate(container))


def _free_name(place: _Place | None, letters: int, arrays: Mapping[str, Array]) -> str:
    name = f"{_TENSOR}{len(arrays)}"
    if letters <= LONGEST_NAME:
        name = "" if place is None else str(place)
    name = name or _TENSOR
    while name in arrays or name == METADATA:  # {"a.b": ..., "a": {"b": ...}}
        name += "_"
    return name


def _plain(x: Any, place: _Place | None) -> Any:
    if not isinstance(x, _PLAIN):
        raise DTypeError.here(
            f"save: expected tensors, numbers or strings in dicts and lists, got "
            f"{type(x).__name__} {_at(place)}; save its parts"
        )
    if _is_long(x):
        raise DTypeError.here(
            f"save: expected {MOST_BITS} bits at most, got an integer of {x.bit_length()} bits "
            f"{_at(place)}"
        )
    return x


def _is_long(x: Any) -> TypeGuard[int]:
    return isinstance(x, int) and x.bit_length() > MOST_BITS


def _at(place: _Place | None) -> str:
    text = "" if place is None else str(place)
    return f"at {text[:LONGEST_NAME]!r}" if text else "at the top"


def _key(key: Any) -> str | int:
    if type(key) in (str, int) and not _is_long(key):
        return key
    got = "a longer one" if _is_long(key) else repr(key)
    raise DTypeError.here(
        f"save: expected strings or integers of {MOST_BITS} bits as keys, got {got}"
    )


def built(parts: Any, tensors: Mapping[str, Any]) -> Any:
    """Rebuilds a structure from the list that `parts` returned.

    Raises:
        ValueError, LookupError, TypeError: the list is invalid.
    """
    made: list[Any] = []
    for kind, content in parts:
        if kind == _TENSOR:
            made.append(tensors[content])
        elif kind == "plain":
            made.append(content)
        elif kind == "dict":
            found = dict(zip(content, _taken(made, len(content)), strict=True))
            if len(found) < len(content):
                raise ValueError("a duplicate key")
            made.append(found)
        else:
            made.append(_KINDS[kind](_taken(made, content)))
    (whole,) = made
    return whole


def _taken(made: list[Any], count: int) -> Sequence[Any]:
    """Pops the last so many."""
    first = len(made) - count
    if type(count) is not int or not 0 <= first <= len(made):
        raise ValueError(f"{count} parts of {len(made)}")
    taken = made[first:]
    del made[first:]
    return taken

"""Splits attributes and types into a pattern and the integers in it.

Calls that differ only in sizes have equal patterns and different integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

_INTEGERS: Final[frozenset[tuple[type[int], ...]]] = frozenset([(int,) * n for n in range(9)])
"""Patterns of tuples of integers alone, such as shapes."""


def without(item: Any, sizes: list[int]) -> Any:
    """The pattern of an attribute; appends its integers to `sizes`."""
    kind = item.__class__
    if kind is tuple:
        kinds = tuple(map(type, item))
        if kinds in _INTEGERS:
            sizes += item
            return kinds
    elif kind is int:
        sizes.append(item)
        return int
    elif not isinstance(item, tuple):
        return item
    return _like(item, [without(part, sizes) for part in item])


def refilled(item: Any, left: Iterator[int]) -> Any:
    """An attribute with the integers of `left` instead of its own: the inverse of `without`."""
    if item.__class__ is int:
        return next(left)
    if isinstance(item, tuple):
        return _like(item, [refilled(part, left) for part in cast("Sequence[Any]", item)])
    return item


def _like(item: Any, parts: list[Any]) -> Any:
    """The parts as a tuple of the same class."""
    make = getattr(type(item), "_make", tuple)  # of named tuples; a shape is as good as a tuple
    return make(parts)

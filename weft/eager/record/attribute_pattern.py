"""Attributes and types with the whole numbers in them taken apart.

Calls that differ in sizes only have the same pattern, and other sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast


def without(item: Any, sizes: list[int]) -> Any:
    """An attribute without the whole numbers in it, which are added to `sizes`."""
    if item.__class__ is int:
        sizes.append(item)
        return int
    if isinstance(item, tuple):
        return tuple([without(part, sizes) for part in cast("Sequence[Any]", item)])
    return item


def refilled(item: Any, left: Iterator[int]) -> Any:
    """An attribute with other whole numbers in it, taken from `left` as `without` gave them."""
    if item.__class__ is int:
        return next(left)
    if isinstance(item, tuple):
        return tuple([refilled(part, left) for part in cast("Sequence[Any]", item)])
    return item

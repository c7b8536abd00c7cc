"""Axis names and the ranks along them, while a function over ranks runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from weft.errors import ArgumentError
from weft.transport import session
from weft.transport.group import Group

__all__ = ["axis_index", "axis_size"]

AxisName = str | Sequence[str] | None
"""One axis, several (the last varies fastest), or all ranks."""
_bound: Final[list[Mapping[str, Group]]] = []


@contextlib.contextmanager
def bound(axes: Mapping[str, Group]) -> Iterator[None]:
    """Context in which axis names stand for these ranks."""
    _bound.append(axes)
    try:
        yield
    finally:
        _bound.pop()


def groups_of(axis_name: AxisName, what: str) -> list[Group]:
    """The ranks along each axis.

    Raises:
        ArgumentError: no function over ranks has such an axis.
    """
    if axis_name is None:
        return [session.world()]
    names = [axis_name] if isinstance(axis_name, str) else list(axis_name)
    return [_group(name, what) for name in names]


def group_of(axis_name: AxisName, what: str) -> Group:
    """The ranks along one axis.

    Raises:
        ArgumentError: there is no such axis, or several are named.
    """
    found = groups_of(axis_name, what)
    if len(found) != 1:
        raise ArgumentError.here(f"{what}: expected one axis, got {axis_name}")
    return found[0]


def _group(name: str, what: str) -> Group:
    for axes in reversed(_bound):
        if name in axes:
            return axes[name]
    names = ", ".join(sorted({n for axes in _bound for n in axes})) or "none"
    raise ArgumentError.here(
        f"{what}: expected the axis name of a pmap or shard_map around it ({names}), got {name!r}"
    )


def axis_index(axis_name: AxisName = None) -> int:
    """This rank's index along an axis; for several axes, the last varies fastest.

    It is a Python number that differs between ranks.
    """
    index = 0
    for group in groups_of(axis_name, "axis_index"):
        index = index * group.size + group.index
    return index


def axis_size(axis_name: AxisName = None) -> int:
    """The number of ranks along an axis, or along several."""
    count = 1
    for group in groups_of(axis_name, "axis_size"):
        count *= group.size
    return count

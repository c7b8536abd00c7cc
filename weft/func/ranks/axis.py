"""Axis names, and the ranks or examples along them, while a function over these runs."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from weft.errors import ArgumentError
from weft.transport import session
from weft.transport.group import Group

__all__ = ["axis_index", "axis_size"]

AxisName = str | Sequence[str] | None
"""One axis, several (the last varies fastest), or all ranks."""


class Examples(NamedTuple):
    """The axis of a batch, while a function of one example is traced.

    Attributes:
        index: the index of the example, a traced tensor.
    """

    size: int
    index: Any


Axis = Group | Examples
_bound: Final[list[Mapping[str, Axis]]] = []


@contextlib.contextmanager
def bound(axes: Mapping[str, Axis]) -> Iterator[None]:
    """Context in which axis names stand for these ranks or examples."""
    _bound.append(axes)
    try:
        yield
    finally:
        _bound.pop()


def sizes() -> Hashable:
    """The names of axes and their sizes, on which what a traced function computes may depend."""
    return tuple([(name, axes[name].size) for axes in _bound for name in axes]) if _bound else ()


def groups_of(axis_name: AxisName, what: str) -> list[Axis]:
    """The ranks or examples along each axis.

    Raises:
        ArgumentError: no function around has such an axis.
    """
    if axis_name is None:
        return [session.world()]
    names = [axis_name] if isinstance(axis_name, str) else list(axis_name)
    return [_group(name, what) for name in names]


def group_of(axis_name: AxisName, what: str) -> Axis:
    """The ranks or examples along one axis.

    Raises:
        ArgumentError: there is no such axis, or several are named.
    """
    found = groups_of(axis_name, what)
    if len(found) != 1:
        raise ArgumentError.here(f"{what}: expected one axis, got {axis_name}")
    return found[0]


def _group(name: str, what: str) -> Axis:
    for axes in reversed(_bound):
        if name in axes:
            return axes[name]
    names = ", ".join(sorted({n for axes in _bound for n in axes})) or "none"
    raise ArgumentError.here(
        f"{what}: expected the axis name of a pmap, shard_map or vmap around it ({names}), got "
        f"{name!r}"
    )


def axis_index(axis_name: AxisName = None) -> Any:
    """The index of this rank or example along an axis; for several axes, the last varies fastest.

    It is a Python number that differs between ranks; a traced tensor between examples.
    """
    index: Any = 0
    for group in groups_of(axis_name, "axis_index"):
        index = index * group.size + group.index
    return index


def axis_size(axis_name: AxisName = None) -> int:
    """The number of ranks or examples along an axis, or along several."""
    count = 1
    for group in groups_of(axis_name, "axis_size"):
        count *= group.size
    return count

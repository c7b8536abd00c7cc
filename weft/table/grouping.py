"""Groups of ids of several tables: those of each server, and equal ones among them."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from weft.codegen.table.layout import Partition, Unique
from weft.errors import ArgumentError, DTypeError
from weft.runtime.memory.address import address_of
from weft.table.memory import empty
from weft.table.native import functions

Array = np.ndarray[Any, Any]
MOST_IDS: Final = 1 << 31
"""Of one call: positions have 32 bits."""


class Ids(NamedTuple):
    """The ids of several tables, those of a table one after the other."""

    ids: Array  # int64
    bounds: Array  # int64: where those of each table begin, and the end


class Owned(NamedTuple):
    """Ids by owner, those of an owner by table."""

    ids: Array  # int64
    order: Array | None  # uint32: where each came from; `None` if they have not moved
    starts: Array  # int64, (owners * tables + 1): where those of each begin, and the end

    def part(self, owner: int, tables: int) -> tuple[slice, Array]:
        """The ids of an owner: where they are, and their bounds by table."""
        bounds = self.starts[owner * tables : (owner + 1) * tables + 1]
        return slice(int(bounds[0]), int(bounds[-1])), bounds - bounds[0]


class Distinct(NamedTuple):
    """The distinct ids of each table, in the order of their first occurrence."""

    ids: Array
    bounds: Array  # int64: where those of each table begin, and the end
    inverse: Array  # uint32: the place of each id among them
    seen: Array  # int64: how often each occurs


def joined(ids: Sequence[Any], what: str) -> Ids:
    """The ids of several tables as one array.

    Raises:
        DTypeError: some are no integers.
        ArgumentError: there are too many for one call.
    """
    flat = [_flat(x, what) for x in ids]
    bounds = np.zeros(len(flat) + 1, np.int64)
    np.cumsum([x.size for x in flat], out=bounds[1:])
    if bounds[-1] >= MOST_IDS:
        raise ArgumentError.here(
            f"{what}: expected fewer than {MOST_IDS} ids in a call, got {bounds[-1]}"
        )
    whole = flat[0] if len(flat) == 1 else np.concatenate(flat)
    return Ids(np.ascontiguousarray(whole), bounds)


def _flat(ids: Any, what: str) -> Array:
    array = np.asarray(ids)
    if array.dtype.kind not in "iu" and array.size:
        raise DTypeError.here(f"{what}: expected ids of integers, got {array.dtype}")
    return array.astype(np.int64, copy=False).reshape(-1)


def by_owner(ids: Ids, owners: int) -> Owned:
    """Ids sorted by the server that has them."""
    if owners == 1:
        return Owned(ids.ids, None, ids.bounds)
    count, tables = ids.ids.size, len(ids.bounds) - 1
    ordered, order = empty(count, np.int64), empty(count, np.uint32)
    starts, following = (empty(owners * tables + 1, np.int64) for _ in range(2))
    asked = Partition(
        address_of(ids.ids), tables, address_of(ids.bounds), owners, address_of(ordered),
        address_of(order), address_of(starts), address_of(following),
    )  # fmt: skip
    functions().partition(ctypes.byref(asked))
    return Owned(ordered, order, starts)


def distinct(ids: Ids) -> Distinct:
    """The distinct ids of each table."""
    count, lists = ids.ids.size, len(ids.bounds) - 1
    found, seen = empty(count, np.int64), empty(count, np.int64)
    inverse, starts = empty(count, np.uint32), empty(lists + 1, np.int64)
    longest = int(np.diff(ids.bounds).max()) if lists else 0
    slots, stamp = _slots(longest, lists)
    asked = Unique(
        address_of(ids.ids), lists, address_of(ids.bounds), address_of(slots),
        slots.size // 2 - 1, stamp, address_of(found), address_of(starts), address_of(inverse),
        address_of(seen),
    )  # fmt: skip
    size = functions().unique(ctypes.byref(asked))
    return Distinct(found[:size], starts, inverse, seen[:size])


def members_of(some: Distinct, order: Array | None) -> tuple[Array | None, Array | None]:
    """Where equal ids came from: the start of each distinct one's list, and the lists.

    Args:
        some: the distinct ids.
        order: uint32: where each id came from; `None` if they have not moved.
    """
    count, size = some.inverse.size, some.ids.size
    if size == count:  # no two are equal
        return None, order
    members, following = np.append(some.seen, 0), empty(size, np.int64)
    listed = empty(count, np.uint32)
    functions().list_members(
        address_of(some.inverse), None if order is None else address_of(order), count,
        address_of(members), address_of(following), address_of(listed), size,
    )  # fmt: skip
    return members, listed


class _Slots(threading.local):
    """The memory in which a thread looks for equal ids; what it did there before is out of date."""

    slots: Array = np.empty(0, np.int64)
    stamp = 0


_KEPT: Final = 1 << 22
"""Slots that a thread keeps: 64 MB."""
_mine = _Slots()


def _slots(count: int, lists: int) -> tuple[Array, int]:
    """Slots for lists of up to `count` ids, and the first of as many stamps as there are lists."""
    wanted = max(64, 1 << (2 * count - 1).bit_length())
    if wanted > _KEPT:
        return np.zeros(2 * wanted, np.int64), 1
    if wanted > _mine.slots.size // 2 or _mine.stamp + lists >= 1 << 31:
        _mine.slots, _mine.stamp = np.zeros(2 * wanted, np.int64), 0
    stamp = _mine.stamp + 1
    _mine.stamp += lists
    return _mine.slots, stamp

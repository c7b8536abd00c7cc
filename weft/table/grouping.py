"""Groups of ids: those of each server, and equal ones among them."""

from __future__ import annotations

import ctypes
import threading
from typing import Any, Final, NamedTuple

import numpy as np

from weft.codegen.table.layout import MOST_OWNERS, Partition, Unique
from weft.errors import ArgumentError, DTypeError
from weft.runtime.memory.address import address_of
from weft.table.native import functions

Array = np.ndarray[Any, Any]
MOST_IDS: Final = 1 << 31
"""Of one lookup: positions have 32 bits."""


class Groups(NamedTuple):
    """Ids sorted by owner."""

    ids: Array
    order: Array | None  # uint32: where each came from; `None` if there is one owner
    starts: list[int]  # where the ids of each owner begin, and the end


class Distinct(NamedTuple):
    """The distinct ones of some ids, in the order of their first occurrence."""

    ids: Array
    inverse: Array  # uint32: the place of each id among them
    seen: Array  # int64: how often each occurs


def ids_of(ids: Any, what: str) -> Array:
    """Ids as a contiguous array of int64.

    Raises:
        DTypeError: they are no integers.
        ArgumentError: there are too many for one call.
    """
    array = np.asarray(ids)
    if array.dtype.kind not in "iu" and array.size:
        raise DTypeError.here(f"{what}: expected ids of integers, got {array.dtype}")
    if array.size >= MOST_IDS:
        raise ArgumentError.here(
            f"{what}: expected fewer than {MOST_IDS} ids in a call, got {array.size}"
        )
    return np.ascontiguousarray(array, np.int64)


def by_owner(ids: Array, owners: int) -> Groups:
    """Flat ids sorted by the server that has them."""
    count = ids.size
    if owners == 1:
        return Groups(ids, None, [0, count])
    if owners > MOST_OWNERS:
        raise ArgumentError(f"tables: expected at most {MOST_OWNERS} servers, got {owners}")
    ordered, order = np.empty(count, np.int64), np.empty(count, np.uint32)
    starts = np.empty(owners + 1, np.int64)
    asked = Partition(
        address_of(ids), count, owners, address_of(ordered), address_of(order), address_of(starts)
    )
    functions().partition(ctypes.byref(asked))
    return Groups(ordered, order, starts.tolist())


def distinct(ids: Array) -> Distinct:
    """The distinct ones of flat ids."""
    count = ids.size
    found, seen = np.empty(count, np.int64), np.empty(count, np.int64)
    inverse = np.empty(count, np.uint32)
    slots = _slots(count)
    asked = Unique(
        address_of(ids), count, address_of(slots.array), slots.array.size // 2 - 1, slots.stamp,
        address_of(found), address_of(inverse), address_of(seen),
    )  # fmt: skip
    size = functions().unique(ctypes.byref(asked))
    return Distinct(found[:size], inverse, seen[:size])


class _Slots:
    """The memory in which a thread looks for equal ids; what it last did there is out of date."""

    def __init__(self, count: int) -> None:
        self.array = np.zeros(2 * count, np.int64)
        self.stamp = 0


_KEPT: Final = 1 << 22
"""Slots that a thread keeps: 64 MB."""
_mine = threading.local()


def _slots(count: int) -> _Slots:
    wanted = max(64, 1 << (2 * count - 1).bit_length())
    slots: _Slots | None = getattr(_mine, "slots", None)
    if slots is None or not wanted <= slots.array.size // 2 or slots.stamp >= (1 << 31) - 2:
        slots = _Slots(wanted)
        if wanted <= _KEPT:
            _mine.slots = slots
    slots.stamp += 1
    return slots


"""Exchange of data through memory that the ranks of a group share."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.transport.base import Array, Exchange

SLOT_BYTES: Final = 1 << 20
"""What a rank shows at a time: 87 us for 1 MiB of two ranks, 110 us in four parts."""
FLAG_BYTES: Final = 4096
REGION_BYTES: Final = FLAG_BYTES + 2 * SLOT_BYTES
"""The memory of a member: a page of flags, and two slots."""
LINE_BYTES: Final = 128
"""From flag to flag: processors fetch two cache lines at a time."""
MOST_LOOKS: Final = 2048
"""How often the native function looks for flags, about 20 ns each; Python can do nothing then."""
YIELD_MASK: Final = 15
"""Every 16th look lets others run, where ranks share cores."""


class _Table(ctypes.Structure):
    """The argument of the native function (`%Meeting` of the driver)."""

    _fields_ = [
        ("count", ctypes.c_int64), ("flags", ctypes.c_void_p), ("own", ctypes.c_void_p),
        ("value", ctypes.c_int64), ("most", ctypes.c_int64), ("mask", ctypes.c_int64),
    ]  # fmt: skip


class Channel(Exchange):
    """Two slots and two flags of each member in shared memory.

    Each member writes a piece of data to one of its slots and raises that slot's flag; when all
    flags are up, all may read. Meanwhile the next piece may be written to the other slot. A member
    raises a flag only after it has read all earlier pieces, so a slot is free again once all have
    raised the next flag.

    Args:
        memory: the memory of each member, as bytes.
        ranks: the members' ranks.
        native: loads the native function, which takes the address of a `_Table` and returns 1 if
            all flags are up, else 0.
        crowded: whether ranks share cores.
    """

    def __init__(
        self, memory: Sequence[Array], ranks: tuple[int, ...], index: int,
        native: Callable[[], Callable[[Any], int]], crowded: bool,
    ) -> None:  # fmt: skip
        self._turn = 0
        self._slots = [
            [m[FLAG_BYTES + k * SLOT_BYTES :][:SLOT_BYTES] for m in memory] for k in (0, 1)
        ]
        self._flags = [[m[k * LINE_BYTES :][:8].view(np.int64) for m in memory] for k in (0, 1)]
        self._ranks, self._index, self._load = ranks, index, native
        self._native: Callable[[Any], int] = self._loaded
        self._number = self._tag = self._side = 0
        others = [i for i in range(len(ranks)) if i != index]
        self._places = [np.array([f[i].ctypes.data for i in others]) for f in self._flags]
        self._tables = [
            _Table(
                len(others), self._places[k].ctypes.data, self._flags[k][index].ctypes.data, 0,
                MOST_LOOKS, YIELD_MASK if crowded else -1,
            ) for k in (0, 1)
        ]  # fmt: skip
        self._pointers = [ctypes.c_void_p(ctypes.addressof(table)) for table in self._tables]

    def slots(self, turn: int, dtype: Any, size: int) -> list[Array]:
        """Each member's memory for a piece of `size` elements, in one of the two slots."""
        count = size * np.dtype(dtype).itemsize
        return [slot[:count].view(dtype) for slot in self._slots[turn]]

    def next_turn(self) -> int:
        """The slot of the next piece."""
        self._turn ^= 1
        return self._turn

    def next_slots(self, dtype: Any, size: int) -> list[Array]:
        """Each member's memory for the next piece, of `size` elements."""
        return self.slots(self.next_turn(), dtype, size)

    def call(self, tag: int) -> Channel:
        """Use the channel for a call, whose tag tells its flags from those of other calls."""
        self._tag = tag
        return self

    def _loaded(self, place: Any) -> int:
        """The first call: loads the native function."""
        self._native = self._load()
        return self._native(place)

    def run(self) -> bool:
        """Raise this member's flag; returns whether all others are up."""
        self._number = number = (self._number + 1) & 0x7FFFFFFF
        self._side = side = number & 1
        self._tables[side].value = number << 32 | self._tag
        return self._native(self._pointers[side]) == 1

    def done(self) -> bool:
        """See `Pending.done`."""
        return self._native(self._pointers[self._side]) == 1

    def missing(self) -> list[int]:
        """See `Pending.missing`."""
        value = self._tables[self._side].value
        pairs = zip(self._ranks, self._flags[self._side], strict=True)
        return [rank for rank, flag in pairs if int(flag[0]) != value]

    def give_up(self) -> None:
        """See `Pending.give_up`; whoever reduces writes to the memory itself."""

    def close(self) -> None:
        """See `Exchange.close`; the system frees the memory with its last mapping."""

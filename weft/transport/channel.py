"""Exchange of data through the shared memory of a group's ranks."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.transport.base import Array, Exchange
from weft.transport.native import ChannelTable, Meeting, Native, Words

SLOT_BYTES: Final = 1 << 20
"""The size of a slot: with two ranks, 1 MiB takes 87 us in one piece, 110 us in four."""
FLAG_BYTES: Final = 4096
REGION_BYTES: Final = FLAG_BYTES + 2 * SLOT_BYTES
"""The memory of a member: a page of flags, and two slots."""
LINE_BYTES: Final = 128
"""The distance of two flags: processors fetch two cache lines at a time."""
MOST_LOOKS: Final = 2048
"""How often the native function polls flags, about 20 ns each; it holds the GIL meanwhile."""
TIMED_BYTES: Final = 1 << 18
"""The writing of pieces of at least this size is timed."""
SLOW: Final = 5e9
"""Bytes per second. If the cores of two ranks share no cache, a core writes 2.4 GB/s to memory that
the other has just read, else 15; with non-temporal stores 7, but then the other reads slower."""
STREAMED: Final = 63
"""The number of pieces written with non-temporal stores after a slow one."""
YIELD_MASK: Final = 15
"""Every 16th poll yields the core, if ranks share cores."""


class Channel(Exchange):
    """Two slots and two flags of each member in shared memory.

    Each member writes a piece of data to one of its slots and raises that slot's flag. Once all
    flags are raised, all members may read, and write the next piece to the other slot. A member
    raises a flag only after it has read all earlier pieces, so a slot is free again once all have
    raised the next flag.

    Args:
        memory: each member's memory as bytes, including this one's.
        ranks: of the members.
        crowded: whether ranks share cores.
        words: see `weft.transport.native`; those of the transport.

    Attributes:
        made: native all-reduces by call, reduction, type and shape. Each takes an array and its
            result, and returns whether it ran; if not, nothing was changed.
    """

    def __init__(
        self, memory: Sequence[Array], ranks: tuple[int, ...], index: int,
        native: Native, crowded: bool, words: Any = None,
    ) -> None:  # fmt: skip
        self.native = native
        self.made: dict[Any, Callable[[Array, Array], bool]] = {}
        self._words = Words() if words is None else words  # alive while native code uses them
        self._table = ChannelTable(own=index, words=ctypes.addressof(self._words))
        self._slots = [
            [m[FLAG_BYTES + k * SLOT_BYTES :][:SLOT_BYTES] for m in memory] for k in (0, 1)
        ]
        self._flags = [[m[k * LINE_BYTES :][:8].view(np.int64) for m in memory] for k in (0, 1)]
        self._ranks, self._tag = ranks, 0
        self._meet: Callable[[Any], int] = self._loaded
        self._stream: Callable[[int, int, int], Any] | None = None
        self._streamed = 0  # remaining pieces to write with non-temporal stores
        others = [i for i in range(len(ranks)) if i != index]
        self._places = [np.array([f[i].ctypes.data for i in others]) for f in self._flags]
        self._meetings = [
            Meeting(
                len(others), self._places[k].ctypes.data, self._flags[k][index].ctypes.data, 0,
                MOST_LOOKS, YIELD_MASK if crowded else -1,
            ) for k in (0, 1)
        ]  # fmt: skip
        places = [ctypes.addressof(meeting) for meeting in self._meetings]
        self._pointers = [ctypes.c_void_p(place) for place in places]
        self._all_slots = np.array([[s.ctypes.data for s in turn] for turn in self._slots])
        self._table.meetings[:] = places
        self._table.slots = self._all_slots.ctypes.data

    def slots(self, turn: int, dtype: Any, size: int) -> list[Array]:
        """Each member's memory for a piece of `size` elements, in one of the two slots."""
        count = size * np.dtype(dtype).itemsize
        return [slot[:count].view(dtype) for slot in self._slots[turn]]

    def next_turn(self) -> int:
        """The slot, 0 or 1, for the next piece."""
        table = self._table
        table.turn = turn = table.turn ^ 1
        return turn

    def next_slots(self, dtype: Any, size: int) -> list[Array]:
        """Each member's memory for the next piece, of `size` elements."""
        return self.slots(self.next_turn(), dtype, size)

    def write(self, slot: Array, data: Array) -> None:
        """Write a piece, a vector of the slot's size and type, to this member's slot."""
        size = data.nbytes
        if size < TIMED_BYTES:
            np.copyto(slot, data)
        elif self._streamed:
            self._streamed -= 1
            self._stream = self._stream or self.native.stream()
            data = np.ascontiguousarray(data)
            self._stream(slot.ctypes.data, data.ctypes.data, size)
        else:
            begin = time.perf_counter()
            np.copyto(slot, data)
            if (time.perf_counter() - begin) * SLOW > size:
                self._streamed = STREAMED

    def call(self, tag: int) -> Channel:
        """Use the channel for a call, whose tag separates its flags from those of other calls."""
        self._tag = tag
        return self

    def _loaded(self, place: Any) -> int:
        """The native function's first call."""
        self._meet = self.native.meet()
        return self._meet(place)

    def run(self) -> bool:
        """Raise the flag of the written slot; returns whether all others have raised theirs."""
        table = self._table
        table.number = number = (table.number + 1) & 0x7FFFFFFF
        side = number & 1
        self._meetings[side].value = number << 32 | self._tag
        return self._meet(self._pointers[side]) == 1

    def done(self) -> bool:
        """See `Pending.done`; polls once, because callers repeat it."""
        return not self.missing() and self._meet(self._pointers[self._table.number & 1]) == 1

    def missing(self) -> list[int]:
        """See `Pending.missing`."""
        side = self._table.number & 1
        value = self._meetings[side].value
        pairs = zip(self._ranks, self._flags[side], strict=True)
        return [rank for rank, flag in pairs if int(flag[0]) != value]

    def give_up(self) -> None:
        """See `Pending.give_up`; nothing to do, since each member writes only to its own memory."""

    def close(self) -> None:
        """See `Exchange.close`: native code makes no more calls here."""
        self._table.closed = 1

    @property
    def turn(self) -> int:
        """The slot, 0 or 1, of the last piece."""
        return self._table.turn

    @property
    def calls(self) -> int:
        """How many calls native code has made."""
        return self._table.calls

    def place(self) -> int:
        """The address of the table that native code uses."""
        if not self._table.meet:
            self._table.meet = ctypes.cast(self.native.meet(), ctypes.c_void_p).value
        return ctypes.addressof(self._table)

"""Exchange of data through memory that the ranks of a group share."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.transport.base import Array, Exchange
from weft.transport.native import ChannelTable, Meeting, Native, Words

SLOT_BYTES: Final = 1 << 20
"""What a rank shows at a time: 87 us for 1 MiB of two ranks, 110 us in four parts."""
FLAG_BYTES: Final = 4096
REGION_BYTES: Final = FLAG_BYTES + 2 * SLOT_BYTES
"""The memory of a member: a page of flags, and two slots."""
LINE_BYTES: Final = 128
"""From flag to flag: processors fetch two cache lines at a time."""
MOST_LOOKS: Final = 2048
"""How often the native function looks for flags, about 20 ns each; Python can do nothing then."""
TIMED_BYTES: Final = 1 << 18
"""From here on, it is measured how fast pieces are written."""
SLOW: Final = 5e9
"""Bytes a second. Where the cores of two ranks share no cache, a core writes 2.4 GB/s to memory
that the other has read lately, else 15. Past the caches it writes 7, and the other reads slower."""
STREAMED: Final = 63
"""So many pieces are written past the caches after a slow one."""
YIELD_MASK: Final = 15
"""Every 16th look lets others run, where ranks share cores."""


class Channel(Exchange):
    """Two slots and two flags of each member in shared memory.

    Each member writes a piece of data to one of its slots and raises that slot's flag; when all
    flags are up, all may read. Meanwhile the next piece may be written to the other slot. A member
    raises a flag only after it has read all earlier pieces, so a slot is free again once all have
    raised the next flag.

    Args:
        memory: of each member, as bytes; this one's among them.
        ranks: of the members.
        crowded: whether ranks share cores.
        words: see `weft.transport.native`; those of the transport.

    Attributes:
        made: by call, reduction, type and shape, what has native code make an all-reduce of an
            array into another; gives whether it has, and nothing has happened otherwise.
    """

    def __init__(
        self, memory: Sequence[Array], ranks: tuple[int, ...], index: int,
        native: Native, crowded: bool, words: Any = None,
    ) -> None:  # fmt: skip
        self.native = native
        self.made: dict[Any, Callable[[Array, Array], bool]] = {}
        self._words = Words() if words is None else words  # kept while their address is
        self._table = ChannelTable(own=index, words=ctypes.addressof(self._words))
        self._slots = [
            [m[FLAG_BYTES + k * SLOT_BYTES :][:SLOT_BYTES] for m in memory] for k in (0, 1)
        ]
        self._flags = [[m[k * LINE_BYTES :][:8].view(np.int64) for m in memory] for k in (0, 1)]
        self._ranks, self._tag = ranks, 0
        self._meet: Callable[[Any], int] = self._loaded
        self._stream: Callable[[int, int, int], Any] | None = None
        self._streamed = 0  # how many pieces are to be written past the caches
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
        """Which of the two slots the next piece goes to."""
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
        """Use the channel for a call, whose tag tells its flags from those of other calls."""
        self._tag = tag
        return self

    def _loaded(self, place: Any) -> int:
        """The native function's first call."""
        self._meet = self.native.meet()
        return self._meet(place)

    def run(self) -> bool:
        """Raise the flag for what has been written; whether all others have raised theirs."""
        table = self._table
        table.number = number = (table.number + 1) & 0x7FFFFFFF
        side = number & 1
        self._meetings[side].value = number << 32 | self._tag
        return self._meet(self._pointers[side]) == 1

    def done(self) -> bool:
        """See `Pending.done`; looks once, as whoever asks does so again and again."""
        return not self.missing() and self._meet(self._pointers[self._table.number & 1]) == 1

    def missing(self) -> list[int]:
        """See `Pending.missing`."""
        side = self._table.number & 1
        value = self._meetings[side].value
        pairs = zip(self._ranks, self._flags[side], strict=True)
        return [rank for rank, flag in pairs if int(flag[0]) != value]

    def give_up(self) -> None:
        """See `Pending.give_up`; whoever reduces writes to the memory itself."""

    def close(self) -> None:
        """See `Exchange.close`: native code makes no more calls here."""
        self._table.closed = 1

    @property
    def turn(self) -> int:
        """Which of the two slots the last piece went to."""
        return self._table.turn

    @property
    def calls(self) -> int:
        """How many calls native code has made."""
        return self._table.calls

    def place(self) -> int:
        """The address of the table that native code works on."""
        if not self._table.meet:
            self._table.meet = ctypes.cast(self.native.meet(), ctypes.c_void_p).value
        return ctypes.addressof(self._table)

"""One arena for many programs: large ones run one at a time, so each may use the memory of all.

Address space is reserved once, as much as the machine has memory, and never moves; resident is as
much of it as the largest living program needs.
"""

from __future__ import annotations

import mmap
import os
import sys
import weakref
from typing import Any, Final

import numpy as np

from weft.interrupt import Uninterrupted
from weft.runtime.arena import HUGE, Arena, advise, refuse_too_much, reside
from weft.runtime.flight import LEAF, STEP, new_lock

_NO_RESERVE: Final = 0x4000 if sys.platform == "linux" else 0  # MAP_NORESERVE


class SharedArena(Arena):
    """The first `size` bytes of memory that others use too, while they hold `lock`.

    Raises:
        OutOfMemoryError: the machine has not that much.
    """

    def __init__(self, size: int, whole: np.ndarray[Any, Any], lock: Any) -> None:  # pyright: ignore[reportMissingSuperCall]
        self.size = size
        self.bytes = whole[:size]
        self.address = int(whole.__array_interface__["data"][0])
        self.lock: Final = lock


class _Common:
    """The reserved address space, and who uses it."""

    def __init__(self) -> None:
        self.lock: Final = new_lock(STEP)
        self._guard = new_lock(LEAF)  # a finaliser may run while this thread holds it
        self._users: weakref.WeakSet[SharedArena] = weakref.WeakSet()
        self._block: mmap.mmap | None = None
        self._start = 0
        self._resident = 0

    def arena(self, size: int) -> SharedArena | None:
        """A share of `size` bytes; `None` where no address space could be reserved."""
        with Uninterrupted(), self._guard:
            whole = self._whole()
            if whole is None or size > whole.size:
                return None
            found = SharedArena(size, whole, self.lock)
            self._users.add(found)
            weakref.finalize(found, self._trim).atexit = False
            self._trim()
            if size > self._resident:
                assert self._block is not None
                wanted = min(-(-size // HUGE) * HUGE, whole.size)
                refuse_too_much(wanted - self._resident)
                reside(self._block, self._start + self._resident, wanted - self._resident)
                self._resident = wanted
            return found

    def _whole(self) -> np.ndarray[Any, Any] | None:
        if self._block is None:
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
            try:
                total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
                self._block = mmap.mmap(-1, total + HUGE, flags=flags)
            except (OSError, OverflowError, ValueError):
                return None
            address = np.frombuffer(self._block, np.uint8).__array_interface__["data"][0]
            self._start = -int(address) % HUGE
            advise(self._block)
        return np.frombuffer(self._block, np.uint8)[self._start :]

    def _trim(self) -> None:
        """Give back what no living program needs."""
        with self._guard:
            needed = max([user.size for user in self._users], default=0)
            needed = -(-needed // HUGE) * HUGE
            if needed < self._resident and self._block is not None:
                start, size = self._start + needed, self._resident - needed
                self._block.madvise(mmap.MADV_DONTNEED, start, size)
                self._resident = needed


_COMMON: Final = _Common()


def arena_of(size: int, shared: bool) -> tuple[Arena, Any]:
    """Memory for a program, and the lock that it runs under.

    Args:
        shared: whether the memory may be others' between runs.

    Raises:
        OutOfMemoryError: the machine has not that much.
    """
    found = _COMMON.arena(size) if shared and size >= HUGE else None
    return (Arena(size), new_lock(STEP)) if found is None else (found, found.lock)

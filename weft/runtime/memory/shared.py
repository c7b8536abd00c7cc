"""One arena for many programs of a device: large ones run one at a time, so they share memory.

Address space for all of the machine's memory is reserved once a device and never moves; as much of
it is resident as the largest living program needs.
"""

from __future__ import annotations

import contextlib
import mmap
import sys
import weakref
from typing import Any, Final

import numpy as np

from weft.errors import OutOfMemoryError
from weft.host.interrupt import Uninterrupted
from weft.host.memory import capacity
from weft.runtime.flight import LEAF, STEP, new_lock
from weft.runtime.memory.arena import HUGE, Arena, Residence, advise, refuse_too_much
from weft.runtime.memory.budget import UNLIMITED, Budget

_NO_RESERVE: Final = 0x4000 if sys.platform == "linux" else 0  # MAP_NORESERVE


class SharedArena(Arena):
    """The first `size` bytes of memory that programs share; whoever uses it holds `lock`.

    Raises:
        OutOfMemoryError: the machine does not have that much.
    """

    def __init__(self, size: int, whole: np.ndarray[Any, Any], lock: Any) -> None:  # pyright: ignore[reportMissingSuperCall]
        self.size = size
        self.bytes = whole[:size]
        self.address = int(whole.__array_interface__["data"][0])
        self.lock: Final = lock


class ArenaPool:
    """Memory for the programs of a device: reserved address space, and its users.

    Args:
        budget: counts what is taken.
    """

    def __init__(self, budget: Budget = UNLIMITED) -> None:
        self.budget: Final = budget
        self.lock: Final = new_lock(STEP)
        self._guard = new_lock(LEAF)  # a finalizer may run while this thread holds it
        self._users: weakref.WeakSet[SharedArena] = weakref.WeakSet()
        self._block: mmap.mmap | None = None
        self._start = 0
        self._resident = 0
        self._residence: Residence | None = None  # of the last of it

    def arena(self, size: int) -> SharedArena | None:
        """A share of `size` bytes; `None` if no address space could be reserved."""
        with Uninterrupted(), self._guard:
            whole = self._whole()
            if whole is None or size > whole.size:
                return None
            found = SharedArena(size, whole, self.lock)
            self._users.add(found)
            weakref.finalize(found, self._trim).atexit = False
            if size > self._resident:
                self._grow(size)
            elif self._needed() < self._resident:  # more was expected
                self._finish_growing()
            assert self._residence is not None
            found.residence = self._residence
            return found

    def expect(self, size: int) -> None:
        """Starts making `size` bytes resident for a future program, if there is room."""
        with Uninterrupted(), self._guard, contextlib.suppress(OutOfMemoryError):
            whole = self._whole()
            if whole is not None and self._resident < size <= whole.size:
                self._grow(size)

    def _grow(self, size: int) -> None:
        """Starts making `size` bytes resident."""
        self._finish_growing()
        assert self._block is not None
        wanted = min(_pages(size), len(self._block) - self._start)
        refuse_too_much(wanted - self._resident)
        self.budget.take(wanted - self._resident, "arena")
        start, self._resident = self._start + self._resident, wanted
        self._residence = Residence(self._block, start, self._start + wanted - start)

    def _finish_growing(self) -> None:
        """Waits until what was started is resident, and releases what nobody needs."""
        if self._residence is not None:
            self._residence.wait()
            self._trim()

    def _needed(self) -> int:
        return _pages(max([user.size for user in self._users], default=0))

    def _whole(self) -> np.ndarray[Any, Any] | None:
        if self._block is None:
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
            try:
                total = capacity()
                self._block = mmap.mmap(-1, total + HUGE, flags=flags)
            except (OSError, OverflowError, ValueError):
                return None
            address = np.frombuffer(self._block, np.uint8).__array_interface__["data"][0]
            self._start = -int(address) % HUGE
            advise(self._block)
        return np.frombuffer(self._block, np.uint8)[self._start :]

    def _trim(self) -> None:
        """Releases what no living program needs, unless more is being made resident."""
        with self._guard:
            if self._residence is None or not self._residence.is_complete:
                return
            needed = self._needed()
            if needed < self._resident and self._block is not None:
                start, size = self._start + needed, self._resident - needed
                self._block.madvise(mmap.MADV_DONTNEED, start, size)
                self._resident = needed
                self.budget.give(size)


def _pages(size: int) -> int:
    return -(-size // HUGE) * HUGE


POOL: Final = ArenaPool()
"""Of the first device, on which everything runs that asks for no other."""
expect: Final = POOL.expect


def arena_of(size: int, shared: bool, pool: ArenaPool = POOL) -> tuple[Arena, Any]:
    """Memory for a program, and the lock to hold while it runs.

    Args:
        shared: whether others may use the memory between runs.
        pool: the device's memory.

    Raises:
        OutOfMemoryError: the machine, or the device, does not have that much.
    """
    found = pool.arena(size) if shared and size >= HUGE else None
    if found is not None:
        return found, found.lock
    pool.budget.refuse_too_much(size, "arena")
    alone = Arena(size)
    pool.budget.charge(alone, size, "arena")
    return alone, new_lock(STEP)

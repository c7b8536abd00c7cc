"""The process-wide team of native threads that help the caller run a step.

The threads never touch Python. They look for units of work in a block of memory that lives as long
as the process (see driver.ll), spin briefly, then sleep.
"""

from __future__ import annotations

import atexit
import ctypes
import mmap
import os
import signal
import threading
from typing import Final

from weft.runtime import driver

SPIN_TURNS: Final = 4000  # pauses, about 100 us: longer than the Python between two steps
CROWDED_TURNS: Final = 20  # with more threads than cores, the one awaited needs the core
STACK_BYTES: Final = 1 << 20


def _processors() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


class Team:
    """Threads 1, 2, ... of the process; thread 0 is whoever calls."""

    def __init__(self) -> None:
        # Never freed: a thread may look at it until the process ends.
        # Private: a forked child must not share it.
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._memory = mmap.mmap(-1, driver.TEAM_BYTES, flags=flags)
        self._bytes = (ctypes.c_char * driver.TEAM_BYTES).from_buffer(self._memory)
        self.address: Final = ctypes.addressof(self._bytes)
        self._threads: list[ctypes.c_ulong] = []
        self._workers: list[ctypes.Array[ctypes.c_int64]] = []  # arguments of the threads
        self._lock = threading.Lock()
        self._size = ctypes.c_int64.from_address(self.address + driver.TEAM_THREADS)
        self._spin = ctypes.c_int64.from_address(self.address + driver.TEAM_SPIN)
        self._reset()

    @property
    def size(self) -> int:
        """How many threads may run a program, the caller included."""
        return self._size.value

    def grow(self, threads: int) -> None:
        """Make sure that the team has `threads` threads.

        Where the system refuses a thread, the others do its work.
        """
        if self._size.value >= threads:
            return
        with self._lock:
            crowded = threads > len(_processors())
            self._spin.value = CROWDED_TURNS if crowded else SPIN_TURNS
            self._allow(set() if crowded else _processors())
            # The size first: the caller must find every head, with or without a thread behind it.
            start, self._size.value = self._size.value, max(self._size.value, threads)
            before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            try:
                for number in range(start, threads):
                    self._start(number)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _start(self, number: int) -> None:
        worker = (ctypes.c_int64 * 2)(self.address, number)
        thread = ctypes.c_ulong()
        create = ctypes.CDLL(None).pthread_create
        entry = ctypes.c_void_p(driver.entries().worker)
        if create(ctypes.byref(thread), None, entry, worker) == 0:
            self._threads.append(thread)
            self._workers.append(worker)

    def _allow(self, processors: set[int]) -> None:
        """Where workers may go to get out of the caller's way; nowhere: they stay."""
        bits = sum(1 << number for number in processors if number < driver.MAX_PROCESSORS)
        mask = bits.to_bytes(driver.MAX_PROCESSORS // 8, "little")
        ctypes.memmove(self.address + driver.TEAM_PROCESSORS, mask, len(mask))

    def stop(self) -> None:
        """End the threads; the next `grow` starts new ones."""
        with self._lock:
            if self._threads:
                driver.entries().stop(self.address)
                join = ctypes.CDLL(None).pthread_join
                for thread in self._threads:
                    join(thread, None)
            self._reset()

    def _reset(self) -> None:
        self._threads.clear()
        self._workers.clear()
        ctypes.memset(self.address, 0, driver.TEAM_BYTES)
        self._size.value = 1

    def after_fork(self) -> None:
        """A forked child has the memory but none of the threads."""
        self._lock = threading.Lock()
        self._reset()


TEAM: Final = Team()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=TEAM.after_fork)
atexit.register(TEAM.stop)

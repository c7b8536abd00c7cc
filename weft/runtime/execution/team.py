"""The native thread pool of a device, which helps the caller run a step.

The threads never run Python. They take units of work from a block of memory that lives as long as
the process (`weft.codegen.driver`), spin briefly, then sleep. Several devices of a process have a
team each, so that they run programs at the same time.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import threading
from typing import Any, Final

from weft.codegen.driver import layout
from weft.host.at_exit import at_exit
from weft.host.interrupt import Uninterrupted
from weft.runtime.execution import driver
from weft.runtime.flight import land

SPIN_TURNS: Final = 20000  # pauses, 0.5 to 1 ms: the gap between two programs of eager steps
CROWDED_TURNS: Final = 20  # with more threads than cores, the awaited thread needs the core
ATTRIBUTE_BYTES: Final = 256  # more than any system's pthread_attr_t


_libc: Final = ctypes.CDLL(None)


def _processors() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def _bits(processors: set[int]) -> bytes:
    bits = sum(1 << number for number in processors if number < layout.MAX_PROCESSORS)
    return bits.to_bytes(layout.MAX_PROCESSORS // 8, "little")


def _attributes(allowed: set[int]) -> Any:
    """Attributes to start a thread on another processor than the caller's, to run soon."""
    if not hasattr(_libc, "pthread_attr_setaffinity_np") or not hasattr(_libc, "sched_getcpu"):
        return None
    others = allowed - {_libc.sched_getcpu()}
    if not others:
        return None
    attributes = ctypes.create_string_buffer(ATTRIBUTE_BYTES)
    mask = _bits(others)
    _libc.pthread_attr_init(attributes)
    _libc.pthread_attr_setaffinity_np(attributes, ctypes.c_size_t(len(mask)), mask)
    return attributes


class Team:
    """Threads 1, 2, ... of a device; thread 0 is whoever calls."""

    def __init__(self) -> None:
        # Never freed, as threads read it to the end; not shared with forked children.
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._memory = mmap.mmap(-1, ctypes.sizeof(layout.Team), flags=flags)
        self._state = layout.Team.from_buffer(self._memory)
        self.address: Final = ctypes.addressof(self._state)
        self._threads: list[ctypes.c_ulong] = []
        self._workers: list[layout.Worker] = []  # arguments of the threads
        self._lock = threading.Lock()
        self._reset()

    @property
    def size(self) -> int:
        """How many threads may run a program, including the caller."""
        return self._state.size

    def grow(self, threads: int) -> None:
        """Makes sure that the team has `threads` threads.

        If the system refuses a thread, the others do its work.
        """
        if self._state.size >= threads:
            return
        entry = ctypes.c_void_p(driver.entries().worker)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        _staffed.add(self)  # a team that has threads is never freed
        with Uninterrupted(), self._lock:
            try:
                # Threads inherit the signal mask: signals are for Python's threads.
                signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
                crowded = threads > len(_processors())
                allowed = set[int]() if crowded else _processors()
                mask = _bits(allowed)
                ctypes.memmove(self._state.processors, mask, len(mask))
                # The size first: the caller must find all heads, with or without threads.
                start, self._state.size = self._state.size, max(self._state.size, threads)
                attributes = _attributes(allowed)
                TURN.settle()
                for number in range(start, threads):
                    self._start(number, entry, attributes)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _start(self, number: int, entry: ctypes.c_void_p, attributes: Any) -> None:
        worker = layout.Worker(self.address, number)
        thread = ctypes.c_ulong()
        if _libc.pthread_create(ctypes.byref(thread), attributes, entry, ctypes.byref(worker)) == 0:
            self._threads.append(thread)
            self._workers.append(worker)

    def spin(self, turns: int) -> None:
        """Sets after how many turns an idle thread sleeps."""
        self._state.turns = turns

    def end(self) -> None:
        """Ends the threads; a program that is running continues on its caller alone."""
        with self._lock:
            if self._threads:
                driver.entries().stop(self.address)
                for thread in self._threads:
                    _libc.pthread_join(thread, None)
            self._threads.clear()

    def stop(self) -> None:
        """Ends the threads while no program runs; the next one starts new threads."""
        land()
        with Uninterrupted():
            self.end()
            self._reset()
            _staffed.discard(self)
            TURN.settle()

    def _reset(self) -> None:
        self._threads.clear()
        self._workers.clear()
        ctypes.memset(self.address, 0, ctypes.sizeof(layout.Team))
        self._state.size = 1

    def after_fork(self) -> None:
        """A forked child has the memory but none of the threads."""
        self._lock = threading.Lock()
        self._reset()


_staffed: Final[set[Team]] = set()


PROGRAMS_IN_TURN: Final = 32
"""Programs of one team in a row after which no other is expected soon."""


class Turn:
    """Whose idle threads spin, where all teams together have more threads than there are cores.

    That of a team that has run many programs in a row; none while teams alternate, because a team
    that spins takes the cores of the one that runs.

    Attributes:
        team: the one that ran a program last.
        left: how many programs it has still to run.
    """

    def __init__(self) -> None:
        self.team: Team | None = None
        self.left = 0

    def note(self, team: Team) -> None:
        """Notes that a team runs a program, if it is another one or some are left."""
        if team is self.team:
            self.left -= 1
        else:
            self.team = team
            self.left = PROGRAMS_IN_TURN if len(_staffed) > 1 else 0
        if self.left in (0, PROGRAMS_IN_TURN):
            self.settle()

    def settle(self) -> None:
        """Sets how long the threads of each team spin."""
        teams, cores = list(_staffed), len(_processors())
        crowded = sum([team.size for team in teams]) > cores
        for team in teams:
            alone = team is self.team and not self.left and team.size <= cores
            team.spin(SPIN_TURNS if alone or not crowded else CROWDED_TURNS)


TURN: Final = Turn()


def _after_fork() -> None:
    while _staffed:
        _staffed.pop().after_fork()


def _end() -> None:
    for team in list(_staffed):
        team.end()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
at_exit(_end)
TEAM: Final = Team()
"""Of the first device, on which everything runs that asks for no other."""

"""Asynchronous execution: programs that continue after their caller has returned; locks around
fork.

A caller may return once the value that it waits for is computed; the team's threads do the rest.
Whoever accesses memory of such a program has to `land` it first, which helps until the program is
done. At most one program is in flight.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from weft.host.at_exit import at_exit
from weft.host.interrupt import Uninterrupted

PATIENCE_SECONDS: Final = 5.0


class Flight(NamedTuple):
    """A program that may be in flight."""

    finish: Callable[[], object]  # finishes the rest, if any; may be called again
    done: frozenset[int]  # identities of arrays that it is done with
    held: object  # keeps alive the memory that it uses


OUTER, STEP, LANDING, LEAF = range(4)
"""Ranks of locks: a thread that holds one may only wait for higher ranks."""
_locks: Final[weakref.WeakKeyDictionary[Any, int]] = weakref.WeakKeyDictionary()
_held: list[Any] = []


def new_lock(rank: int = OUTER) -> Any:
    """A reentrant lock that fork waits for, so that a child never finds it held."""
    lock = threading.RLock()
    _locks[lock] = rank
    return lock


aloft: Final[list[Flight]] = []
"""The program in flight, if there is one."""
landing: Final = new_lock(LANDING)
"""Held to start a program that may be left in flight, and to land it."""


def land() -> None:
    """Finishes the program in flight, if there is one."""
    if aloft:
        _land()


def land_for(identity: int) -> None:
    """Finishes the program in flight, if it may use the array with this `id`."""
    for flight in aloft:  # another thread may land it meanwhile
        if identity not in flight.done:
            _land()


def _land() -> None:
    with landing:
        for flight in aloft:
            flight.finish()
        aloft.clear()


def begin(flight: Flight) -> None:
    """Marks a program that may be left in flight as started; `landing` is held."""
    _land()
    aloft.append(flight)


def end() -> None:
    """Marks it as finished by its caller; `landing` is held."""
    aloft.clear()


def _hold_all() -> None:
    """Waits for running steps and blocks new ones, within a time limit."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    with Uninterrupted():  # everyone who gets a lock here gives it back
        for lock, _ in sorted(_locks.items(), key=_rank):
            if lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
                _held.append(lock)
        if landing in _held:
            land()


def _rank(item: tuple[Any, int]) -> int:
    return item[1]


def _release_all() -> None:
    with Uninterrupted():
        while _held:
            _held.pop().release()


def _after_fork_in_child() -> None:
    _held.clear()
    aloft.clear()
    for lock in list(_locks):
        lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_hold_all,  # the child finds variables as they are between steps
        after_in_parent=_release_all,
        after_in_child=_after_fork_in_child,
    )
# A daemon thread's step must not call Python or use the team while both shut down.
at_exit(_hold_all)

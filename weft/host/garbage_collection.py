"""Garbage collection: pauses of Python's cyclic collector, finalizers of one process alone, and
attributes of threads that a finalizer may read while they are made.
"""

from __future__ import annotations

import functools
import gc
import os
import weakref
from collections.abc import Callable
from typing import Any, Final, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


MANY: Final = 10_000
"""New objects: some 50 modules."""
FEW: Final = 1_000
"""Frozen objects, as Python itself may have."""
_CALLS: Final[set[object]] = set()
"""The calls, of any thread, while which collection is paused."""
_PAUSED: Final[set[bool]] = set()
"""Not empty if one of them has turned it off."""


def _after_fork() -> None:
    """Forgets the calls of other threads, which a child does not have."""
    _CALLS.clear()
    if _PAUSED:
        gc.enable()
        _PAUSED.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def uncollected(function: Callable[P, T]) -> Callable[P, T]:
    """The function, without cyclic collections while it runs in any thread.

    A finalizer may read values, which would be computed in the middle of a computation; and
    collections find few cycles in a compilation, a tenth of whose time they would take. If
    collection is off, it stays off. Ctrl-C may come after any call in here: what the end then
    leaves out is done by the end of the next call.

    >>> uncollected(gc.isenabled)(), gc.isenabled()
    (False, True)
    """

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        call = object()
        try:
            _CALLS.add(call)
            if gc.isenabled():
                _PAUSED.add(True)
                gc.disable()
            return function(*args, **kwargs)
        finally:
            _CALLS.discard(call)
            if not _CALLS and _PAUSED:
                gc.enable()
                _PAUSED.clear()

    return run


def collect_after(objects: int) -> None:
    """Lets Python look for cycles only once there are so many new objects.

    What is recorded is freed together, without cycles. Until then it would start collections, and
    the long ones look at all objects of the process. Other limits, and none, are kept if larger.
    """
    youngest, *older = gc.get_threshold()
    if 0 < youngest < objects:
        gc.set_threshold(objects, *older)


def count_as_old() -> None:
    """Moves what lives to the oldest generation, if much of it is new: nothing of it is garbage.

    So collections do not visit all objects of an import twice, which takes 60 ms for Weft's.
    Nothing is kept for ever, and what somebody has frozen stays frozen; Python 3.12 itself begins
    with 375 frozen objects.
    """
    if gc.get_count()[0] >= MANY and gc.get_freeze_count() < FEW:
        gc.freeze()
        gc.unfreeze()


def finalize_here(obj: Any, function: Callable[..., Any], *args: Any) -> Any:
    """`weakref.finalize` that does nothing in a forked process.

    There the object is a copy, whose threads do not run, whose locks may be held for ever, and
    whose files and processes are those of the parent.
    """
    return weakref.finalize(obj, _in_process, os.getpid(), function, *args)


def _in_process(owner: int, function: Callable[..., Any], *args: Any) -> None:
    if os.getpid() == owner:
        function(*args)


class FirstRead(Generic[T]):
    """An attribute of a `threading.local`, made when a thread first reads it.

    Making it may start a collection, whose finalizers may read it, too. In `__init__` they would
    find that it is not there.

    >>> class Stack(threading.local):
    ...     values = FirstRead[list[int]](list)
    >>> Stack().values
    []
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type | None = None) -> T:
        return vars(instance).setdefault(self._name, self._make())

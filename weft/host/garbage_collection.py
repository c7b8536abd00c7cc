"""Garbage collection: pauses of Python's cyclic collector, finalizers of one process alone, and
attributes of threads that a finalizer may read while they are made.
"""

from __future__ import annotations

import functools
import gc
import os
import threading
import weakref
from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any, Final, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class _Waits(ContextDecorator):
    """Whoever wants it paused, in any thread."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # a handler of a signal may come here in between
        self.depth = 0
        self.enabled = False

    def __enter__(self) -> None:
        with self.lock:
            self.depth += 1
            if self.depth == 1:
                self.enabled = gc.isenabled()
                gc.disable()

    def __exit__(self, *_: object) -> None:
        with self.lock:
            if self.depth == 1 and self.enabled:
                gc.enable()
            self.depth -= 1

    def after_fork(self) -> None:
        """Resets the count: in a child, no other thread is inside."""
        if self.depth and self.enabled:
            gc.enable()
        self.lock, self.depth = threading.RLock(), 0


_WAITS: Final = _Waits()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_WAITS.after_fork)


def collection_waits() -> _Waits:
    """A block without cyclic collections, in any thread.

    They find few cycles in a compilation, and pausing saves a tenth of its time. If collection is
    off, it stays off.

    >>> import gc
    >>> with collection_waits():
    ...     print(gc.isenabled())
    False
    >>> gc.isenabled()
    True
    """
    return _WAITS


def uncollected(function: Callable[P, T]) -> Callable[P, T]:
    """The function, without cyclic collections while it runs, whatever ends it.

    A finalizer may read values, which would be computed in the middle of a computation. Unlike a
    context manager's, the end cannot be missed: Ctrl-C may come at any call.

    >>> uncollected(gc.isenabled)(), gc.isenabled()
    (False, True)
    """

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        enabled = gc.isenabled()
        try:
            gc.disable()
            return function(*args, **kwargs)
        finally:
            if enabled:
                gc.enable()

    return run


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

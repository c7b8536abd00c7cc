"""Defers Ctrl-C until an operation that must not be interrupted halfway is done.

Nor is it lost in a finalizer (`__del__`, a callback of `weakref`), whose exceptions Python only
prints: importing this module sets a hook that sends the signal again right after it.
"""

from __future__ import annotations

import _thread
import contextlib
import signal
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType, TracebackType
from typing import Any, Final

# What `signal` wraps takes 0.3 us where `signal` takes 7, because it makes enumerations.
_plain: Final[Any] = sys.modules.get("_signal", signal)
_set: Final[Any] = _plain.signal
_get: Final[Any] = _plain.getsignal


def _numbers(*names: str) -> tuple[int, ...]:
    return tuple([int(getattr(signal, name)) for name in names if hasattr(signal, name)])


SIGNALS: Final = _numbers("SIGINT", "SIGALRM", "SIGTERM")
"""Signals whose handlers usually raise exceptions: Ctrl-C, time limits, termination."""
NOTICES: Final = _numbers(
    "SIGUSR1", "SIGUSR2", "SIGHUP", "SIGCHLD", "SIGPROF", "SIGVTALRM", "SIGQUIT", "SIGCONT"
)
"""Signals whose handlers usually return, after they have saved or reported something."""


class Uninterrupted:
    """A block that defers Ctrl-C and handlers of signals to its end; for the main thread.

    >>> with Uninterrupted():
    ...     signal.raise_signal(signal.SIGINT)
    ...     print("whole")
    Traceback (most recent call last):
    KeyboardInterrupt
    """

    __slots__ = ("_before", "_came")
    signals = SIGNALS + NOTICES

    def __enter__(self) -> None:
        self._came: list[int] = []
        self._before: list[tuple[int, Any]] = []
        if threading.get_ident() == threading.main_thread().ident:
            try:
                for number in self.signals:
                    handler = _get(number)
                    if callable(handler):  # else the process ignores it, or ends
                        self._before.append((number, handler))
                        _set(number, self._note)
            except BaseException:  # of a signal that is not deferred yet
                self._restore()
                raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:  # fmt: skip
        try:
            self._restore()
        finally:
            self._tell()

    def _restore(self) -> None:
        """Restores the handlers; a signal that comes now may raise first."""
        while self._before:
            try:
                _set(*self._before[-1])
                self._before.pop()
            except BaseException:
                self._restore()
                raise

    def _tell(self) -> None:
        """Handles the signals that came."""
        if self._came:
            try:
                signal.raise_signal(self._came.pop(0))
            finally:
                self._tell()

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number not in self._came:
            self._came.append(number)

    def outer(self, number: int) -> tuple[bool, Any]:
        """Whether a signal came, which is then cleared; and the handler outside of this block."""
        came = number in self._came
        if came:
            self._came.remove(number)
        return came, dict(self._before)[number]


class NoticesWait(Uninterrupted):
    """A block that defers the handlers of NOTICES to its end; for the main thread.

    They may read values, which must not be computed in the middle of a computation.
    """

    __slots__ = ()
    signals = NOTICES


def have_effect() -> None:
    """Handles deferred signals now, at a point where the work may be abandoned; in another thread
    than the main one, what `abandonable` was given.

    >>> with Uninterrupted():
    ...     signal.raise_signal(signal.SIGINT)
    ...     have_effect()
    ...     print("not reached")
    Traceback (most recent call last):
    KeyboardInterrupt
    """
    if threading.get_ident() != threading.main_thread().ident:
        if check := getattr(_local, "check", None):
            check()
        return
    for number in SIGNALS:
        handler, waits = _get(number), False
        while isinstance(block := getattr(handler, "__self__", None), Uninterrupted):
            came, handler = block.outer(number)
            waits = waits or came
        if waits:
            handler(number, None)


@contextlib.contextmanager
def abandonable(check: Callable[[], None]) -> Iterator[None]:
    """A block whose long work in this thread may be given up: `have_effect` calls `check`.

    Args:
        check: raises if the work is no longer wanted.
    """
    before = getattr(_local, "check", None)
    _local.check = check
    try:
        yield
    finally:
        _local.check = before


_local: Final = threading.local()


class AgainBehindFinalizers:
    """A `sys.unraisablehook` that sends a signal lost in a finalizer again.

    Args:
        other: the hook for all other exceptions.
    """

    def __init__(self, other: Callable[[sys.UnraisableHookArgs], object]) -> None:
        self._other = other
        # A signal that comes in a call is handled at its end, which is still in here, and lost
        # again. Python does not check for signals after a subscript: here is one that sends them.
        self._send: dict[int, defaultdict[int, Any]] = {
            number: defaultdict(partial(_thread.interrupt_main, number))  # pyright: ignore
            for number in SIGNALS
        }

    def __call__(self, lost: sys.UnraisableHookArgs, /) -> None:
        """Sends the signal again if the exception is a signal's; else calls the other hook."""
        number = _signal_of(lost)
        if number is None:
            self._other(lost)
        else:
            send = self._send[number]
            send.clear()
            send[0]


def _signal_of(lost: sys.UnraisableHookArgs) -> int | None:
    """The signal whose handler raised an exception, if any."""
    if threading.get_ident() != threading.main_thread().ident:
        return None
    codes, trace = list[Any](), lost.exc_traceback
    while trace is not None:
        codes.append(trace.tb_frame.f_code)
        trace = trace.tb_next
    for number in SIGNALS:
        handler = _get(number)
        own = handler is signal.default_int_handler and lost.exc_type is KeyboardInterrupt
        if own or getattr(getattr(handler, "__func__", handler), "__code__", None) in codes:
            return number
    return None


sys.unraisablehook = AgainBehindFinalizers(sys.unraisablehook)

"""Ctrl-C, where a half-done deed would be seen: it waits until the deed is done."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any, Final

# What `signal` wraps takes 0.3 us where `signal` takes 7: it makes no enumerations of handlers.
_plain: Final[Any] = sys.modules.get("_signal", signal)
_set: Final[Any] = _plain.signal
_get: Final[Any] = _plain.getsignal

_NAMES = ("SIGINT", "SIGALRM", "SIGTERM")
SIGNALS: Final = tuple([int(getattr(signal, name)) for name in _NAMES if hasattr(signal, name)])
"""Those whose handlers raise exceptions, by habit: Ctrl-C, time limits, polite ends."""


class Uninterrupted:
    """A block at whose end Ctrl-C has its effect, if it came inside; for the main thread.

    >>> with Uninterrupted():
    ...     signal.raise_signal(signal.SIGINT)
    ...     print("whole")
    Traceback (most recent call last):
    KeyboardInterrupt
    """

    __slots__ = ("_before", "_came")

    def __enter__(self) -> None:
        self._came: list[int] = []
        self._before: list[tuple[int, Any]] = []
        if threading.get_ident() == threading.main_thread().ident:
            try:
                for number in SIGNALS:
                    handler = _get(number)
                    if callable(handler):  # else the process ignores it, or ends
                        self._before.append((number, handler))
                        _set(number, self._note)
            except BaseException:  # of one that is not held off yet
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
        """Put the handlers back; a signal that comes now may raise before one is."""
        while self._before:
            try:
                _set(*self._before[-1])
                self._before.pop()
            except BaseException:
                self._restore()
                raise

    def _tell(self) -> None:
        """Have the effect of what came."""
        if self._came:
            try:
                signal.raise_signal(self._came.pop(0))
            finally:
                self._tell()

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number not in self._came:
            self._came.append(number)

    def outer(self, number: int) -> tuple[bool, Any]:
        """Whether a signal came, which is forgotten; and the handler outside of this block."""
        came = number in self._came
        if came:
            self._came.remove(number)
        return came, dict(self._before)[number]


def have_effect() -> None:
    """Let signals that wait have their effect now: in the midst of what may be given up.

    >>> with Uninterrupted():
    ...     signal.raise_signal(signal.SIGINT)
    ...     have_effect()
    ...     print("not reached")
    Traceback (most recent call last):
    KeyboardInterrupt
    """
    if threading.get_ident() != threading.main_thread().ident:
        return
    for number in SIGNALS:
        handler, waits = _get(number), False
        while isinstance(block := getattr(handler, "__self__", None), Uninterrupted):
            came, handler = block.outer(number)
            waits = waits or came
        if waits:
            handler(number, None)

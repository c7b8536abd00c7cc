"""Ctrl-C, where a half-done deed would be seen: it waits until the deed is done."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any, Final

# What `signal` wraps takes a tenth of the time: it makes no enumerations of handlers.
_plain: Final[Any] = sys.modules.get("_signal", signal)
_set: Final[Any] = _plain.signal
_get: Final[Any] = _plain.getsignal


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
        self._came = False
        self._before: Any = None
        if threading.get_ident() == threading.main_thread().ident:
            before = _get(signal.SIGINT)
            if before is not None:  # a handler that Python does not know could not be put back
                self._before = before
                _set(signal.SIGINT, self._note)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:  # fmt: skip
        if self._before is not None:
            _set(signal.SIGINT, self._before)
            if self._came:
                signal.raise_signal(signal.SIGINT)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._came = True

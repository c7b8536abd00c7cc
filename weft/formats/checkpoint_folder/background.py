"""Work in a background thread; its errors are raised by the next call."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from typing import Final

NICENESS: Final = 13  # niceness; a busy core gives it 5%: training goes first if none is idle


class Background:
    """One thread at a time. The interpreter waits for it before it exits."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def start(self, work: Callable[[], object]) -> None:
        """Starts some work, after the previous one.

        Raises:
            Exception: an error of the previous work; the new work is not started then.
        """
        self.wait()
        self._thread = threading.Thread(target=self._run, args=(work,), name="weft-checkpoint")
        self._thread.start()

    def _run(self, work: Callable[[], object]) -> None:
        with contextlib.suppress(OSError, AttributeError):  # on Linux niceness is per thread
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        try:
            work()
        except BaseException as error:
            self._error = error

    def wait(self) -> None:
        """Waits until the work is done.

        Raises:
            Exception: its error; once.
        """
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._error is not None:
            error, self._error = self._error, None
            raise error

"""Work that goes on beside the caller's; what goes wrong there is raised at the next call."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from typing import Final

NICENESS: Final = 13  # a busy core gives it 5%: training goes first where none is idle


class Background:
    """One thread at a time. The interpreter waits for it before it ends."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def start(self, work: Callable[[], object]) -> None:
        """Begin some work, after what came before.

        Raises:
            Exception: whatever the work before has raised; this one is not begun then.
        """
        self.wait()
        self._thread = threading.Thread(target=self._run, args=(work,), name="weft-checkpoint")
        self._thread.start()

    def _run(self, work: Callable[[], object]) -> None:
        with contextlib.suppress(OSError, AttributeError):  # Linux has it for each thread
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        try:
            work()
        except BaseException as error:
            self._error = error

    def wait(self) -> None:
        """Wait until the work is done.

        Raises:
            Exception: whatever it has raised; once.
        """
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._error is not None:
            error, self._error = self._error, None
            raise error

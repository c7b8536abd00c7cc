"""Ctrl-C or SIGTERM during training: finish the step, then save a checkpoint."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any, Final


class SIGTERMException(SystemExit):
    """Ends the process after a run was terminated and saved."""


USUAL: Final = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
"""The handlers that the signals have without anything else."""


class Interruption:
    """A block in which the first Ctrl-C or SIGTERM is only recorded; the second one acts as usual.

    Only in the main thread, and only if the signals have their default handlers.

    Attributes:
        came: whether a signal came.
        terminates: whether it was SIGTERM, with which schedulers of clusters end a job.
    """

    def __init__(self) -> None:
        self.came = self.terminates = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            for number, usual in USUAL.items():
                if signal.getsignal(number) is usual:
                    self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:  # fmt: skip
        self.end()

    def end(self) -> None:
        """Restore the usual effect of the signals."""
        while self._before:
            signal.signal(*self._before.popitem())

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.end()
        self.came, self.terminates = True, number == signal.SIGTERM
        name = "SIGTERM" if self.terminates else "Ctrl-C"
        print(f"\n{name}: finishing this step, then saving; once more stops at once",
              file=sys.stderr)  # fmt: skip

"""Ctrl-C during training: finish the step, then save a checkpoint."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any


class Interruption:
    """A block in which the first Ctrl-C is only recorded; the second one interrupts as usual.

    Only in the main thread, and only if Python's own handler is installed.

    Attributes:
        came: whether Ctrl-C was pressed.
    """

    def __init__(self) -> None:
        self.came = False
        self._before: Any = None

    def __enter__(self) -> Interruption:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:  # fmt: skip
        self.end()

    def end(self) -> None:
        """Restore the usual effect of Ctrl-C."""
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.end()
        self.came = True
        print(
            "\nCtrl-C: finishing this step, then saving; once more stops at once", file=sys.stderr
        )

"""The communication thread: runs calls in order while the process computes."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from weft.transport.native import BUSY


class Worker:
    """Does one piece of work after another; its thread starts with the first.

    Args:
        words: in which native code is told that it may be at work.
    """

    def __init__(self, words: Any) -> None:
        self._words = words
        self._queue: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._last: Future[Any] | None = None
        self.busy = False  # whether anything may not be done yet

    def submit(self, work: Callable[[], Any]) -> Future[Any]:
        """Queue work."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="weft-exchange", daemon=True)
            self._thread.start()
        self._last = found = Future[Any]()
        self.busy = True
        self._words[BUSY] = 1
        self._queue.put((found, work))
        return found

    def drain(self) -> None:
        """Wait until all queued work is done, unless called on the thread itself."""
        last = self._last
        if last is not None and threading.current_thread() is not self._thread:
            last.exception()  # whoever waits for it raises it
            if self._last is last:
                self._last, self.busy = None, False
                self._words[BUSY] = 0

    def _run(self) -> None:
        while True:
            future, work = self._queue.get()
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
            del future, work  # and with them the memory that the call had, before the next comes

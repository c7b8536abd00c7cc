"""The communication thread: runs calls in order while the process computes.

Where a rank computes on its only core, the thread would take turns with the one that computes, and
two ranks would wait for each other's turns. Calls that need nothing but the core are deferred
there: whoever waits for one makes it.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from weft.transport.native import BUSY

Work = tuple[Future[Any], Callable[[], Any]]


class Worker:
    """Does one piece of work after another; its thread starts with the first.

    Args:
        words: in which native code is told that it may be at work.
    """

    def __init__(self, words: Any) -> None:
        self._words = words
        self._queue: queue.SimpleQueue[Work] = queue.SimpleQueue()
        self._deferred: deque[Work] = deque()
        self._turn = threading.Lock()  # of whoever makes deferred calls
        self._making: threading.Thread | None = None
        self._thread: threading.Thread | None = None
        self._last: Future[Any] | None = None
        self.busy = False  # whether anything may not be done yet

    def submit(self, work: Callable[[], Any], deferred: bool = False) -> Future[Any]:
        """Queue work, behind all that was queued before.

        Args:
            deferred: whether to do it only when it is waited for.
        """
        found = Future[Any]()
        self.busy = True
        self._words[BUSY] = 1
        if deferred:
            self._deferred.append((found, work))
            return found
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="weft-exchange", daemon=True)
            self._thread.start()
        self._pass_on()
        self._last = found
        self._queue.put((found, work))
        return found

    def _pass_on(self) -> None:
        """Give the thread what was deferred."""
        while self._deferred:
            self._last = self._deferred[0][0]
            self._queue.put(self._deferred.popleft())

    def catch_up(self) -> None:
        """Do what was deferred; on the thread, should that be at work."""
        if self._making is threading.current_thread():
            return
        with self._turn:
            if self._last is not None and not self._last.done():
                self._pass_on()
                return
            self._making = threading.current_thread()
            try:
                while self._deferred:
                    _do(*self._deferred.popleft())
            finally:
                self._making = None

    def drain(self) -> None:
        """Wait until all queued work is done, unless called by that work itself."""
        if threading.current_thread() in (self._thread, self._making):
            return
        if self._deferred:
            self.catch_up()
        last = self._last
        if last is not None:
            last.exception()  # whoever waits for it raises it
        if self._last is last and not self._deferred:
            self._last, self.busy = None, False
            self._words[BUSY] = 0

    def _run(self) -> None:
        while True:
            _do(*self._queue.get())


def _do(future: Future[Any], work: Callable[[], Any]) -> None:
    """Do a piece of work; its memory is free when this returns."""
    try:
        future.set_result(work())
    except BaseException as error:
        future.set_exception(error)

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
    """Does one piece of work after another; its thread starts with the first that is not deferred.

    Args:
        words: in which native code is told that work may be left.
    """

    def __init__(self, words: Any) -> None:
        self._words = words
        self._queue: queue.SimpleQueue[Work] = queue.SimpleQueue()
        self._deferred: deque[Work] = deque()
        self._lock = threading.Lock()  # of what is queued
        self._turn = threading.Lock()  # of whoever does it
        self._thread: threading.Thread | None = None
        self._doing: threading.Thread | None = None  # what was deferred
        self._last: Future[Any] | None = None  # of the thread's
        self.busy = False  # whether anything may not be done yet

    def submit(self, work: Callable[[], Any], deferred: bool = False) -> Future[Any]:
        """Queue work, behind all that was queued before.

        Args:
            deferred: whether to do it only when it is waited for.
        """
        found = Future[Any]()
        with self._lock:
            self.busy = True
            self._words[BUSY] = 1
            self._deferred.append((found, work))
            if not deferred:
                self._pass_on()
        return found

    def _pass_on(self) -> None:
        """Give the thread what was deferred."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="weft-exchange", daemon=True)
            self._thread.start()
        while self._deferred:
            self._last = self._deferred[0][0]
            self._queue.put(self._deferred.popleft())

    def catch_up(self) -> None:
        """Do what was deferred; the thread does it, should that be at work."""
        if not self._deferred or self._is_at_work():
            return
        with self._lock:
            if self._last is not None and not self._last.done():
                self._pass_on()
                return
        with self._turn:
            self._doing = threading.current_thread()
            try:
                while (work := self._next_deferred()) is not None:
                    _do(*work)
            finally:
                self._doing = None

    def _next_deferred(self) -> Work | None:
        with self._lock:
            return self._deferred.popleft() if self._deferred else None

    def _is_at_work(self) -> bool:
        """Whether the caller is what does the work: it would wait for itself."""
        return threading.current_thread() in (self._thread, self._doing)

    def drain(self) -> None:
        """Wait until all queued work is done, unless that work itself calls it."""
        if self._is_at_work():
            return
        self.catch_up()
        last = self._last
        if last is not None:
            last.exception()  # whoever waits for it raises it
        with self._lock:
            if self._last is last and not self._deferred and self._doing is None:
                self._last, self.busy = None, False
                self._words[BUSY] = 0

    def _run(self) -> None:
        while True:
            work = self._queue.get()
            with self._turn:
                _do(*work)
            del work  # and with it the memory that the call had, before the next comes


def _do(future: Future[Any], work: Callable[[], Any]) -> None:
    """Do a piece of work."""
    try:
        future.set_result(work())
    except BaseException as error:
        future.set_exception(error)

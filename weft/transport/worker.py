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

    There is one queue. Whoever does the next piece, the thread or a thread that waits, takes it
    from the queue and does it while holding `_turn`, so that the order is that of submission.

    Args:
        words: in which native code is told that work may be left.
    """

    def __init__(self, words: Any) -> None:
        self._words = words
        self._queue: deque[Work] = deque()
        self._deferred = 0  # how many at the queue's end the thread was not told of
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()  # one for each it was told of
        self._lock = threading.Lock()  # of what is queued
        self._turn = threading.RLock()  # of whoever does it; a handler may come in between
        self._thread: threading.Thread | None = None
        self._doing: threading.Thread | None = None  # who has the turn
        self._last: Future[Any] | None = None  # that the thread was told of
        self.busy = False  # whether anything may not be done yet

    def submit(self, work: Callable[[], Any], deferred: bool = False) -> Future[Any]:
        """Queue work, behind all that was queued before.

        Args:
            deferred: whether to do it only when it is waited for.
        """
        future = Future[Any]()
        with self._lock:
            self.busy = True
            self._words[BUSY] = 1
            self._queue.append((future, work))
            self._deferred += 1
            if not deferred:
                self._tell()
        return future

    def _tell(self) -> None:
        """Tell the thread of all that is queued."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="weft-exchange", daemon=True)
            self._thread.start()
        self._last = self._queue[-1][0]
        for _ in range(self._deferred):
            self._wake.put(None)
        self._deferred = 0

    def catch_up(self) -> None:
        """Do what was deferred; the thread does it, should that be at work."""
        if not self._deferred or self._is_at_work():
            return
        with self._lock:
            if self._deferred and self._last is not None and not self._last.done():
                self._tell()
                return
        while self._do_next(deferred=True):
            pass

    def _do_next(self, deferred: bool) -> bool:
        """Do the next piece of work, a deferred one only if asked; whether there was one."""
        with self._turn:
            self._doing = threading.current_thread()
            try:
                with self._lock:
                    left = len(self._queue)
                    if left == (0 if deferred else self._deferred):
                        return False
                    future, work = self._queue.popleft()
                    self._deferred = min(self._deferred, left - 1)
                _do(future, work)
            finally:
                self._doing = None
        return True

    def _is_at_work(self) -> bool:
        """Whether the caller is what does the work: it would wait for itself."""
        return threading.current_thread() is self._doing

    def drain(self) -> None:
        """Wait until all queued work is done, unless that work itself calls it."""
        if self._is_at_work():
            return
        self.catch_up()
        last = self._last
        if last is not None:
            last.exception()  # whoever waits for it raises it
        with self._turn, self._lock:  # nobody is in the middle of a piece
            if not self._queue:
                self._last, self.busy = None, False
                self._words[BUSY] = 0

    def _run(self) -> None:
        while True:
            self._wake.get()
            self._do_next(deferred=False)


def _do(future: Future[Any], work: Callable[[], Any]) -> None:
    """Do a piece of work."""
    try:
        future.set_result(work())
    except BaseException as error:
        future.set_exception(error)

"""The communication thread: runs calls in order while the process computes.

If a rank has a single core, the thread would compete with the one that computes, and two ranks
would wait for each other. There, calls that only need the core are deferred: a thread that waits
for such a call makes it.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weft.host.deferred import Deferred
from weft.transport.native import BUSY

if TYPE_CHECKING:
    from concurrent import futures
else:
    futures = Deferred("concurrent.futures")

Work = tuple["futures.Future[Any]", Callable[[], Any]]


class Worker:
    """Runs work in order of submission; its thread starts with the first that is not deferred.

    There is one queue. The worker's thread, or a thread that waits, takes the next piece of work
    from the queue and runs it while holding `_turn`, which keeps the order.

    Args:
        words: a flag in them tells native code that work may be pending.
    """

    def __init__(self, words: Any) -> None:
        self._words = words
        self._queue: deque[Work] = deque()
        self._deferred = 0  # pieces at the queue's end that the thread does not know of
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()  # an item a known piece
        self._lock = threading.Lock()  # guards the queue
        self._turn = threading.RLock()  # held while work runs; reentrant for signal handlers
        self._thread: threading.Thread | None = None
        self._doing: threading.Thread | None = None  # the thread that holds the turn
        self._last: futures.Future[Any] | None = None  # the last piece that the thread knows of
        self.busy = False  # whether work may be pending

    def submit(self, work: Callable[[], Any], deferred: bool = False) -> futures.Future[Any]:
        """Queue work.

        Args:
            deferred: whether to run it only when it is waited for.
        """
        future = futures.Future[Any]()
        with self._lock:
            self.busy = True
            self._words[BUSY] = 1
            self._queue.append((future, work))
            self._deferred += 1
            if not deferred:
                self._tell()
        return future

    def _tell(self) -> None:
        """Wake the thread for everything in the queue."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="weft-exchange", daemon=True)
            self._thread.start()
        self._last = self._queue[-1][0]
        for _ in range(self._deferred):
            self._wake.put(None)
        self._deferred = 0

    def catch_up(self) -> None:
        """Run deferred work; if the thread is at work, it does so."""
        if not self._deferred or self._is_at_work():
            return
        with self._lock:
            if self._deferred and self._last is not None and not self._last.done():
                self._tell()
                return
        while self._do_next(deferred=True):
            pass

    def _do_next(self, deferred: bool) -> bool:
        """Run the next piece of work, a deferred one only if asked; whether there was one."""
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
        """Whether the caller is inside a piece of work, and so would wait for itself."""
        return threading.current_thread() is self._doing

    def drain(self) -> None:
        """Wait until all queued work is done, unless that work itself calls it."""
        if self._is_at_work():
            return
        self.catch_up()
        last = self._last
        if last is not None:
            last.exception()  # the thread that waits for the future raises it
        with self._turn, self._lock:  # no piece of work is running
            if not self._queue:
                self._last, self.busy = None, False
                self._words[BUSY] = 0

    def _run(self) -> None:
        while True:
            self._wake.get()
            self._do_next(deferred=False)


def _do(future: futures.Future[Any], work: Callable[[], Any]) -> None:
    """Run a piece of work."""
    try:
        future.set_result(work())
    except BaseException as error:
        future.set_exception(error)

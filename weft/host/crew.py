"""Threads that are there when work comes, and end when none does."""

from __future__ import annotations

import os
import queue
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, Final

from weft.errors import ArgumentError

IDLE_SECONDS: Final = 10.0
"""How long a thread waits for work before it ends."""

STOP_SECONDS: Final = 1.0
"""How long the end waits for threads at work, as a handler may wait for ever."""


class Crew(Executor):
    """An executor that starts a thread whenever none is idle, so that work never waits for work.

    Its threads are daemons: a handler that waits for ever does not keep the process alive. A child
    that is forked has none of them, and starts its own.

    Args:
        name: of its threads.
        idle: seconds that one waits for work before it ends.
    """

    def __init__(self, name: str, idle: float = IDLE_SECONDS) -> None:
        self._name, self._idle_seconds = name, idle
        self._reset()
        _crews.add(self)

    def _reset(self) -> None:
        self._work: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self._idle = 0  # threads that wait for work, less the work that waits for them
        self._threads: set[threading.Thread] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """See `Executor.submit`."""
        future: Future[Any] = Future()

        def run() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(fn(*args, **kwargs))
                except BaseException as error:  # it belongs to whoever asks the future
                    future.set_exception(error)

        if not self.do(run):
            raise RuntimeError(f"{self._name}: stopped")
        return future

    def do(self, work: Callable[[], object]) -> bool:
        """Have a thread do some work, which must not raise; returns whether it will be done."""
        with self._lock:
            if self._stopped:
                return False
            self._idle -= 1
            thread = None
            if self._idle < 0:
                self._idle += 1
                thread = threading.Thread(target=self._run, args=(work,), daemon=True)
                thread.name = f"{self._name}-{len(self._threads)}"
                self._threads.add(thread)
            else:
                self._work.put(work)
        if thread is not None:
            thread.start()
        return True

    def _run(self, work: Callable[[], object] | None) -> None:
        try:
            while work is not None:
                work()
                del work  # what it refers to is free while the thread waits
                work = self._next()
        finally:
            with self._lock:
                self._threads.discard(threading.current_thread())

    def _next(self) -> Callable[[], object] | None:
        with self._lock:
            if self._stopped:
                return None
            self._idle += 1
        try:
            return self._work.get(timeout=self._idle_seconds)
        except queue.Empty:
            with self._lock:
                if self._idle > 0:
                    self._idle -= 1
                    return None
            return self._work.get()  # it was given work at the last moment

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """See `Executor.shutdown`; threads whose work lasts are waited for only a while.

        Raises:
            ArgumentError: `cancel_futures`: work begins at once, so there is none to cancel.
        """
        if cancel_futures:
            raise ArgumentError("Crew.shutdown: expected cancel_futures=False, got True")
        with self._lock:
            self._stopped = True
            threads = list(self._threads)
            for _ in range(self._idle):
                self._work.put(None)
            self._idle = 0
        until = time.monotonic() + STOP_SECONDS
        for thread in threads if wait else ():
            if thread is not threading.current_thread():
                thread.join(max(0.0, until - time.monotonic()))


_crews: Final[weakref.WeakSet[Crew]] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for crew in list(_crews):
        crew._reset()  # pyright: ignore[reportPrivateUsage]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)

"""`tf.train.Coordinator`: threads that stop together."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from weft.errors import WeftError
from weft.tf1.errors import OutOfRangeError


class Coordinator:
    """Any thread can ask all to stop, with an exception that `join` raises unless it is clean.

    Args:
        clean_stop_exception_types: exceptions that end the data; `OutOfRangeError` by default.
    """

    def __init__(self, clean_stop_exception_types: Sequence[type[Exception]] | None = None) -> None:
        given = clean_stop_exception_types
        self._clean = (OutOfRangeError,) if given is None else tuple(given)
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._error: BaseException | None = None
        self._threads: list[threading.Thread] = []

    def should_stop(self) -> bool:
        """Whether a stop was requested."""
        return self._stop.is_set()

    def request_stop(self, ex: Any = None) -> None:
        """Ask all threads to stop, because of an exception if one is given."""
        error: Any = ex[1] if isinstance(ex, tuple) else ex
        with self._lock:
            clean = error is None or isinstance(error, self._clean)
            if not clean and self._error is None and not self._stop.is_set():
                self._error = error
            self._stop.set()

    def raise_requested_exception(self) -> None:
        """Raise the exception of the stop request, if any."""
        if self._error is not None:
            raise self._error

    def clear_stop(self) -> None:
        """Clear the stop request."""
        self._stop.clear()
        self._error = None

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Wait for a stop request; returns whether there was one."""
        return self._stop.wait(timeout)

    def register_thread(self, thread: threading.Thread) -> None:
        """Register a thread that `join` waits for."""
        self._threads.append(thread)

    @contextlib.contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """A context in which an exception asks all threads to stop."""
        try:
            yield
        except Exception as error:  # join raises it
            self.request_stop(error)

    def join(
        self,
        threads: Sequence[threading.Thread] | None = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Wait until the threads end; after a stop request they have a grace period.

        Raises:
            WeftError: threads are still running.
            Exception: the argument of `request_stop`.
        """
        waiting = {*self._threads, *(threads or ())}
        while not self._stop.is_set() and any(t.is_alive() for t in waiting):
            self._stop.wait(0.05)
        limit = time.monotonic() + stop_grace_period_secs
        for thread in waiting:
            thread.join(max(limit - time.monotonic(), 0))
        self._threads = []
        self.raise_requested_exception()
        alive = [t.name for t in waiting if t.is_alive()]
        if alive and not ignore_live_threads:
            raise WeftError(f"Coordinator: threads live on after the stop: {alive}")

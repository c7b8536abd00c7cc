"""`tf.train.Coordinator`: threads that stop together."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from weft.errors import ArgumentError, WorkerError
from weft.tf1.errors import OutOfRangeError

__all__ = ["Coordinator", "LooperThread"]

_TICK = 0.02  # seconds between looks at threads and at the stop request


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
        self._joined = False
        self._registered_threads: set[threading.Thread] = set()

    @property
    def joined(self) -> bool:
        """Whether `join` has ended; a later exception is raised by `request_stop` itself."""
        return self._joined

    @property
    def has_threads(self) -> bool:
        """Whether threads are registered."""
        return bool(self._registered_threads)

    def should_stop(self) -> bool:
        """Whether a stop was requested."""
        return self._stop.is_set()

    def request_stop(self, ex: Any = None) -> None:
        """Ask all threads to stop, because of an exception if one is given.

        Args:
            ex: an exception, or a tuple of `sys.exc_info()`.
        """
        error: Any = ex[1] if isinstance(ex, tuple) else ex
        with self._lock:
            unclean = error is not None and not isinstance(error, self._clean)
            if self._joined and isinstance(error, BaseException) and unclean:
                raise error
            if unclean and self._error is None and not self._stop.is_set():
                self._error = error
            self._stop.set()

    def raise_requested_exception(self) -> None:
        """Raise the exception of the stop request, if any."""
        if self._error is not None:
            raise self._error

    def clear_stop(self) -> None:
        """Clear the stop request."""
        with self._lock:
            self._joined, self._error = False, None
            self._stop.clear()

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Wait for a stop request; returns whether there was one."""
        return self._stop.wait(timeout)

    def register_thread(self, thread: threading.Thread) -> None:
        """Register a thread that `join` waits for."""
        with self._lock:
            self._registered_threads.add(thread)

    @contextlib.contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """A context in which an exception asks all threads to stop."""
        try:
            yield
        except BaseException as error:  # join raises it
            self.request_stop(error)

    def join(
        self,
        threads: Sequence[threading.Thread] | None = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Wait until the threads end; after a stop request they have a grace period.

        Raises:
            WorkerError: threads are still running.
            Exception: the argument of `request_stop`.
        """
        with self._lock:
            waiting = list(self._registered_threads.union(threads or ()))
        while _alive(waiting) and not self._stop.wait(_TICK):
            pass
        limit = time.monotonic() + stop_grace_period_secs
        for thread in _alive(waiting):
            thread.join(max(limit - time.monotonic(), 0))
        left = [t.name for t in _alive(waiting)]
        with self._lock:
            self._joined = True
            self._registered_threads = set()
        self.raise_requested_exception()
        if left and not ignore_live_threads:
            names = " ".join(left)
            raise WorkerError(f"Coordinator stopped with threads still running: {names}")


def _alive(threads: Sequence[threading.Thread]) -> list[threading.Thread]:
    return [t for t in threads if t.is_alive()]


class LooperThread(threading.Thread):
    """A thread that does something again and again until its coordinator stops.

    Args:
        coord: stops it, and learns of its exception.
        timer_interval_secs: the time from one start to the next; none to do it back to back.
        target: what it does; by default, `run_loop`.
        args: the arguments of `target`.
        kwargs: its keyword arguments.

    Raises:
        ArgumentError: `coord` is no coordinator, or there are arguments without a target.
    """

    def __init__(
        self, coord: Coordinator, timer_interval_secs: float | None,
        target: Callable[..., Any] | None = None, args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(coord, Coordinator):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError.here(f"LooperThread: expected a Coordinator, got {coord!r}")
        if target is None and (args or kwargs):
            text = "'args' and 'kwargs' require that you also pass 'target'"
            raise ArgumentError.here(f"LooperThread: {text}")
        super().__init__(daemon=True)
        self._coord = coord
        self._interval = timer_interval_secs
        self._work = None if target is None else (target, tuple(args or ()), dict(kwargs or {}))
        coord.register_thread(self)

    @staticmethod
    def loop(
        coord: Coordinator, timer_interval_secs: float | None, target: Callable[..., Any],
        args: Sequence[Any] | None = None, kwargs: Mapping[str, Any] | None = None,
    ) -> LooperThread:  # fmt: skip
        """A started thread; same arguments."""
        looper = LooperThread(coord, timer_interval_secs, target, args, kwargs)
        looper.start()
        return looper

    def run(self) -> None:
        """Work until the coordinator stops."""
        with self._coord.stop_on_exception():
            self.start_loop()
            due = time.monotonic()
            while not self._coord.wait_for_stop(max(due - time.monotonic(), 0)):
                due += self._interval or 0
                self.run_loop()
            self.stop_loop()

    def start_loop(self) -> None:
        """Called when the thread starts."""

    def stop_loop(self) -> None:
        """Called when the coordinator has stopped."""

    def run_loop(self) -> None:
        """Called each time."""
        if self._work is not None:
            target, args, kwargs = self._work
            target(*args, **kwargs)

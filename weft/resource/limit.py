"""Limits of time: a run that takes longer is given up."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from weft.errors import DeadlineError
from weft.resource.base import Cancellation

_local = threading.local()


class TimeLimit(Cancellation):
    """Is cancelled after some seconds.

    Args:
        seconds: from now; 0: never.
        parent: is cancelled with it.
    """

    def __init__(self, seconds: float, parent: Cancellation | None = None) -> None:
        super().__init__(parent)
        self._until = time.monotonic() + seconds
        self._seconds = seconds
        self._timer = threading.Timer(seconds, self._expire)
        self._timer.daemon = True
        if seconds:
            self._timer.start()

    def _expire(self) -> None:
        self.cancel(self.late())

    def late(self) -> DeadlineError:
        """The error of what took longer."""
        return DeadlineError(f"the run took longer than its limit of {self._seconds:g} s")

    @property
    def left(self) -> float:
        """Seconds that are left; 0 if there is no limit."""
        return max(0.0, self._until - time.monotonic())

    def close(self) -> None:
        """Stop counting."""
        super().close()
        self._timer.cancel()


def current() -> TimeLimit | None:
    """The limit of what this thread runs."""
    return getattr(_local, "limit", None)


@contextlib.contextmanager
def time_limit(
    seconds: float, parent: Cancellation | None = None
) -> Iterator[TimeLimit | None]:  # fmt: skip
    """Limit what this thread runs inside; 0 seconds are no limit.

    Args:
        seconds: from now.
        parent: ends it as well.

    >>> with time_limit(1.0) as limit:
    ...     print(current() is limit)
    True
    >>> current() is None
    True
    """
    before = current()
    if not seconds and parent is None:
        yield before
        return
    limit = TimeLimit(seconds, parent)
    with limit:
        _local.limit = limit
        try:
            yield limit
        finally:
            _local.limit = before


@contextlib.contextmanager
def limited(give_up: Callable[[BaseException], None]) -> Iterator[None]:
    """Has a function called with the error when this thread's limit, if any, has passed."""
    limit = current()
    if limit is None:
        yield
        return
    withdraw = limit.add(give_up)
    try:
        yield
    finally:
        withdraw()

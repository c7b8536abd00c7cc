"""Waits for what other threads and processes do, as long as the busiest machine may need."""

import sys
import threading
import time
from collections.abc import Callable

LIMIT = 120.0  # seconds, after which something hangs


def eventually(condition: Callable[[], object], limit: float = LIMIT) -> None:
    """Waits until a condition holds.

    Raises:
        AssertionError: it does not within `limit` seconds.
    """
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, f"not within {limit:g} s"
        time.sleep(0.002)


def waits(thread: threading.Thread) -> bool:
    """Whether a thread waits for a condition or an event."""
    frame = sys._current_frames().get(thread.ident or 0)  # pyright: ignore[reportPrivateUsage]
    return frame is not None and frame.f_code is threading.Condition.wait.__code__

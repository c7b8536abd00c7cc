"""Threads for work that may wait: as many as wait at the same time, reused."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final

IDLE_SECONDS: Final = 10.0
"""How long an unused thread stays."""

Work = Callable[[], object]


class Pool:
    """Runs functions on threads of its own; each at once, however many others wait.

    Args:
        name: of the threads.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._ready = threading.Condition(threading.Lock())
        self._works: deque[Work] = deque()
        self._idle = 0
        self._threads: set[threading.Thread] = set()
        self._stopped = False

    def start(self, function: Callable[..., object], *args: Any) -> None:
        """Run a function soon; what it raises is the function's own concern."""
        with self._ready:
            self._works.append(lambda: function(*args))
            if self._idle >= len(self._works):
                self._ready.notify()
                return
            thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
            self._threads.add(thread)
        thread.start()

    def stop(self, seconds: float = 5.0) -> None:
        """Let the threads end, and wait for them; those that wait must have been woken before."""
        with self._ready:
            self._stopped = True
            self._ready.notify_all()
            threads = list(self._threads)
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(seconds)

    def _serve(self) -> None:
        while (work := self._next()) is not None:
            work()
            del work  # what it holds is free while the thread waits
        self._threads.discard(threading.current_thread())

    def _next(self) -> Work | None:
        with self._ready:
            self._idle += 1
            try:
                self._ready.wait_for(lambda: self._works or self._stopped, IDLE_SECONDS)
                return self._works.popleft() if self._works else None
            finally:
                self._idle -= 1

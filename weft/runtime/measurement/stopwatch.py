"""How long the stages of one piece of work took."""

from __future__ import annotations

import time


class Stopwatch:
    """Laps by name: `print(watch)` shows the milliseconds of each, and in total.

    >>> watch = Stopwatch()
    >>> watch.lap("planning")
    >>> str(watch).endswith("ms (planning 0)")
    True
    """

    def __init__(self) -> None:
        self._last = time.perf_counter()
        self.seconds: dict[str, float] = {}

    def go_on(self) -> None:
        """Leaves out the time since the last lap."""
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        """Names the time since the last lap."""
        now = time.perf_counter()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self._last
        self._last = now

    def __str__(self) -> str:
        stages = ", ".join([f"{name} {s * 1e3:.0f}" for name, s in self.seconds.items()])
        return f"{sum(self.seconds.values()) * 1e3:.0f} ms ({stages})"

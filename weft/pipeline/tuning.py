"""AUTOTUNE: thread counts and buffer sizes chosen by measurement."""

from __future__ import annotations

import time
from typing import Final

from weft import config
from weft.pipeline.worker import Workers

WINDOW: Final = 0.1  # seconds in which elements are counted
LEAST: Final = 8  # elements in a window, so that no single element decides
BETTER: Final = 1.1  # the speedup that one more thread must bring
CHEAP: Final = 5e-5  # seconds: handing a call to a thread costs about 2e-5
MOST_PER_PROCESSOR: Final = 4  # threads that wait for files need no processor


class ThreadTuner:
    """Starts without threads and adds one as long as the throughput increases."""

    def __init__(self, workers: Workers) -> None:
        self.workers = workers
        self.most = MOST_PER_PROCESSOR * int(config.get("threads"))
        self.decided = False
        self.best = 0.0
        self._begin()

    def _begin(self) -> None:
        self.elements = 0
        self.since = time.perf_counter()

    def note(self) -> None:
        """Count a consumed element; at the end of a window, decide."""
        self.elements += 1
        if self.decided or self.elements < LEAST:
            return
        seconds = time.perf_counter() - self.since
        if seconds >= WINDOW or (self.workers.count == 0 and self.elements >= 10 * LEAST):
            self._decide(self.elements / seconds)
            self._begin()

    def _decide(self, rate: float) -> None:
        count = self.workers.count
        if count == 0 and 1 / rate < CHEAP:
            self.decided = True
        elif count > 1 and rate < self.best * BETTER:
            self.workers.resize(count - 1)
            self.decided = True
        else:
            self.best = max(self.best, rate)
            self.decided = count + 1 > self.most
            self.workers.resize(min(count + 1, self.most))

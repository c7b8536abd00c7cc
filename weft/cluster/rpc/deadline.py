"""Functions that one thread calls at set times."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable
from typing import Final

IDLE_SECONDS: Final = 5.0
"""How long the thread stays without alarms."""


class Alarm:
    """A function that is called at a time of `time.monotonic`, unless it is cancelled before."""

    __slots__ = ("_work",)

    def __init__(self, work: Callable[[], object]) -> None:
        self._work: Callable[[], object] | None = work

    @staticmethod
    def at(moment: float, work: Callable[[], object]) -> Alarm:
        """Have a function called; it must not block."""
        alarm = Alarm(work)
        _clock.add(moment, alarm)
        return alarm

    def cancel(self) -> None:
        """Do not call it."""
        self._work = None

    def ring(self) -> None:
        """Call it, once."""
        work, self._work = self._work, None
        if work is not None:
            work()


class _Clock:
    """All alarms of this process, and the thread that rings them while there are any."""

    def __init__(self) -> None:
        self._alarms: list[tuple[float, int, Alarm]] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._runs = False

    def add(self, moment: float, alarm: Alarm) -> None:
        with self._changed:
            heapq.heappush(self._alarms, (moment, next(self._numbers), alarm))
            if not self._runs:
                self._runs = True
                threading.Thread(target=self._run, name="weft-rpc-alarms", daemon=True).start()
            elif self._alarms[0][2] is alarm:
                self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._alarms and not self._changed.wait(IDLE_SECONDS) and not self._alarms:
                    self._runs = False
                    return
                wait = self._alarms[0][0] - time.monotonic() if self._alarms else 0.0
                if wait > 0:
                    self._changed.wait(wait)
                due = self._due()
            for alarm in due:
                alarm.ring()

    def _due(self) -> list[Alarm]:
        now, due = time.monotonic(), list[Alarm]()
        while self._alarms and self._alarms[0][0] <= now:
            due.append(heapq.heappop(self._alarms)[2])
        return due


_clock = _Clock()

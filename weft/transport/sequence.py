"""The collective calls of programs, compared between ranks when a program first runs.

Each rank numbers the calls of each group as its programs run. When a program runs for the first
time, the rank announces the digests of its calls and their numbers. A rank with other calls at
these numbers reports the difference. No rank waits for that; later steps exchange nothing.
"""

from __future__ import annotations

import threading
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

EPOCH: Final = 1 << 40
"""More calls than a job makes."""
HISTORY: Final = 256
"""The number of remembered runs for each group, for ranks that are late."""


class Planned(NamedTuple):
    """A collective call of a program.

    Attributes:
        what: the call, with its type, shape and options.
        line: the user's line, as ` (created at train.py:31)`.
    """

    what: str
    line: str

    @property
    def digest(self) -> int:
        """A hash of `what`."""
        return zlib.crc32(self.what.encode())

    def __str__(self) -> str:
        return f"{self.what}{self.line}"


class CallSequence:
    """The collective calls of one program, by the number of their group."""

    def __init__(self, calls: Sequence[tuple[int, Planned]]) -> None:
        groups = dict.fromkeys([group for group, _ in calls])
        self.of: Final = {g: tuple([c for group, c in calls if group == g]) for g in groups}
        self.digests: Final = {g: [c.digest for c in calls] for g, calls in self.of.items()}
        self.told_in: object = None  # the monitor that has announced it


class Run(NamedTuple):
    """A run of a program: its calls in a group, numbered from `start`."""

    start: int
    calls: Sequence[Planned]
    digests: Sequence[int]


class Announced(NamedTuple):
    """The calls that another rank has announced."""

    rank: int
    group: int
    start: int
    digests: Sequence[int]


class Difference(NamedTuple):
    """A call that differs between two ranks."""

    rank: int
    group: int
    number: int
    call: Planned  # this rank's


class CallLog:
    """The calls of the programs that this rank has run recently."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[int, deque[Run]] = {}
        self._next: dict[int, int] = {}
        self._announced: list[Announced] = []
        self._first = 1

    def enter(self, sequence: CallSequence) -> dict[int, int]:
        """Record a run of a program; returns the number of its first call, by group."""
        starts: dict[int, int] = {}
        with self._lock:
            for group, calls in sequence.of.items():
                starts[group] = start = self._next.get(group, self._first)
                self._next[group] = start + len(calls)
                runs = self._runs.setdefault(group, deque(maxlen=HISTORY))
                runs.append(Run(start, calls, sequence.digests[group]))
        return starts

    def begin_again(self) -> None:
        """Continue at a new number, as all ranks do after running different programs."""
        with self._lock:
            self._first += EPOCH
            self._next.clear()
            self._runs.clear()

    def announced(self, announcement: Announced) -> None:
        """Record another rank's announcement."""
        self._announced.append(announcement)

    def differences(self) -> list[Difference]:
        """The first call of each announcement that differs from this rank's."""
        different: list[Difference] = []
        kept: list[Announced] = []
        with self._lock:
            for each in self._announced:
                difference = self._compared(each)
                if difference is not None:
                    different.append(difference)
                elif self._next.get(each.group, self._first) < each.start + len(each.digests):
                    kept.append(each)  # this rank has not made this call yet
        self._announced = kept
        return different

    def _compared(self, told: Announced) -> Difference | None:
        for run in self._runs.get(told.group, ()):
            for number in _common(run, told):
                mine = run.digests[number - run.start]
                if mine != told.digests[number - told.start]:
                    call = run.calls[number - run.start]
                    return Difference(told.rank, told.group, number, call)
        return None

    def call(self, group: int, number: int) -> Planned | None:
        """This rank's call with that number, if remembered."""
        with self._lock:
            for run in self._runs.get(group, ()):
                if run.start <= number < run.start + len(run.calls):
                    return run.calls[number - run.start]
        return None


def _common(run: Run, told: Announced) -> Iterator[int]:
    """The numbers for which both ranks have calls."""
    first = max(run.start, told.start)
    yield from range(first, min(run.start + len(run.digests), told.start + len(told.digests)))

"""Counters of a rank's communication, and spans of its calls if asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Span(NamedTuple):
    """A call, with its begin and end in nanoseconds of this host's monotonic clock."""

    what: str
    begin: int
    end: int


@dataclass
class Tally:
    """Counts since the job began, or since `reset`.

    Attributes:
        calls: the number of collective calls.
        sent: bytes sent.
        seconds: time in calls, except small calls that did not wait.
        waited: seconds spent waiting for each other rank; waits for several ranks overlap.
        spans: the calls one by one, while a list is set.
    """

    calls: int = 0
    sent: int = 0
    seconds: float = 0.0
    waited: dict[int, float] = field(default_factory=dict[int, float])
    spans: list[Span] | None = None

    def wait_for(self, ranks: Sequence[int], seconds: float) -> None:
        """Count a wait."""
        for rank in ranks:
            self.waited[rank] = self.waited.get(rank, 0.0) + seconds

    def reset(self) -> None:
        """Count from zero."""
        self.calls = self.sent = 0
        self.seconds = 0.0
        self.waited.clear()

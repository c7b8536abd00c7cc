"""What communication costs a rank: counted while it happens, its calls as spans when asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Span(NamedTuple):
    """A call, with its begin and end in nanoseconds of the clock of this host."""

    what: str
    begin: int
    end: int


@dataclass
class Tally:
    """Counts since the job began, or since `reset`.

    Attributes:
        calls: made together with others.
        sent: bytes.
        seconds: within calls, without those of a few bytes that had not to wait.
        waited: for how many seconds each other rank was waited for. Several may be waited for at
            the same time.
        spans: the calls one by one, while somebody wants to know.
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

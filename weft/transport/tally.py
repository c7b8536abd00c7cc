"""Counters of a rank's communication, and spans of its calls if asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from weft.transport.native import CALLS, SENT, TRACED


class Span(NamedTuple):
    """A call, with its begin and end in nanoseconds of this host's monotonic clock."""

    what: str
    begin: int
    end: int


class Tally:
    """Counts since the job began, or since `reset`.

    Args:
        words: in which native code counts its own calls.

    Attributes:
        calls: made together with others, but for those of native code.
        sent: bytes, in these.
        seconds: within calls, without those of a few bytes that had not to wait.
        waited: for how many seconds each other rank was waited for. Several may be waited for at
            the same time.
    """

    def __init__(self, words: Any) -> None:
        self.calls = self.sent = 0
        self.seconds = 0.0
        self.waited: dict[int, float] = {}
        self._words = words
        self._spans: list[Span] | None = None

    @property
    def spans(self) -> list[Span] | None:
        """The calls one by one, while somebody wants to know."""
        return self._spans

    @spans.setter
    def spans(self, spans: list[Span] | None) -> None:
        self._spans = spans
        self._words[TRACED] = int(spans is not None)

    @contextlib.contextmanager
    def from_python(self) -> Iterator[None]:
        """Inside, Python makes the calls of programs that native code would make."""
        before = self._words[TRACED]
        self._words[TRACED] = 1
        try:
            yield
        finally:
            self._words[TRACED] = before

    @property
    def all_calls(self) -> int:
        """Made together with others."""
        return self.calls + self._words[CALLS]

    @property
    def all_sent(self) -> int:
        """Bytes sent to others."""
        return self.sent + self._words[SENT]

    def wait_for(self, ranks: Sequence[int], seconds: float) -> None:
        """Count a wait."""
        for rank in ranks:
            self.waited[rank] = self.waited.get(rank, 0.0) + seconds

    def reset(self) -> None:
        """Count from zero."""
        self.calls = self.sent = self._words[CALLS] = self._words[SENT] = 0
        self.seconds = 0.0
        self.waited.clear()

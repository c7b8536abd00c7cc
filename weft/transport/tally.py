"""Counters of a rank's communication, and optionally the spans of its calls."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from weft.transport.native import CALLS, SENT, TRACED


class Span(NamedTuple):
    """A call, with its start and end in nanoseconds of this host's monotonic clock."""

    what: str
    begin: int
    end: int


class Tally:
    """Counters since the job started, or since `reset`.

    Args:
        words: hold native code's own counters.

    Attributes:
        calls: the number of collectives that Python made; see `all_calls`.
        sent: the bytes that these sent.
        seconds: the time in collectives, without small ones that did not wait.
        waited: the seconds of waiting for each other rank. A call may wait for several at a time.
    """

    def __init__(self, words: Any) -> None:
        self.calls = self.sent = 0
        self.seconds = 0.0
        self.waited: dict[int, float] = {}
        self._words = words
        self._spans: list[Span] | None = None

    @property
    def spans(self) -> list[Span] | None:
        """The calls one by one, while they are recorded; else `None`."""
        return self._spans

    @spans.setter
    def spans(self, spans: list[Span] | None) -> None:
        self._spans = spans
        self._words[TRACED] = int(spans is not None)

    @contextlib.contextmanager
    def from_python(self) -> Iterator[None]:
        """Context in which Python makes the calls that native code would make."""
        before = self._words[TRACED]
        self._words[TRACED] = 1
        try:
            yield
        finally:
            self._words[TRACED] = before

    @property
    def all_calls(self) -> int:
        """The number of collectives, including those of native code."""
        return self.calls + self._words[CALLS]

    @property
    def all_sent(self) -> int:
        """The bytes sent to other ranks, including those of native code."""
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

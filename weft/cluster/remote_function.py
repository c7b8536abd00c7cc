"""A part of a graph that a master in another process has."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from weft.cluster import timeline
from weft.cluster.copies import fresh
from weft.cluster.rpc import Message
from weft.errors import CompileError
from weft.resource.limit import current

Array = np.ndarray[Any, Any]


class Text(str):
    """A text that shows as it is."""

    __slots__ = ()
    __repr__ = str.__str__


class RemoteFunction:
    """Runs a function of a master; like `weft.runtime.engine.Function`.

    Args:
        send: sends a message to the master, and gives the answer.
        head: names the session and the function.
    """

    def __init__(self, send: Callable[[Message], Message], head: dict[str, Any]) -> None:
        self._send, self._head = send, head

    def __call__(self, arrays: Sequence[Any], state: Any) -> list[Any]:
        """Run it once; the variables are those of the tasks."""
        del state
        limit, traced = current(), timeline.current()
        head = self._head if limit is None else {**self._head, "seconds": limit.left}
        if traced is not None:
            return self._traced(traced, {**head, "trace": True}, arrays)
        return list(map(fresh, self._send(Message("client step", head, arrays)).arrays))

    def _traced(
        self, traced: timeline.Timeline, head: dict[str, Any], arrays: Sequence[Array]
    ) -> list[Any]:
        """Runs a step whose timeline the master records."""
        sent = time.perf_counter_ns()
        answer = self._send(Message("client step", head, arrays))
        shift = timeline.shift_of(answer.head["now"], sent, time.perf_counter_ns())
        traced.add_told(answer.head["timeline"], shift)
        return list(map(fresh, answer.arrays))

    def explain(self, arrays: Sequence[Array], state: Any) -> Text:
        """Where its nodes are and why, and what its stages exchange."""
        del state
        return self._text("explain", arrays)

    def profile(self, arrays: Sequence[Array], state: Any, runs: int = 5) -> Text:
        """Where the time of a step goes, if it is on one device of the master's task."""
        del state
        return self._text("profile", arrays, runs)

    def _text(self, what: str, arrays: Sequence[Array], runs: int = 1) -> Text:
        head = {**self._head, "what": what, "runs": runs}
        return Text(self._send(Message("client describe", head, arrays)).head["text"])

    def program(self, arrays: Sequence[Array], state: Any) -> NoReturn:
        """A program of another process cannot be shown here.

        Raises:
            CompileError: always; the message says what can.
        """
        raise CompileError(
            "program: it is in the process of the session's server; session.explain(fetches) "
            "shows what the server makes of a run"
        )

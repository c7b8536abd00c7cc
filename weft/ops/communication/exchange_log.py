"""Exchanges that are made once even if their step is computed several times.

A rank may compute a step twice, to compare a program with the interpreter, when the others do not;
it must not exchange twice. The first time it logs the exchanges' results, and then it reuses them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from weft.ops.declaration import Array
from weft.transport import session
from weft.transport.native import CALLS

Exchange = Callable[..., tuple[Array, ...]]


class ExchangeLog:
    """The arguments and results of a step's exchanges, in order.

    Attributes:
        given: copies of the arguments, from the last time that the step was computed.
    """

    def __init__(self) -> None:
        self.given: list[Array] = []
        self._results: list[tuple[Array, ...]] = []
        self._next = 0

    @contextlib.contextmanager
    def once(self) -> Iterator[None]:
        """Context of a computation of the step: only exchanges not yet in the log are made."""
        self.given, self._next = [], 0
        joined = session.current()
        _logs.append(self)
        try:
            with (
                contextlib.nullcontext() if joined is None else joined.transport.tally.from_python()
            ):
                yield
        finally:
            _logs.remove(self)

    def result(
        self, exchange: Exchange, xs: Sequence[Array], attrs: dict[str, Any], compared: bool
    ) -> tuple[Array, ...]:
        """The result of an exchange, from the log if it is there."""
        if compared:
            self.given += [np.array(x) for x in xs]
        if self._next == len(self._results):
            found = exchange(*xs, **attrs)
            self._results.append(tuple([np.array(y) for y in found]))
            self._next += 1
            return found
        self._next += 1
        return tuple([y.copy() for y in self._results[self._next - 1]])


_logs: Final[list[ExchangeLog]] = []
"""The log of the step that the computing thread runs, if it has one."""


class _Made:
    """The number of exchanges that Python has made or started in this process."""

    count = 0


def exchanges_made() -> int:
    """The number of exchanges made or started; it never decreases within a step."""
    joined = session.current()
    return _Made.count + (0 if joined is None else int(joined.transport.words[CALLS]))


def logged(exchange: Exchange, compared: bool) -> Exchange:
    """An exchange that uses the log while there is one.

    Args:
        compared: whether its arguments are compared as results of the step.
    """

    def call(*xs: Array, **attrs: Any) -> tuple[Array, ...]:
        _Made.count += 1
        return _logs[-1].result(exchange, xs, attrs, compared) if _logs else exchange(*xs, **attrs)

    return call


def logged_into(
    into: Callable[..., None], exchange: Exchange, compared: bool
) -> Callable[..., None]:  # fmt: skip
    """Like `logged`, for an exchange that writes its results into given memory."""

    def call(xs: Sequence[Array], outs: Sequence[Array], **attrs: Any) -> None:
        _Made.count += 1
        if not _logs:
            into(xs, outs, **attrs)
            return
        found = _logs[-1].result(exchange, xs, attrs, compared)
        for out, y in zip(outs, found, strict=True):
            out[...] = y

    return call

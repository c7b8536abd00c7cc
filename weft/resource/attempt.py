"""Calls that wait their turn: each is tried in the order of arrival, whenever something changes."""

from __future__ import annotations

import enum
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from weft.errors import CancelledError, WeftError
from weft.ops.resource.spec import ResourceSpec
from weft.resource.base import Cancellation, Resource


class Progress(enum.Enum):
    """What a try has brought."""

    NONE = 0
    SOME = 1
    COMPLETE = 2


class Attempt:
    """A call that may have to wait.

    Args:
        what: for messages, such as `Dequeue`.
        run: tries it, with the resource's lock held; sets `result` when it is complete.
        undo: gives back what it took, when it is cancelled before it is complete.
    """

    __slots__ = ("done", "error", "event", "result", "run", "undo", "what")

    def __init__(
        self, what: str, run: Callable[[], Progress], undo: Callable[[], None] | None = None
    ) -> None:
        self.what, self.run, self.undo = what, run, undo
        self.done = False
        self.result: list[Any] = []
        self.error: BaseException | None = None
        self.event: threading.Event | None = None

    def finish(self, error: BaseException | None = None) -> None:
        """Wake the caller, with the result or this error."""
        self.done, self.error = True, error
        if self.event is not None:
            self.event.set()

    def cancel(self, cause: BaseException | None = None) -> None:
        """Give back what was taken and wake the caller with an error."""
        if self.undo is not None:
            self.undo()
        if cause is not None and not isinstance(cause, CancelledError):
            self.finish(cause)  # a limit of time
            return
        error = CancelledError(f"{self.what} operation was cancelled")
        error.__cause__ = cause
        self.finish(error)

    def outcome(self) -> list[Any]:
        """The result of a finished attempt; raises its error."""
        if self.error is not None:
            raise self.error
        return self.result


A = TypeVar("A", bound=Attempt)


class Line(Generic[A]):
    """Attempts in the order of arrival: only the first is tried."""

    def __init__(self) -> None:
        self._attempts: deque[A] = deque()

    def __len__(self) -> int:
        return len(self._attempts)

    def add(self, attempt: A) -> None:
        """Put an attempt at the end."""
        self._attempts.append(attempt)

    def flush(self) -> bool:
        """Try attempts until one has to wait; returns whether anything changed."""
        changed = False
        while self._attempts:
            attempt = self._attempts[0]
            if not attempt.done:
                progress = _tried(attempt)
                if progress is not Progress.COMPLETE:
                    return changed or progress is Progress.SOME
                changed = True
            self._attempts.popleft()
        return changed

    def cancel_all(self) -> None:
        """Wake all callers with an error; the newest first, so that what they took goes back."""
        while self._attempts:
            attempt = self._attempts.pop()
            if not attempt.done:
                attempt.cancel()


def _tried(attempt: Attempt) -> Progress:
    try:
        progress = attempt.run()
    except WeftError as error:
        attempt.finish(error)
        return Progress.COMPLETE
    if progress is Progress.COMPLETE:
        attempt.finish()
    return progress


class Blocking(Resource):
    """A resource whose callers wait in lines."""

    def __init__(self, spec: ResourceSpec, lines: int) -> None:
        super().__init__(spec)
        self.lock = threading.Lock()
        self.lines = [Line[Attempt]() for _ in range(lines)]

    def attempt(self, line: Line[Attempt], attempt: Attempt, cancel: Cancellation) -> list[Any]:
        """Try in turn; wait until it is complete."""
        with self.lock:
            line.add(attempt)
            self.flush()
            if attempt.done:
                return attempt.outcome()
            event = attempt.event = threading.Event()
        withdraw = cancel.add(lambda error: self._give_up(attempt, error))
        try:
            event.wait()
        finally:
            withdraw()
            self._give_up(attempt, None)  # Ctrl-C while it waited
        self._check_wanted(attempt, cancel)
        return attempt.outcome()

    def _check_wanted(self, attempt: Attempt, cancel: Cancellation) -> None:
        """Give back what was taken for a caller who gave up at that moment."""
        if not cancel.cancelled or attempt.undo is None or attempt.error is not None:
            return
        with self.lock:
            attempt.undo()
            self.flush()
        cancel.check()

    def flush(self) -> None:
        """Try what waits until nothing changes; the caller holds the lock."""
        while any([line.flush() for line in self.lines]):
            pass

    def _give_up(self, attempt: Attempt, cause: BaseException | None) -> None:
        with self.lock:
            if not attempt.done:
                attempt.cancel(cause)
                self.flush()

    def close(self) -> None:
        """End the waits of all callers."""
        with self.lock:
            for line in self.lines:
                line.cancel_all()

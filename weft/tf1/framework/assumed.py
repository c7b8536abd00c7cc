"""What a function of Python returns whose branches and loops depend on tensors, without values.

TensorFlow rewrites such functions (AutoGraph). Here they run in Python where their tensors have
values; what has to be known before, the types and shapes of results, follows from calls in which
each truth value is assumed.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

MOST_TRUTHS: Final = 16
"""So many truth values are tried both ways: the types of results rarely depend on more."""
MOST_ASKED: Final = 1_000
"""A loop that asks more often would never end: `while not x > 1`, which is assumed to be false."""


class EndlessLoopError(Exception):
    """A loop does not end with assumed truth values."""


class _Local(threading.local):
    truths: Truths | None = None


class Truths:
    """Assumed truth values of tensors: false, and one of them true.

    Args:
        true: the number of the one that is true, in the order in which they are asked for; -1 for
            none.
    """

    def __init__(self, true: int) -> None:
        self.true, self.asked = true, 0

    def next(self) -> bool:
        """The next truth value.

        Raises:
            EndlessLoopError: too many were asked for.
        """
        self.asked += 1
        if self.asked > MOST_ASKED:
            raise EndlessLoopError
        return self.asked - 1 == self.true


_local: Final = _Local()


def truths() -> Truths | None:
    """The truth values that are assumed now, if any are."""
    return _local.truths


def outcomes(call: Callable[[], Any]) -> list[Any]:
    """What a function returns, for as many assumptions; none where it raises for each."""
    found = list[Any]()

    def tried(true: int) -> int:
        with _assuming(Truths(true)) as assumed, contextlib.suppress(Exception):
            found.append(call())
        return assumed.asked

    for true in range(min(tried(-1), MOST_TRUTHS)):
        tried(true)
    return found


@contextlib.contextmanager
def _assuming(assumed: Truths) -> Iterator[Truths]:
    before, _local.truths = _local.truths, assumed
    try:
        yield assumed
    finally:
        _local.truths = before

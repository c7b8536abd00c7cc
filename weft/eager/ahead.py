"""Running ahead: a caller goes on once what it looks at is done, and the team does the rest.

That must not be seen. Tensors' memory is read through `array_of`, which waits for the rest where it
has to; every program and interpretation waits first. What others can see is copied where the rest
reads it; where the rest would write to it, the caller stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from weft.eager.lazy import Lazy, Number, flush
from weft.eager.storage import copied, is_lent
from weft.runtime.executable import Departure, Executable
from weft.runtime.flight import land

Array = np.ndarray[Any, Any]
MOST_COPIED: Final = 1 << 20  # bytes: 0.1 ms, half of the shortest rest that is worth it


def synchronize() -> None:
    """Compute what this thread has recorded, and wait until all of it is done, to read a clock.

    >>> import time
    >>> import weft as wf
    >>> x, start = wf.ones(100, 100), time.perf_counter()
    >>> y = x @ x
    >>> wf.synchronize()
    >>> time.perf_counter() > start
    True
    """
    flush()
    land()


class Ahead:
    """Where callers may leave a program.

    Args:
        keys: of the outputs.
        homes: for each output the position of the leaf whose memory it takes over, or -1.
    """

    def __init__(self, executable: Executable, keys: Sequence[str], homes: Sequence[int]) -> None:
        self._executable = executable
        self._keys = keys
        self._homes = [home for home in homes if home >= 0]
        self._known: dict[int, Departure | None] = {}

    def plan(
        self, wanted: int, lazies: Sequence[Lazy], leaves: Sequence[Array]
    ) -> tuple[Departure | None, Sequence[Array]]:
        """Where to leave, if at all, and the leaves that the program is to work on.

        Args:
            wanted: the position of the output that someone looks at; -1 if nobody does.
        """
        found = self._departure(wanted)
        if found is None or any([is_lent(leaves[home]) for home in self._homes]):
            return None, leaves
        count = len(leaves)  # feeds behind those are nobody else's
        seen = [i for i in found.feeds if i < count and _may_change(lazies[i], leaves[i])]
        if sum([leaves[i].nbytes for i in seen]) > MOST_COPIED:
            return None, leaves
        safe = list(leaves)
        for i in seen:
            if not is_lent(leaves[i]):
                land()  # it may show memory that a program was left with
            safe[i] = copied(leaves[i], leaves[i].dtype)
        return found, safe

    def _departure(self, wanted: int) -> Departure | None:
        if wanted not in self._known:
            keys = () if wanted < 0 else (self._keys[wanted],)
            self._known[wanted] = self._executable.departure(keys)
        return self._known[wanted]


def _may_change(lazy: Lazy, array: Array) -> bool:
    """Whether someone may write to the memory of a leaf without our knowing."""
    if type(lazy) is Number:
        return False
    return is_lent(array) or (lazy.owner is None and lazy.record is None)

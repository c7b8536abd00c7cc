"""Asynchronous execution: a caller gets the value that it reads, worker threads compute the rest.

The caller sees no difference. `array_of` waits for the rest of a program if the array depends on
it, and the next program waits, too. A program stays synchronous if the rest would read or write
memory that NumPy or others can see; most of such memory was copied when it was recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.eager.record.memory.memory_pool import is_lent
from weft.eager.record.memory.snapshot import Borrowed
from weft.eager.record.pending.lazy import Lazy
from weft.eager.record.run.interruption import retry
from weft.runtime.executable import Departure, Executable
from weft.runtime.flight import land

Array = np.ndarray[Any, Any]


def synchronize() -> None:
    """Compute what this thread has recorded and wait until it is done; call it before reading a
    clock.

    What Ctrl-C has interrupted is computed, too.

    >>> import time
    >>> import weft as wf
    >>> x, start = wf.ones(100, 100), time.perf_counter()
    >>> y = x @ x
    >>> wf.synchronize()
    >>> time.perf_counter() > start
    True
    """
    retry()
    land()


class Ahead:
    """Decides at which point of a program its caller may return.

    Args:
        keys: names of the outputs.
        homes: for each output the position of the leaf whose memory it takes over, or -1.
    """

    def __init__(self, executable: Executable, keys: Sequence[str], homes: Sequence[int]) -> None:
        self._executable = executable
        self._keys = keys
        self._homes = [home for home in homes if home >= 0]
        self._known: dict[int, Departure | None] = {}

    def departure(
        self, wanted: int, lazies: Sequence[Lazy], leaves: Sequence[Array]
    ) -> Departure | None:
        """The point at which the caller of a program on these leaves may return; `None` if at its
        end.

        Args:
            wanted: the position of the output that is read; -1 if none is.
        """
        found = self._departure(wanted)
        if found is None or any([is_lent(leaves[home]) for home in self._homes]):
            return None
        count = len(lazies)  # later feeds belong to the program alone
        seen = any([i < count and type(lazies[i]) is Borrowed for i in found.feeds])
        return None if seen else found

    def _departure(self, wanted: int) -> Departure | None:
        if wanted not in self._known:
            keys = () if wanted < 0 else (self._keys[wanted],)
            self._known[wanted] = self._executable.departure(keys)
        return self._known[wanted]

"""Native functions on parts of an array, by a few threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from weft import config

MOST_THREADS: Final = 8
WORTHWHILE: Final = 1 << 15
"""Rows from which on a second thread pays: it takes 100 us to start, 32,000 rows take 1 ms."""


def threads_for(count: int) -> int:
    """How many threads work on so many rows; at most `WEFT_THREADS`."""
    return max(1, min(MOST_THREADS, int(config.get("threads")), count // WORTHWHILE))


def in_parts(work: Callable[[int, int], None], count: int, threads: int) -> None:
    """Calls `work(begin, end)` on as many even parts of `count` as there are threads.

    Raises:
        BaseException: the first error of the work.
    """
    bounds = [count * i // threads for i in range(threads + 1)]
    if threads == 1:
        work(0, count)
        return
    errors: list[BaseException] = []

    def part(number: int) -> None:
        try:
            work(bounds[number], bounds[number + 1])
        except BaseException as error:
            errors.append(error)

    others = [
        threading.Thread(target=part, args=(number,), name="weft-table")
        for number in range(1, threads)
    ]
    for thread in others:
        thread.start()
    part(0)
    for thread in others:
        thread.join()
    if errors:
        raise errors[0]

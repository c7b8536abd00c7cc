"""When host nodes ran, for those who look at a run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple


class PhaseTime(NamedTuple):
    """One run of a host node.

    Attributes:
        node: its name.
        device: that it asks for, if any.
        waits: whether it may wait.
        begin: nanoseconds of `time.perf_counter_ns`.
        end: the same.
    """

    node: str
    device: str
    waits: bool
    begin: int
    end: int


watchers: Final[list[Callable[[PhaseTime], object]]] = []


@contextlib.contextmanager
def watch_phases() -> Iterator[list[PhaseTime]]:
    """Records every run of a host node, in any thread, into the list.

    >>> with watch_phases() as times:
    ...     print(times)
    []
    """
    times: list[PhaseTime] = []
    tell = times.append
    watchers.append(tell)
    try:
        yield times
    finally:
        watchers.remove(tell)

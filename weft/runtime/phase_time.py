"""When host nodes ran, for those who look at a run."""

from __future__ import annotations

from typing import Final, NamedTuple

from weft.host.watchers import Watchers


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


watchers: Final = Watchers[PhaseTime]()
"""Of every run of a host node."""

"""The timeline: when each tensor's collectives waited and ran, for chrome://tracing or Perfetto."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from weft.errors import ArgumentError
from weft.transport import session
from weft.transport.group import Group
from weft.transport.tally import Span

VARIABLE: Final = "HOROVOD_TIMELINE"
"""Environment variable: the file that rank 0 writes from `init` to `shutdown`."""


class Timeline:
    """Collectives by tensor, as events of Chrome's trace format; rank 0 writes them.

    Each tensor is a row. NEGOTIATE_... is the time that this rank waited for others; ALLREDUCE
    and so on is the rest of the call.
    """

    def __init__(self, path: str | os.PathLike[str], writes: bool) -> None:
        self._path = Path(path)
        self._writes = writes
        self._events: list[dict[str, Any]] = []
        self._rows: dict[str, int] = {}
        self._begin = time.monotonic_ns()

    def add(self, activity: str, names: Sequence[str], span: Span, waited: float) -> None:
        """Record a call.

        Args:
            kind: for example `ALLREDUCE`.
            waited: seconds of the span spent waiting for other ranks.
        """
        there = min(span.begin + int(waited * 1e9), span.end)
        parts = [(f"NEGOTIATE_{activity}", span.begin, there), (activity, there, span.end)]
        for name in names:
            row = self._row(name)
            for title, begin, end in parts:
                self._events.append(
                    {"name": title, "ph": "X", "pid": row, "tid": 0, "ts": self._us(begin),
                     "dur": (end - begin) / 1e3, "args": {"call": span.what}}
                )  # fmt: skip

    def _us(self, ns: int) -> float:
        return (ns - self._begin) / 1e3

    def _row(self, name: str) -> int:
        number = self._rows.get(name)
        if number is None:
            number = self._rows[name] = len(self._rows) + 1
            for title, args in (
                ("process_name", {"name": name}), ("process_sort_index", {"sort_index": number}),
            ):  # fmt: skip
                self._events.append({"name": title, "ph": "M", "pid": number, "args": args})
        return number

    def write(self) -> None:
        """Write the file atomically."""
        if not self._writes:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        part = self._path.with_name(self._path.name + ".part")
        part.write_text("[\n" + ",\n".join(map(json.dumps, self._events)) + "\n]\n")
        part.replace(self._path)


_active: Final[list[Timeline]] = []


def start_timeline(file_path: str | os.PathLike[str], mark_cycles: bool = False) -> None:
    """Record all collectives from now on; rank 0 writes them to a file at the end.

    Args:
        file_path: the file.
        mark_cycles: ignored: there are no cycles.

    Raises:
        ArgumentError: a timeline is being recorded already.
        DistributedError: `hvd.init` was not called.
    """
    world = session.world()
    if _active:
        raise ArgumentError.here("start_timeline: there is a timeline already")
    _active.append(Timeline(file_path, world.index == 0))


def stop_timeline() -> None:
    """Write the timeline, if one is being recorded."""
    if _active:
        _active.pop().write()


def start_if_asked() -> None:
    """Start the timeline that the environment variable HOROVOD_TIMELINE names."""
    path = os.environ.get(VARIABLE)
    if path and not _active:
        start_timeline(path)


def is_active() -> bool:
    """Whether a timeline is being recorded."""
    return bool(_active)


def noted(activity: str, names: Sequence[str], group: Group, work: Callable[[], Any]) -> Any:
    """Make a call and record it in the timeline, if there is one."""
    if not _active:
        return work()
    tally = group.transport.tally
    before, begin = dict(tally.waited), time.monotonic_ns()
    result = work()
    waited = max([s - before.get(r, 0.0) for r, s in tally.waited.items()], default=0.0)
    if _active:
        _active[0].add(activity, names, Span(activity.lower(), begin, time.monotonic_ns()), waited)
    return result


def note_buckets(
    names: Sequence[str], counts: Sequence[int], spans: Sequence[Span], waited: float
) -> None:
    """Record the calls of buckets under the names of their tensors.

    Args:
        counts: the number of tensors in each bucket.
        waited: seconds spent waiting for other ranks before the first call.
    """
    if not _active:
        return
    begin = 0
    for i, count in enumerate(counts):
        if i < len(spans):
            _active[0].add("ALLREDUCE", names[begin : begin + count], spans[i], waited)
        begin, waited = begin + count, 0.0


__all__ = ["start_timeline", "stop_timeline"]

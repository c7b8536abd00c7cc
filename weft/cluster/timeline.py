"""What each device did during a step, over all tasks, for chrome://tracing and Perfetto.

>>> timeline = Timeline()
>>> timeline.add("/job:ps/task:0/device:CPU:0", "compute", "stage 0", 1000, 3000)
>>> timeline.chrome_trace()["traceEvents"][-1]
{'ph': 'X', 'name': 'stage 0', 'cat': 'compute', 'pid': 0, 'tid': 0, 'ts': 0.0, 'dur': 2.0}
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from weft.cluster.route import task_of
from weft.passes.partition import Partition

_local = threading.local()


class Interval(NamedTuple):
    """What a device did for some time.

    Attributes:
        device: its full name.
        kind: `wait`, `compute`, `send` or `recv`.
        what: which stage or value.
        begin: nanoseconds of `time.perf_counter_ns` of the process that keeps the timeline.
        end: the same.
    """

    device: str
    kind: str
    what: str
    begin: int
    end: int


StageRow = Sequence[int]
"""The number of a stage, and when it began, had its values, was done, and had sent its results."""


class Timeline:
    """The intervals of one or several steps."""

    def __init__(self) -> None:
        self.intervals: list[Interval] = []

    def add(self, device: str, kind: str, what: str, begin: int, end: int) -> None:
        """An interval, if it has a length."""
        if end > begin:
            self.intervals.append(Interval(device, kind, what, begin, end))

    def add_stages(self, partition: Partition, rows: Iterable[StageRow]) -> None:
        """The stages of a step that have run, by their times in one clock."""
        found = {row[0]: row for row in rows}
        makers = {v: i for i, stage in enumerate(partition.stages) for v in stage.outputs}
        for number, begin, ready, done, end in found.values():
            device, name = partition.stages[number].device, f"stage {number}"
            self.add(device, "wait", name, begin, ready)
            self.add(device, "compute", name, ready, done)
            self.add(device, "send", name, done, end)
            givers = {makers[v] for v in partition.stages[number].inputs if v in makers}
            for giver in sorted(givers & found.keys()):
                other = partition.stages[giver].device
                if task_of(other) != task_of(device):
                    what = f"stage {giver} of {other}"
                    self.add(device, "recv", what, max(found[giver][3], begin), ready)

    def add_told(self, told: Iterable[Sequence[Any]], shift: int) -> None:
        """The intervals that another process has told, by its clock."""
        for device, kind, what, begin, end in told:
            self.add(device, kind, what, begin + shift, end + shift)

    def chrome_trace(self) -> dict[str, Any]:
        """The events as Chrome's tracing shows them: a process a task, a row a device."""
        first = min([i.begin for i in self.intervals], default=0)
        tasks = {t: n for n, t in enumerate(sorted({task_of(i.device) for i in self.intervals}))}
        devices = {d: n for n, d in enumerate(sorted({i.device for i in self.intervals}))}
        names = [_name("process_name", pid, 0, task) for task, pid in tasks.items()]
        for device, tid in devices.items():
            names.append(_name("thread_name", tasks[task_of(device)], tid, device))
        events = [
            {
                "ph": "X", "name": i.what, "cat": i.kind, "pid": tasks[task_of(i.device)],
                "tid": devices[i.device], "ts": (i.begin - first) / 1e3,
                "dur": (i.end - i.begin) / 1e3,
            }
            for i in sorted(self.intervals, key=lambda i: i.begin)
        ]  # fmt: skip
        return {"traceEvents": [*names, *events], "displayTimeUnit": "ns"}

    def generate_chrome_trace_format(self) -> str:
        """The same as text, under TensorFlow's name for it."""
        return json.dumps(self.chrome_trace())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the text to a file."""
        Path(path).write_text(self.generate_chrome_trace_format())


def _name(kind: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}


def current() -> Timeline | None:
    """The timeline that records what this thread runs."""
    return getattr(_local, "timeline", None)


@contextlib.contextmanager
def recorded() -> Iterator[Timeline]:
    """Records the steps over several tasks that this thread runs inside.

    >>> with recorded() as timeline:
    ...     print(current() is timeline)
    True
    """
    before, timeline = current(), Timeline()
    _local.timeline = timeline
    try:
        yield timeline
    finally:
        _local.timeline = before


def shift_of(now: int, sent: int, received: int) -> int:
    """What must be added to times of another process, whose clock was at `now` between a message
    and its answer; 0 if it has the same clock, as on one host.

    >>> shift_of(105, 100, 110), shift_of(905, 100, 110)
    (0, -800)
    """
    return 0 if sent <= now <= received else (sent + received) // 2 - now


def shifted(head: Mapping[str, Any], sent: int, received: int | None = None) -> list[StageRow]:
    """The times of stages in an answer, by the clock of this process."""
    if "now" not in head:
        return []
    shift = shift_of(head["now"], sent, received or time.perf_counter_ns())
    return [[row[0], *[moment + shift for moment in row[1:]]] for row in head["times"]]

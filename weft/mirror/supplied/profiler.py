"""`torch.profiler`: times of named blocks, of steps, and of the kernels that ran meanwhile.

A block ends when what it has recorded is computed, so its time includes that.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import json
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final, Self

from weft.eager.record.run.async_execution import synchronize
from weft.mirror.supplied.same import no
from weft.runtime.measurement.kernel_run import kernel_runs
from weft.runtime.measurement.profile import Run, trace_events, watchers

__all__ = [
    "EventList", "FunctionEventAvg", "ProfilerAction", "ProfilerActivity", "is_available",
    "profile", "record_function", "schedule", "supported_activities", "tensorboard_trace_handler",
]  # fmt: skip

_open: Final[list[profile]] = []
"""The profiles that record now."""


class ProfilerActivity(Enum):
    """What is watched: the CPU, as there are no other devices."""

    CPU = 0
    CUDA = 2
    XPU = 3
    MTIA = 4


class ProfilerAction(Enum):
    """What a profile does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


@dataclass(frozen=True)
class FunctionEventAvg:
    """The calls of one name; times are in microseconds."""

    key: str
    count: int
    cpu_time_total: float

    @property
    def cpu_time(self) -> float:
        """The mean time of a call."""
        return self.cpu_time_total / self.count


class EventList(list[FunctionEventAvg]):
    """Times by name."""

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """The times as text, the longest first; other options have no effect."""
        del options
        order = (lambda e: -e.count) if sort_by == "count" else (lambda e: -e.cpu_time_total)
        rows = sorted(self, key=order)[: row_limit if row_limit >= 0 else None]
        head = f"{'Name':<48} {'CPU total':>12} {'CPU time avg':>12} {'# of Calls':>10}"
        lines = [f"{e.key[:48]:<48} {e.cpu_time_total:>10.1f}us {e.cpu_time:>10.1f}us {e.count:>10}"
                 for e in rows]  # fmt: skip
        return "\n".join([head, "-" * len(head), *lines])

    def total_average(self) -> FunctionEventAvg:
        """All of them together."""
        total = sum([event.cpu_time_total for event in self])
        return FunctionEventAvg("Total", sum([event.count for event in self]), total)


class record_function(contextlib.ContextDecorator):
    """A named block; with `@`, a named function."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args

    def __enter__(self) -> Self:
        if _open:
            synchronize()
        self._start = time.perf_counter_ns()
        return self

    def __exit__(self, *error: object) -> None:
        if _open:
            synchronize()
            for each in _open:
                each.spans.append((self.name, self._start, time.perf_counter_ns()))


class profile:
    """Times of what runs inside; `step()` ends a step.

    Args:
        activities: what is watched; there is the CPU only.
        schedule: what is done in each step, given its number; by default all are recorded.
        on_trace_ready: called with the profile when recorded steps end.
        options: what more is to be recorded; it is not.
    """

    def __init__(
        self, activities: Any = None, *, schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None, **options: Any,
    ) -> None:  # fmt: skip
        del activities, options
        self._schedule, self._ready = schedule, on_trace_ready
        self.step_num = 0
        self.spans: list[tuple[str, int, int]] = []
        self._runs: Sequence[Run] = ()
        self._watching = contextlib.ExitStack()
        self._step: record_function | None = None

    @property
    def current_action(self) -> ProfilerAction:
        """What is done in this step."""
        given = self._schedule
        return ProfilerAction.RECORD if given is None else given(self.step_num)

    def start(self) -> None:
        """Begin."""
        if self.current_action.value < ProfilerAction.RECORD.value:
            return
        if self not in _open:
            synchronize()
            self.spans = []
            self._runs = self._watching.enter_context(watchers.watch())
            _open.append(self)
        if self._schedule is not None:
            self._step = record_function(f"ProfilerStep#{self.step_num}").__enter__()

    def stop(self) -> None:
        """End."""
        if self in _open:
            self._end_step()
            self._end()

    def step(self) -> None:
        """End a step, and begin the next one."""
        action = self.current_action
        self._end_step()
        if action is ProfilerAction.RECORD_AND_SAVE and self in _open:
            self._end()
        self.step_num += 1
        self.start()

    def _end_step(self) -> None:
        if self._step is not None:
            self._step.__exit__()
        self._step = None

    def _end(self) -> None:
        synchronize()
        _open.remove(self)
        self._watching.close()
        if self._ready is not None:
            self._ready(self)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def events(self) -> EventList:
        """The times by name: of blocks, and of kernels of compiled programs."""
        found: dict[str, tuple[int, float]] = {}
        for name, start, end in self._times():
            count, total = found.get(name, (0, 0.0))
            found[name] = count + 1, total + (end - start) / 1e3
        return EventList([FunctionEventAvg(name, *each) for name, each in found.items()])

    def _times(self) -> Iterator[tuple[str, int, int]]:
        yield from self.spans
        for run in kernel_runs(self._runs):
            yield run.kernel, run.start, run.end

    def key_averages(self, *options: Any, **more: Any) -> EventList:
        """`events`; they are not told apart by shapes."""
        del options, more
        return self.events()

    def export_chrome_trace(self, path: str) -> None:
        """Write a trace for Chrome's and Perfetto's viewers."""
        text = json.dumps(trace_events(self._runs, "profile", spans=self.spans)).encode()
        Path(path).write_bytes(gzip.compress(text) if str(path).endswith(".gz") else text)


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, **options: Any
) -> Callable[[int], ProfilerAction]:
    """What to do in each step: nothing for `wait`, `warmup`, record `active`; again `repeat` times.

    >>> plan = schedule(wait=1, warmup=0, active=1)
    >>> [plan(i).name for i in range(3)]
    ['NONE', 'RECORD_AND_SAVE', 'NONE']
    """
    del options
    whole = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        number, place = divmod(step - skip_first, whole)
        if step < skip_first or (repeat and number >= repeat) or place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < whole - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """A function for `on_trace_ready` that writes traces into a folder."""
    worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"

    def handler(found: profile) -> None:
        Path(dir_name).mkdir(parents=True, exist_ok=True)
        end = "pt.trace.json.gz" if use_gzip else "pt.trace.json"
        found.export_chrome_trace(f"{dir_name}/{worker}.{time.time_ns()}.{end}")

    return handler


def supported_activities() -> set[ProfilerActivity]:
    """What can be watched."""
    return {ProfilerActivity.CPU}


is_available = functools.partial(no)

"""Profiling of pipelines: the time of each stage, whichever thread runs it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from weft.pipeline.stage import Array, Context, Cursor, Stage, State, View


@dataclass
class Row:
    """The measurements of a stage."""

    name: str
    depth: int
    threads: int
    calls: int = 0  # elements, or gathered batches
    seconds: float = 0.0  # excluding its inputs


@dataclass
class Profile:
    """The stages of a pipeline from last to source, with their seconds."""

    rows: list[Row]
    elements: int
    seconds: float

    @property
    def slowest(self) -> Row:
        """The bottleneck: the stage with the most seconds per thread."""
        return max(self.rows, key=lambda row: row.seconds / row.threads)

    def __str__(self) -> str:
        rate = self.elements / self.seconds if self.seconds else 0.0
        lines = [f"{self.elements} elements in {self.seconds:.3f} s, {rate:.0f} a second"]
        for row in self.rows:
            mark = "  <- slowest" if row is self.slowest else ""
            name = f"{'  ' * row.depth}{row.name}"
            lines.append(f"{name:44} {row.calls:8} calls {row.seconds * 1e3:10.2f} ms{mark}")
        return "\n".join(lines)


@dataclass
class _Clock:
    """Measures stages; a stage's time excludes the stages that it calls."""

    rows: dict[int, Row] = field(default_factory=dict)
    local: threading.local = field(default_factory=threading.local)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def view(self, stage: Any, view: Any) -> Any:
        return _TimedView(view, self, self.rows[id(stage)]) if id(stage) in self.rows else view

    def cursor(self, stage: Any, cursor: Any) -> Any:
        if id(stage) not in self.rows:
            return cursor
        row = self.rows[id(stage)]
        if stage.ahead:
            if hasattr(cursor, "function"):
                cursor.function = self.timed(cursor.function, row)
            row = Row("", 0, 1)  # waiting for threads is not work
        return _TimedCursor(cursor, self, row)

    def timed(self, function: Callable[..., Any], row: Row) -> Callable[..., Any]:
        return lambda *args: self.measure(row, function, *args)

    def measure(self, row: Row, function: Callable[..., Any], *args: Any) -> Any:
        """The call's result; its time is added to the row."""
        outer: float = getattr(self.local, "inner", 0.0)
        self.local.inner = 0.0
        start = time.perf_counter()
        try:
            return function(*args)
        finally:
            seconds = time.perf_counter() - start
            with self.lock:
                row.calls += 1
                row.seconds += seconds - self.local.inner
            self.local.inner = outer + seconds


class _TimedView(View):
    def __init__(self, view: View, clock: _Clock, row: Row) -> None:
        self.inner, self.clock, self.row = view, clock, row
        self.size = view.size

    def item(self, index: int) -> Any:
        return self.clock.measure(self.row, self.inner.item, index)

    def gather(self, indices: Array) -> Any:
        return self.clock.measure(self.row, self.inner.gather, indices)


class _TimedCursor(Cursor):
    def __init__(self, cursor: Cursor, clock: _Clock, row: Row) -> None:
        self.inner, self.clock, self.row = cursor, clock, row

    def __next__(self) -> Any:
        return self.clock.measure(self.row, next, self.inner)

    def gather(self, count: int) -> tuple[Any, int]:
        return self.clock.measure(self.row, self.inner.gather, count)

    def packed(self, count: int) -> tuple[Any, int]:
        return self.clock.measure(self.row, self.inner.packed, count)

    def next_packed(self) -> Any:
        return self.clock.measure(self.row, self.inner.next_packed)

    def left(self) -> int:
        return self.inner.left()

    def state(self) -> State:
        return self.inner.state()

    def restore(self, state: State) -> None:
        self.inner.restore(state)

    def close(self) -> None:
        self.inner.close()


def measured(stage: Stage, context: Context, count: int) -> Profile:
    """Read `count` elements, or all, and report each stage's time."""
    clock = _Clock()
    _add_rows(stage, 0, clock.rows)
    cursor = stage.open(context._replace(timing=clock))
    start, elements = time.perf_counter(), 0
    for _ in cursor:
        elements += 1
        if elements == count:
            break
    seconds = time.perf_counter() - start
    cursor.close()
    return Profile(list(clock.rows.values()), elements, seconds)


def _add_rows(stage: Stage, depth: int, rows: dict[int, Row]) -> None:
    threads: int | None = getattr(stage, "threads", None)
    rows[id(stage)] = Row(stage.name, depth, max(threads or 1, 1))
    for source in stage.inputs:
        _add_rows(source, depth + 1, rows)

"""Where the time and the memory of a step went, as readable tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.host.watchers import Watchers
from weft.ir.shape import known
from weft.passes.blueprint import Blueprint
from weft.passes.control.record import Steer
from weft.passes.group import Group
from weft.passes.memory import Plan
from weft.runtime.execution.call import Call
from weft.runtime.execution.program import Program, Recording

if TYPE_CHECKING:
    from weft.runtime.measurement.peak import Peak

COMMUNICATION_TRACK: Final = 1000  # after those of threads
TIER_TRACK: Final = 1001
SHADES: Final = " .:-=+*#%@"


@dataclass(frozen=True)
class Row:
    """One call of a step, or several calls of the same name."""

    name: str
    calls: int
    ns: float  # from the start of the first unit to the end of the last, summed over calls
    busy_ns: float  # summed over threads
    flops: float
    bytes: float
    work: str = ""  # what it computes, if calls are distinguished by it

    @property
    def gflops(self) -> float:
        """Billions of floating-point operations per second."""
        return self.flops / self.ns if self.ns else 0.0

    @property
    def gbytes(self) -> float:
        """Billions of bytes per second."""
        return self.bytes / self.ns if self.ns else 0.0

    def share(self, peak: Peak) -> float:
        """The fraction that it reached of the machine's peak, of arithmetic or of bandwidth.

        Above 1 if operands stay in cache, or if fewer multiplications are needed than counted.
        """
        return max(self.gflops / peak.gflops, self.gbytes / peak.gbytes)


@dataclass(frozen=True)
class Profile:
    """The calls of a step by time, and the step's own time."""

    rows: tuple[Row, ...]
    total_ns: float

    def __str__(self) -> str:
        return self.table()

    def table(self, limit: int = 30) -> str:
        """The most expensive calls, one per line."""
        busy = sum(row.busy_ns for row in self.rows) or 1.0
        shown, rest = self.rows[:limit], self.rows[limit:]
        lines = [
            f"{row.calls:6} {row.ns / 1e6:9.3f} {row.busy_ns / busy:7.1%} "
            f"{_rate(row.gflops)} {_rate(row.gbytes)}  {row.name}"
            for row in shown
        ]
        if rest:
            ns, share = sum(r.ns for r in rest), sum(r.busy_ns for r in rest) / busy
            calls = sum(r.calls for r in rest)
            lines.append(f"{calls:6} {ns / 1e6:9.3f} {share:7.1%} {'':17}  {len(rest)} more")
        head = " calls        ms   share  GFLOP/s     GB/s  kernel"
        return "\n".join([f"step: {self.total_ns / 1e6:.3f} ms", head, *lines])


def _rate(value: float) -> str:
    return f"{value:8.1f}" if value else " " * 8


def measure(program: Program, runs: int = 3) -> Profile:
    """Runs the step `runs` times with clocks, and keeps the fastest time of every call.

    These are real steps: variables change, and `program.lock` must be held.
    """
    return summarize(program, [program.record() for _ in range(max(1, runs))])


def summarize(program: Program, recordings: Sequence[Recording]) -> Profile:
    """The fastest time of every call among recorded steps."""
    times = np.array([_times(r, len(program.calls)) for r in recordings]).min(axis=0)
    timed = zip(program.calls, [""] * len(times), times, strict=True)
    return Profile(_merged(timed), float(min(r.total_ns for r in recordings)))


def _merged(timed: Iterable[tuple[Call, str, Any]]) -> tuple[Row, ...]:
    """A row for each name and work, the most expensive first."""
    rows: dict[tuple[str, str], Row] = {}
    for call, work, (ns, busy, times) in timed:
        if isinstance(call.function, Steer):
            continue
        key = call.name, work
        old = rows.get(key, Row(call.name, 0, 0.0, 0.0, 0.0, 0.0))
        rows[key] = Row(
            call.name, old.calls + int(times), old.ns + float(ns), old.busy_ns + float(busy),
            old.flops + call.flops * times, old.bytes + call.traffic * times, work,
        )  # fmt: skip
    return tuple(sorted(rows.values(), key=lambda row: -row.busy_ns))


def _ran(recording: Recording) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The records of units that ran, and the call of each."""
    ran = recording.records["start"] > 0
    return recording.records[ran], recording.owner[ran]


def _times(recording: Recording, calls: int) -> np.ndarray:
    """Per call: nanoseconds from first start to last end, and summed over units; number of runs.

    For a call in a loop, the first is the time of the busiest thread.
    """
    times = np.zeros((calls, 3))
    records, owner = _ran(recording)
    first = np.full(calls, np.iinfo(np.int64).max)
    last = np.zeros(calls, np.int64)
    np.minimum.at(first, owner, records["start"])
    np.maximum.at(last, owner, records["end"])
    np.add.at(times[:, 1], owner, records["busy"])
    np.maximum.at(times[:, 2], owner, records["times"])
    seen = last > 0
    times[seen, 0] = last[seen] - first[seen]
    threads = np.zeros((calls, int(records["thread"].max(initial=0)) + 1))
    np.add.at(threads, (owner, records["thread"]), records["busy"])
    again = times[:, 2] > 1
    times[again, 0] = threads.max(axis=1)[again]
    return times


# -- steps of several programs


@dataclass(frozen=True, eq=False)
class Run:
    """One run of one program with clocks; `works` tells what each call computes."""

    program: Program
    works: Sequence[str]
    recording: Recording
    blueprint: Blueprint


watchers: Final = Watchers[Run]()
"""Of every run of a compiled program; while there is one, programs run with clocks."""


def work_of(group: Group | None, most: int = 3) -> str:
    """The shapes that a kernel reads and writes; of many, the largest ones."""
    if group is None:
        return ""
    sides = [
        _shapes([known(v.shape) for v in side], most) for side in (group.inputs, group.outputs)
    ]
    return " -> ".join(sides)


def _shapes(shapes: Sequence[tuple[int, ...]], most: int) -> str:
    shown = sorted(shapes, key=lambda shape: -int(np.prod(shape)))[:most]
    texts = ["x".join(map(str, shape)) or "1" for shape in shapes if shape in shown][:most]
    left = len(shapes) - len(texts)
    return " ".join([*texts, f"+{left}"] if left else texts)


def profile_steps(steps: Sequence[Sequence[Run]], total_ns: float) -> Profile:
    """The fastest time of every call among steps that ran the same programs in the same order.

    Args:
        steps: the runs of each step; those that differ from the last one are ignored.
        total_ns: time of a step.
    """
    last = [run.program for run in steps[-1]]
    alike = [step for step in steps if [run.program for run in step] == last]
    timed: list[tuple[Call, str, Any]] = []
    for same in zip(*alike, strict=True):
        calls = same[0].program.calls
        times = np.array([_times(run.recording, len(calls)) for run in same]).min(axis=0)
        timed += zip(calls, same[0].works, times, strict=True)
    return Profile(_merged(timed), total_ns)


def covered_ns(runs: Sequence[Run]) -> float:
    """How long any kernel was running."""
    spans = np.concatenate(
        [np.stack([r["start"], r["end"]], 1) for run in runs for r in [_ran(run.recording)[0]]]
    )
    spans = spans[np.argsort(spans[:, 0])]
    ends = np.maximum.accumulate(spans[:, 1])
    begins = np.maximum(spans[1:, 0], ends[:-1])
    return float(spans[0, 1] - spans[0, 0] + np.maximum(spans[1:, 1] - begins, 0).sum())


def trace_events(
    runs: Sequence[Run], name: str, process: int = 0, spans: Iterable[tuple[str, int, int]] = (),
    tiers: Iterable[tuple[str, int, int]] = (),
) -> dict[str, Any]:  # fmt: skip
    """A trace for Chrome's and Perfetto's viewers: a track per thread, and one of programs.

    Args:
        process: distinguishes the tracks from those of other processes in the same trace.
        spans: communication, as name, begin and end, on a track of its own.
        tiers: what computes recorded calls, likewise.
    """
    tracks = {"programs": 0}
    events: list[dict[str, Any]] = []
    for number, run in enumerate(runs):
        records, owner = _ran(run.recording)
        if not len(records):
            continue
        first, last = int(records["start"].min()), int(records["end"].max())
        events.append(_event(f"program {number}", 0, first, last, {}))
        for record, index in zip(records, owner.tolist(), strict=True):
            call, thread = run.program.calls[index], int(record["thread"])
            track = tracks.setdefault(f"thread {thread}", 1 + thread)
            about = {"work": run.works[index], "call": index, "flops": call.flops,
                     "bytes": call.traffic}  # fmt: skip
            events.append(_event(call.name, track, int(record["start"]), int(record["end"]), about))
    others = ("communication", COMMUNICATION_TRACK, spans), ("tiers", TIER_TRACK, tiers)
    for title, number, seen in others:
        for text, begin, end in seen:
            track = tracks.setdefault(title, number)
            events.append(_event(text, track, begin, end, {}))
    names = [
        {"ph": "M", "name": "thread_name", "tid": track, "args": {"name": text}}
        for text, track in tracks.items()
    ]
    head = {"ph": "M", "name": "process_name", "args": {"name": name}}
    found = [{"pid": process, **event} for event in (head, *names, *events)]
    return {"traceEvents": found, "displayTimeUnit": "ms"}


def _event(name: str, track: int, start: int, end: int, args: dict[str, Any]) -> dict[str, Any]:
    """A span, in microseconds."""
    return {"ph": "X", "name": name, "tid": track, "ts": start / 1e3,
            "dur": (end - start) / 1e3, "args": args}  # fmt: skip


# -- memory


def arena_map(
    plan: Plan, names: Mapping[int, str] | None = None, columns: int = 72, rows: int = 16
) -> str:
    """The arena as a text picture: addresses downwards, steps to the right, darker where fuller.

    Below it, the largest buffers with their live ranges in steps; `names` by buffer id.
    """
    steps = 1 + max((life.last for life in plan.lives.values()), default=0)
    width = min(columns, steps)
    fill = np.zeros((rows, width))
    scale = rows / max(plan.total, 1)
    guests = set(plan.hosts)
    for buffer, offset in plan.offsets.items():
        low, high = offset * scale, (offset + plan.sizes[buffer]) * scale
        life = plan.lives[buffer]
        left, right = life.first * width // steps, life.last * width // steps
        if buffer in guests:
            left += 1  # at its first step it shares the memory of the buffer that it reuses
        for row in range(int(low), min(rows, int(np.ceil(high)))):
            fill[row, left : right + 1] += min(high, row + 1) - max(low, row)
    shade = np.minimum((fill * (len(SHADES) - 1)).round().astype(int), len(SHADES) - 1)
    picture = ["|" + "".join(SHADES[level] for level in line) + "|" for line in shade]
    return "\n".join([str(plan), *picture, *_largest(plan, names or {})])


def _largest(plan: Plan, names: Mapping[int, str], limit: int = 8) -> Sequence[str]:
    order = sorted(plan.offsets, key=lambda b: -plan.sizes[b])[:limit]
    return [
        f"{plan.sizes[b]:>14,} B  steps {plan.lives[b].first}-{plan.lives[b].last}"
        f"  {names.get(b, f'buffer {b}')}"
        for b in order
    ]

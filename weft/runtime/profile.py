"""Where the time and the memory of a step went, as tables for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from weft.passes.memory import Plan
from weft.runtime.program import Program, Recording

SHADES: Final = " .:-=+*#%@"


@dataclass(frozen=True)
class Row:
    """One call, or several calls of the same name, of one step."""

    name: str
    calls: int
    ns: float  # from the start of the first unit to the end of the last, summed over calls
    busy_ns: float  # summed over threads
    flops: float
    bytes: float

    @property
    def gflops(self) -> float:
        """10^9 floating-point operations per second."""
        return self.flops / self.ns if self.ns else 0.0

    @property
    def gbytes(self) -> float:
        """10^9 bytes per second."""
        return self.bytes / self.ns if self.ns else 0.0


@dataclass(frozen=True)
class Profile:
    """The calls of a step by time, and the step's own time."""

    rows: tuple[Row, ...]
    total_ns: float

    def __str__(self) -> str:
        return self.table()

    def table(self, limit: int = 30) -> str:
        """The most expensive calls, one a line."""
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
    """Run the step `runs` times with clocks, and keep the fastest time of every call.

    These are real steps: variables change, and `program.lock` must be held.
    """
    return summarise(program, [program.record() for _ in range(max(1, runs))])


def summarise(program: Program, recordings: Sequence[Recording]) -> Profile:
    """The fastest time of every call among recorded steps."""
    times = np.array([_times(r, len(program.calls)) for r in recordings]).min(axis=0)
    rows: dict[str, Row] = {}
    for call, (ns, busy) in zip(program.calls, times, strict=True):
        old = rows.get(call.name, Row(call.name, 0, 0.0, 0.0, 0.0, 0.0))
        rows[call.name] = Row(
            call.name, old.calls + 1, old.ns + float(ns), old.busy_ns + float(busy),
            old.flops + call.flops, old.bytes + call.bytes,
        )  # fmt: skip
    ordered = sorted(rows.values(), key=lambda row: -row.busy_ns)
    return Profile(tuple(ordered), float(min(r.total_ns for r in recordings)))


def _times(recording: Recording, calls: int) -> np.ndarray:
    """Per call: nanoseconds from first start to last end, and summed over units."""
    times = np.zeros((calls, 2))
    ran = recording.records["start"] > 0
    records, owner = recording.records[ran], recording.owner[ran]
    first = np.full(calls, np.iinfo(np.int64).max)
    last = np.zeros(calls, np.int64)
    np.minimum.at(first, owner, records["start"])
    np.maximum.at(last, owner, records["end"])
    np.add.at(times[:, 1], owner, records["end"] - records["start"])
    seen = last > 0
    times[seen, 0] = last[seen] - first[seen]
    return times


def arena_map(
    plan: Plan, names: Mapping[int, str] | None = None, columns: int = 72, rows: int = 16
) -> str:
    """The arena as a picture: addresses downwards, steps to the right, darker where fuller.

    Below it, the largest buffers with the steps of their lives; `names` by buffer id.
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
            left += 1  # at its first step it shares its host's memory
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

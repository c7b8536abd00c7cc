"""Divides calls into units of work, and groups calls that may run concurrently."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from weft.codegen.driver import layout
from weft.passes.launch import Kernel
from weft.runtime.execution import driver
from weft.runtime.execution.call import Call, External, InArena, estimate_ns, iterations

UNIT_NS: Final = 500.0  # handing work to another core costs 100 to 200 ns
UNITS_PER_THREAD: Final = 8  # so that others can take over from a thread that is held up
LONG_NS: Final = 50_000.0  # of a unit: beyond it, all would wait for the last ones
WAKE_NS: Final = 10_000.0  # waking takes 3 us here and 10 to 30 there; the next step finds it awake
MAX_CALLS: Final = 256  # in a segment; conflict detection is quadratic in it


class Segmented(NamedTuple):
    """A program for the team: its units, its segments, and the call of each unit."""

    units: np.ndarray[Any, Any]
    segments: np.ndarray[Any, Any]
    owner: np.ndarray[Any, Any]


class _Range(NamedTuple):
    space: int  # 0 the arena, 1 + i external i
    low: int
    high: int


class _Open:
    """The segment under construction: what its calls read and write."""

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.reads: dict[int, list[_Range]] = {}  # by memory space
        self.writes: dict[int, list[_Range]] = {}

    def admits(self, reads: Sequence[_Range], writes: Sequence[_Range]) -> bool:
        """Whether a call with these reads and writes may run concurrently with the others."""
        return len(self.calls) < MAX_CALLS and not (
            _meet(reads, self.writes) or _meet(writes, self.writes) or _meet(writes, self.reads)
        )

    def add(self, call: int, reads: Sequence[_Range], writes: Sequence[_Range]) -> None:
        """Adds a call."""
        self.calls.append(call)
        for ranges, known in ((reads, self.reads), (writes, self.writes)):
            for each in ranges:
                known.setdefault(each.space, []).append(each)


def _meet(some: Sequence[_Range], others: dict[int, list[_Range]]) -> bool:
    return any(a.low < b.high and b.low < a.high for a in some for b in others.get(a.space, ()))


def group(calls: Sequence[Call]) -> list[list[int]]:
    """Runs of independent calls, in order."""
    groups: list[list[int]] = []
    current = _Open()
    for number, call in enumerate(calls):
        reads, writes = _ranges(call)
        alone = _is_alone(call)
        if current.calls and (
            alone
            or call.guard
            or _is_alone(calls[current.calls[-1]])
            or not current.admits(reads, writes)
        ):
            groups.append(current.calls)
            current = _Open()
        current.add(number, reads, writes)
    if current.calls:
        groups.append(current.calls)
    return groups


def _is_alone(call: Call) -> bool:
    """Whether it is a call into Python, or a control-flow record."""
    return not isinstance(call.function, Kernel)


def _ranges(call: Call) -> tuple[list[_Range], list[_Range]]:
    reads: list[_Range] = []
    writes: list[_Range] = []
    for position, argument in enumerate(call.args):
        # An in-place call reads what it writes: any conflict shows through the write.
        kind = writes if position in call.writes else reads
        if isinstance(argument, InArena):
            kind.append(_Range(0, argument.offset, argument.offset + argument.size))
        elif isinstance(argument, External):
            kind.append(_Range(1 + argument.index, 0, 1))
    return reads, writes


def parts_of(
    chunks: np.ndarray[Any, Any], costs: np.ndarray[Any, Any], threads: int
) -> np.ndarray[Any, Any]:
    """How many units calls that take `costs` nanoseconds are divided into."""
    most = np.maximum(costs / LONG_NS, UNITS_PER_THREAD * threads)
    parts = np.minimum(np.minimum(most, costs / UNIT_NS), chunks)
    return np.maximum(parts, 1).astype(np.int64)


def cut(calls: Sequence[Call], serial: np.ndarray[Any, Any], threads: int) -> Segmented:
    """Units and segments for a team of `threads`; `serial` has the serial form of each call."""
    costs = [estimate_ns(call) for call in calls]
    chunks = serial["end"].astype(np.int64)
    parts = parts_of(chunks, np.array(costs), threads)
    firsts = np.cumsum(parts) - parts  # of each call's units
    owner = np.repeat(np.arange(len(calls)), parts)
    part = np.arange(len(owner)) - firsts[owner]
    units = serial[owner]
    units["begin"] = chunks[owner] * part // parts[owner]
    units["end"] = chunks[owner] * (part + 1) // parts[owner]
    units["flags"] &= layout.HOST | layout.CONTROL
    units["position"] = len(calls) + np.arange(len(owner))
    groups = group(calls)
    starts = [members[0] for members in groups]  # calls keep their order
    table = np.zeros(len(groups), driver.SEGMENT)
    if groups:
        table["first"] = firsts[starts]
        table["units"] = np.add.reduceat(parts, starts)
        table["flags"] = np.bitwise_or.reduceat(serial["flags"], starts)
        work = np.add.reduceat(np.array(costs) * np.array(iterations(calls)), starts)
        shared = table["units"] > 1
        left = np.cumsum((work * shared)[::-1])[::-1]
        table["flags"][shared & (left >= WAKE_NS)] |= layout.WAKE
    return Segmented(units, table, owner)

"""A flat list of launches, run by one foreign call."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from weft.codegen.driver import layout
from weft.library.variant import Start
from weft.runtime.execution import driver
from weft.runtime.execution.program import HOLD_NS, Fault
from weft.runtime.execution.segment import WAKE_NS, parts_of
from weft.runtime.execution.team import TEAM, TURN
from weft.runtime.flight import land
from weft.runtime.memory.address import address

PARALLEL_NS: Final = 50_000.0
"""Shorter lists run on one thread: dividing them takes about as long as it saves."""


class _Row(NamedTuple):
    """A launch of the list."""

    start: Start
    first: int  # its first slot


class LaunchList:
    """Launches in order. Each sees what those before it have written."""

    def __init__(self, threads: int) -> None:
        self.threads: Final = threads
        self._slots: list[int] = []
        self._rows: list[_Row] = []
        self._error = np.zeros(8, np.int64)
        self._error_address = address(self._error)

    @property
    def ns(self) -> float:
        """Estimated nanoseconds of all launches on one thread."""
        return sum([row.start.ns for row in self._rows])

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, start: Start, places: Sequence[int]) -> bool:
        """Appends a launch, unless it has nothing to do; whether it was appended.

        Args:
            places: the addresses of its buffers, by their numbers.
        """
        if start.chunks <= 0:
            return False
        slots, first = self._slots, len(self._slots)
        slots += start.slots
        for slot, buffer in start.buffers:
            slots[first + slot] = places[buffer]
        if start.error >= 0:
            slots[first + start.error] = self._error_address
            slots[first + start.error + 1] = len(self._rows)
        self._rows.append(_Row(start, first))
        return True

    def run(self) -> Fault | None:
        """Runs the launches, whose kernels are linked; returns a fault that one reported.

        Its tag is the number of the launch.
        """
        land()
        ns = self.ns
        parallel = self.threads > 1 and ns >= PARALLEL_NS
        slots = np.array(self._slots, np.int64)
        base = address(slots)
        calls = np.array(
            [
                (r.start.code.address, base + 8 * r.first, r.start.chunks << 32, 0)
                for r in self._rows
            ],
            np.int64,
        ).reshape(-1, 4)
        table = layout.Program()
        table.calls, table.call_count = address(calls), len(calls)
        table.slots, table.error, table.team = base, self._error_address, TEAM.address
        table.threads, table.leave = self.threads, layout.BEYOND
        entries = driver.entries()
        enter = entries.run_locked if ns < HOLD_NS and not parallel else entries.run
        held: Any = None
        if parallel:
            held = self._segmented(calls, table)
            TEAM.grow(self.threads)
            if TURN.team is not TEAM or TURN.left:
                TURN.note(TEAM)
        pointer = ctypes.addressof(table)
        state = enter(pointer)
        if state == layout.UNDERSTAFFED:  # a forked child has no threads
            TEAM.grow(self.threads)
            state = enter(pointer)
        del held
        return Fault(*self._error[1:4].tolist()) if state else None

    def _segmented(self, calls: np.ndarray[Any, Any], table: layout.Program) -> object:
        """Fills the table's units and segments: one segment a launch."""
        rows = self._rows
        parts = np.array([parts_of(r.start.chunks, r.start.ns, self.threads) for r in rows])
        firsts = np.cumsum(parts) - parts
        owner = np.repeat(np.arange(len(rows)), parts)
        part = np.arange(len(owner)) - firsts[owner]
        units = calls[owner].view(driver.UNIT).reshape(-1)
        chunks = units["end"].astype(np.int64)
        units["begin"] = chunks * part // parts[owner]
        units["end"] = chunks * (part + 1) // parts[owner]
        segments = np.zeros(len(rows), driver.SEGMENT)
        segments["first"], segments["units"] = firsts, parts
        shared = parts > 1
        work = np.array([r.start.ns for r in rows]) * shared
        left = np.cumsum(work[::-1])[::-1]
        segments["flags"][shared & (left >= WAKE_NS)] |= layout.WAKE
        table.units, table.segments = address(units), address(segments)
        table.segment_count = len(segments)
        return units, segments

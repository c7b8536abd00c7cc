"""Where lists of kernels are stitched and run, in memory that is used again."""

from __future__ import annotations

import ctypes
from typing import Any, Final

import numpy as np

from weft.codegen.driver import layout, list_layout
from weft.runtime.execution import driver
from weft.runtime.execution.program import HOLD_NS, Fault
from weft.runtime.execution.segment import WAKE_NS, parts_of
from weft.runtime.execution.team import TEAM, TURN
from weft.runtime.flight import land
from weft.runtime.memory.address import address_of
from weft.runtime.memory.recycled import empty

DIVIDING_NS: Final = 50_000.0
"""What dividing a list among threads takes, ..."""
LAUNCH_NS: Final = 4_000.0
"""... and for each launch, with the barrier behind it; lists that save less run on one thread."""
MOST_KEPT: Final = 1 << 22  # bytes; larger memory goes back to where tensors find it
LAUNCHES, SLOTS, BUFFERS = 256, 4096, 256  # at first
ROUNDING_BITS: Final = 4
"""Of a number of bytes, as many leading bits are kept."""
ALIGNMENT: Final = 64

Table = np.ndarray[Any, Any]
Bytes: Final = np.dtype(np.uint8)


class Workspace:
    """The memory of a list, and what the stitcher found out about it."""

    def __init__(self) -> None:
        self.table: Final = list_layout.Workspace()
        self.address: Final = ctypes.addressof(self.table)
        self._tables: dict[str, Table] = {}
        self._error = np.zeros(8, np.int64)
        self.table.error = address_of(self._error)
        self._serial = layout.Program()  # which needs no more than its calls
        self._serial.error, self._serial.leave = self.table.error, layout.BEYOND
        self._memory: Table | None = None
        self._buffers = 0
        self._give_rooms(LAUNCHES, SLOTS)

    def _room(self, name: str, count: int) -> None:
        self._tables[name] = table = np.zeros(count, np.int64)
        setattr(self.table, name, address_of(table))

    def fit(self, threads: int) -> None:
        """Makes room for the largest calls and lists that there are."""
        self.table.threads = threads
        if self._buffers < _most[0]:
            self._buffers = count = 2 * _most[0]
            for name in ("sizes", "buffers", "own"):
                self._room(name, count)
            self._room("free", 2 * count)

    def _give_rooms(self, launches: int, slots: int) -> None:
        self._room("calls", 4 * launches)
        self._room("origins", 4 * launches)
        self._room("ticks", launches)
        self._room("hosts", 5 * launches)
        self._room("slots", slots)
        self.table.launch_room, self.table.slot_room = launches, slots

    def grow(self) -> None:
        """Makes room for what the stitcher had none for."""
        table = self.table
        if table.needed > table.memory:
            size = _rounded(table.needed)
            self._memory = empty((size + ALIGNMENT,), Bytes)
            table.base = -(-address_of(self._memory) // ALIGNMENT) * ALIGNMENT
            table.memory = size
        else:
            self._give_rooms(2 * table.launch_room, 2 * table.slot_room)

    def release(self) -> None:
        """Gives up memory that others may want."""
        if self.table.memory > MOST_KEPT:
            self._memory, self.table.memory = None, 0

    def origins(self) -> list[list[int]]:
        """For each launch its step, its part, its case and its variant."""
        return self._tables["origins"][: 4 * self.table.launch_count].reshape(-1, 4).tolist()

    def first_of(self, step: int) -> int:
        """The first launch of a step or of those after it."""
        steps = self._tables["origins"][: 4 * self.table.launch_count : 4]
        return int(np.searchsorted(steps, step))

    def hosts(self) -> list[list[int]]:
        """For each call of Python the launch after it, its step, its part, its case, its slot."""
        return self._tables["hosts"][: 5 * self.table.host_count].reshape(-1, 5).tolist()

    def slots(self, first: int, count: int) -> list[int]:
        """What some slots hold."""
        return self._tables["slots"][first : first + count].tolist()

    def ns(self, first: int, last: int) -> float:
        """Estimated nanoseconds of some launches on one thread."""
        if last - first == self.table.launch_count:
            return self.table.total / list_layout.TICKS
        return float(self._tables["ticks"][first:last].sum()) / list_layout.TICKS

    def run(self, first: int, last: int) -> Fault | None:
        """Runs some launches, whose kernels are linked; returns a fault that one reported.

        Its tag is the number of the launch.
        """
        land()
        if first == last:
            return None
        stitched, threads, ns = self.table, self.table.threads, self.ns(first, last)
        price = DIVIDING_NS + LAUNCH_NS * (last - first)
        parallel = threads > 1 and ns - ns / threads >= price
        table = layout.Program() if parallel else self._serial
        table.calls, table.call_count = stitched.calls + 32 * first, last - first
        entries = driver.entries()
        enter = entries.run_locked if ns < HOLD_NS and not parallel else entries.run
        held: Any = None
        if parallel:
            table.error, table.team, table.leave = stitched.error, TEAM.address, layout.BEYOND
            table.slots, table.threads = stitched.slots, threads
            held = self._segmented(table, first, last)
            TEAM.grow(threads)
            if TURN.team is not TEAM or TURN.left:
                TURN.note(TEAM)
        pointer = ctypes.addressof(table)
        state = enter(pointer)
        if state == layout.UNDERSTAFFED:  # a forked child has no threads
            TEAM.grow(threads)
            state = enter(pointer)
        del held
        return Fault(*self._error[1:4].tolist()) if state else None

    def _segmented(self, table: layout.Program, first: int, last: int) -> object:
        """Fills the table's units and segments: one segment a launch."""
        count, threads = last - first, self.table.threads
        calls = self._tables["calls"][4 * first : 4 * last].reshape(-1, 4)
        costs = self._tables["ticks"][first:last] / list_layout.TICKS
        parts = parts_of(calls.view(driver.UNIT).reshape(-1)["end"], costs, threads)
        firsts = np.cumsum(parts) - parts
        owner = np.repeat(np.arange(count), parts)
        part = np.arange(len(owner)) - firsts[owner]
        units = calls[owner].view(driver.UNIT).reshape(-1)
        ends = units["end"].astype(np.int64)
        units["begin"] = ends * part // parts[owner]
        units["end"] = ends * (part + 1) // parts[owner]
        segments = np.zeros(count, driver.SEGMENT)
        segments["first"], segments["units"] = firsts, parts
        shared = parts > 1
        left = np.cumsum((costs * shared)[::-1])[::-1]
        segments["flags"][shared & (left >= WAKE_NS)] |= layout.WAKE
        table.units, table.segments = address_of(units), address_of(segments)
        table.segment_count = len(segments)
        return units, segments


def _rounded(size: int) -> int:
    """A little more, so that lists of nearly the same size use the same memory again."""
    step = max(1 << size.bit_length() - ROUNDING_BITS, 1)
    return -(-size // step) * step


_most: Final = [BUFFERS]
_free: Final[list[Workspace]] = []


def reserve(count: int) -> None:
    """Makes sure that workspaces have room for so many buffers of a call or values of a list."""
    _most[0] = max(_most[0], count)


def take(threads: int) -> Workspace:
    """A workspace that nobody uses; a call of Python within a list may compute another one."""
    found = _free.pop() if _free else Workspace()
    found.fit(threads)
    return found


def give(workspace: Workspace) -> None:
    """Takes a workspace back whose list has run."""
    workspace.release()
    _free.append(workspace)

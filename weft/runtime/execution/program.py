"""A step program: calls on planned memory, run by one foreign call.

>>> arena = Arena(plan.total)                                           # doctest: +SKIP
>>> program = Program(calls, compile_kernels(kernels, target), arena, externals=2)
>>> with program.lock:
...     program.addresses[0] = address_of(feed)
...     fault = program.run()
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

import numpy as np

from weft import config
from weft.codegen.driver import layout
from weft.errors import ConfigError, WeftError
from weft.host.interrupt import have_effect
from weft.passes.control.record import Steer
from weft.passes.launch import ERROR, Kernel, Scratch
from weft.runtime.execution import driver
from weft.runtime.execution.call import (
    Call,
    External,
    InArena,
    NativeCall,
    PythonCall,
    estimate_ns,
    iterations,
)
from weft.runtime.execution.segment import Segmented, cut
from weft.runtime.execution.steering import Steering
from weft.runtime.execution.team import TEAM, TURN, Team
from weft.runtime.flight import STEP, Flight, begin, end, land, landing, new_lock
from weft.runtime.memory.address import address
from weft.runtime.memory.arena import Arena
from weft.runtime.memory.tape import Tapes
from weft.transport.session import step_failed

SERIAL_NS: Final = 10_000.0  # shorter programs gain nothing from a second thread
HOLD_NS: Final = 100_000.0  # shorter programs keep the GIL


class Fault(NamedTuple):
    """A fault that a checking kernel reported: see `weft.passes.launch.ERROR`."""

    tag: int
    position: int
    value: int


_HOST = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


class Program:
    """Calls in order, bound to an arena and to `externals` addresses that change between runs.

    Hold `lock` from setting addresses to reading results; programs that share state may share a
    lock. Results do not depend on `threads`; per-thread scratch must be planned for
    `program.threads` threads.
    """

    def __init__(
        self,
        calls: Sequence[Call],
        functions: Mapping[Kernel, int],
        arena: Arena,
        externals: int = 0,
        threads: int | None = None,
        lock: threading.RLock | None = None,  # pyright: ignore[reportGeneralTypeIssues]
        tapes: Tapes | None = None,
        team: Team = TEAM,
    ) -> None:
        self.calls: Final = tuple(calls)
        self.team: Final = team
        self.arena: Final = arena
        self.threads: Final = int(config.get("threads")) if threads is None else threads
        if not 1 <= self.threads <= config.MAX_THREADS:
            raise ConfigError(
                f"threads: expected an integer from 1 to {config.MAX_THREADS}, got {self.threads}"
            )
        self.lock: Final = new_lock(STEP) if lock is None else lock
        self._tapes: Final = Tapes({}) if tapes is None else tapes
        self._raised: list[BaseException] = []
        self._callbacks: list[Any] = []
        self._running = False
        self._table = layout.Program()
        self._fill(functions, externals)
        self.pointer = ctypes.c_void_p(ctypes.addressof(self._table))
        times = iterations(self.calls)
        self.estimate_ns: Final = sum([
            estimate_ns(call) * n for call, n in zip(self.calls, times, strict=True)
        ])  # fmt: skip
        self.parallel: Final = self.threads > 1 and self.estimate_ns >= SERIAL_NS
        self._segments()
        entries = driver.entries()
        held = self.estimate_ns < HOLD_NS and not self._callbacks and not self.parallel
        self.enter: Final = entries.run_locked if held else entries.run
        self.is_brief: Final = held and not self._steering.records
        if self.parallel:
            team.grow(self.threads)
        arena.ready()

    def _fill(self, functions: Mapping[Kernel, int], externals: int) -> None:
        """The tables of calls and arguments."""
        counts = [len(call.args) for call in self.calls]
        starts = [0, *itertools.accumulate(counts)]
        self._slots = np.zeros(starts[-1] + 1, np.int64)
        self._externals = np.zeros(externals + 1, np.int64)
        self._error = np.zeros(8, np.int64)
        self.addresses = memoryview(cast(Any, self._externals))[:externals]
        """Addresses of the externals; all must be set before the first run."""
        base = address(self._slots)
        patches: list[tuple[int, int]] = []
        slots = memoryview(cast(Any, self._slots))
        units = np.zeros(len(self.calls), driver.UNIT)
        arena = self.arena.address
        table = self._tapes.table
        self._steering = Steering(self.calls, self._slots, starts, arena, address, table)
        for number, (call, start) in enumerate(zip(self.calls, starts, strict=False)):
            for slot, argument in enumerate(call.args, start):
                if isinstance(argument, External):
                    patches.append((slot, argument.index))
                else:
                    slots[slot] = self._value(argument)
            flags = layout.GUARD * call.guard
            if isinstance(call.function, Kernel):
                function = functions[call.function]
            elif isinstance(call.function, Steer):
                function, flags = self._steering.address_of(number), layout.CONTROL
            elif isinstance(call.function, NativeCall):
                function, flags = functions[call.function.kernel], flags | layout.HOST
                self._bind(call.function)
            else:
                assert isinstance(call.function, PythonCall), "bound by `Executable`"
                function, flags = self._host(call.function.python), flags | layout.HOST
            units[number] = (function, base + 8 * start, 0, int(call.chunks), flags, number)
        self._units = units
        self._patches = np.array(patches, driver.PATCH)
        if len(self._patches) and self._patches["external"].max() >= externals:
            raise ValueError(f"program: an external beyond the {externals} declared")
        table = self._table
        table.calls, table.call_count = address(units), len(units)
        table.patches, table.patch_count = address(self._patches), len(patches)
        table.externals, table.slots = address(self._externals), base
        table.error, table.team = address(self._error), self.team.address
        table.threads = self.threads
        table.leave = layout.BEYOND
        if self._steering.records:
            table.patience = driver.PATIENCE_NS
            self._untouched = self._slots.copy()

    def _value(self, argument: InArena | Scratch | int) -> int:
        if isinstance(argument, InArena):
            if not 0 <= argument.offset <= argument.offset + argument.size <= self.arena.size:
                raise ValueError(f"program: {argument} lies outside the {self.arena.size} bytes")
            return self.arena.address + argument.offset
        if isinstance(argument, Scratch):
            if argument is not ERROR:
                raise ValueError("program: scratch memory is not placed")
            return address(self._error)
        return argument

    def _bind(self, native: NativeCall) -> None:
        """Tell a native call where its Python function is, and how to say that it did not fail."""
        table = native.shared.table
        table.python, table.error = self._host(native.python), address(self._error)
        table.mark = ctypes.addressof(self._table) + layout.Program.unfinished.offset

    def _host(self, function: Callable[[int], None]) -> int:
        table, raised, error = self._table, self._raised, memoryview(cast(Any, self._error))

        def call(args: int, begin: int, end: int, thread: int) -> None:
            if error[0]:  # what it would work on was not computed
                table.unfinished = 0
                return
            try:
                function(args)
                table.unfinished = 0  # the last deed: see `driver.unit`
            except BaseException as found:
                raised.append(found)

        callback = _HOST(call)
        self._callbacks.append(callback)
        return ctypes.cast(callback, ctypes.c_void_p).value or 0

    def _segments(self) -> None:
        if not self.parallel:
            self.segmented: Segmented | None = None
            return
        self.segmented = cut(self.calls, self._units, self.threads)
        table = self._table
        table.units = address(self.segmented.units)
        table.segments = address(self.segmented.segments)
        table.segment_count = len(self.segmented.segments)
        if self._steering.records:
            self._steering.in_segments(_segments_of(self.segmented))

    def run(self) -> Fault | None:
        """Runs the step, in full or up to a guard; returns a fault that a checking kernel found.

        Raises:
            BaseException: whatever a Python function in the program raised.
            WeftError: an external has no address, or the program runs already (a Python function
                in it called it again).
        """
        land()
        if self.parallel and (TURN.team is not self.team or TURN.left):
            TURN.note(self.team)
        if self._callbacks:
            state = self._run_host()
        else:  # `_enter_whole` without its frame, which short steps would notice
            state = self.enter(self.pointer)
            if state == layout.PAUSED:
                state = self._go_on()
        if state == layout.UNDERSTAFFED:  # a forked child has no threads
            self.team.grow(self.threads)
            return self.run()
        return self._fault(state) if state else None

    def _enter_whole(self) -> int:
        state = self.enter(self.pointer)
        return self._go_on() if state == layout.PAUSED else state

    def _go_on(self) -> int:
        """Continues a step with a long loop, checking for Ctrl-C in between."""
        state = layout.PAUSED
        try:
            while state == layout.PAUSED:
                have_effect()  # if signals wait for the end of a step, this one has none yet
                self._tapes.grow()
                state = self.enter(self.pointer)
        finally:
            if state == layout.PAUSED:
                self._rewind()
        return state

    def _rewind(self) -> None:
        """Resets a step that was stopped within a loop."""
        self._table.resume_call = self._table.resume_segment = 0
        self._slots[:] = self._untouched

    @functools.cached_property
    def ends(self) -> Ends | None:
        """When the program is done with what; `None` if its caller may not leave it."""
        if self.segmented is None or self._callbacks or self._steering.records:
            return None
        last = np.full(len(self._externals) - 1, -1, np.int64)
        checked = -1
        times = np.zeros(len(self.segmented.segments))
        for call, segment in zip(self.calls, _segments_of(self.segmented), strict=True):
            times[segment] += estimate_ns(call)
            if call.check:
                checked = segment
            for argument in call.args:
                if isinstance(argument, External):
                    last[argument.index] = segment
        return Ends(last, checked, np.append(np.cumsum(times[::-1])[::-1], 0.0))

    def run_ahead(self, leave: int, done: frozenset[int], held: object) -> Fault | None:
        """Runs the step up to segment `leave`, and leaves the rest to the team.

        Args:
            leave: after everything that is waited for and that may report a fault: see `ends`.
            done: identities of arrays that the rest does not touch.
            held: objects to keep alive while the step uses them.
        """
        if TURN.team is not self.team or TURN.left:
            TURN.note(self.team)
        with landing:
            begin(Flight(self._finish, done, (held, self)))
            self._table.leave = leave
            state = self.enter(self.pointer)
            if not self._table.aloft:
                self._finish()
                end()
                if state == layout.UNDERSTAFFED:
                    return self.run()
        return self._fault(state) if state else None

    def _finish(self) -> None:
        driver.entries().land(self.pointer)
        self._table.leave = layout.BEYOND

    def _run_host(self) -> int:
        if self._running:
            raise WeftError("program: a host call runs the program that it is part of")
        self._raised.clear()  # of a step whose exception Ctrl-C overtook
        failed = self._running = True  # no call from here to `try`, as Ctrl-C comes after calls
        try:
            state = self._enter_whole()
            failed = state not in (0, layout.UNDERSTAFFED)
            return state
        finally:
            self._running = False
            if failed:
                step_failed(self._raised[0] if self._raised else None)

    def _fault(self, state: int) -> Fault:
        if self._steering.records:
            self._rewind()
        if self._raised:
            error = self._raised[0]
            self._raised.clear()
            raise error
        if state < 0:
            raise WeftError(f"program: external {-1 - state} has no address")
        if state == 2:  # an exception outside the callback's own try: only a signal can do that
            raise KeyboardInterrupt
        return Fault(*self._error[1:4].tolist())

    def record(self) -> Recording:
        """Runs the step once with a clock at every call; costs nothing at other times."""
        count = len(self.calls) + (len(self.segmented.units) if self.segmented else 0)
        records = np.zeros(count, driver.RECORD)
        tables = [self._units] + ([self.segmented.units] if self.segmented else [])
        owner = np.arange(len(self.calls))
        if self.segmented:
            owner = np.concatenate([owner, self.segmented.owner])
        self._table.records = address(records)
        for table in tables:
            table["flags"] |= layout.TIMED
        try:
            before = time.perf_counter_ns()
            fault = self.run()
            total = time.perf_counter_ns() - before
        finally:
            for table in tables:
                table["flags"] &= ~np.uint32(layout.TIMED)
            self._table.records = None
        return Recording(total, records, owner, fault)


class Ends(NamedTuple):
    """When a program is done with what, in segments, and how long the rest takes."""

    externals: np.ndarray[Any, Any]  # the last segment that touches each
    checks: int  # the last one that may report a fault
    left_ns: np.ndarray[Any, Any]  # from each segment to the end, on one thread


def _segments_of(segmented: Segmented) -> list[int]:
    """The segment of each call."""
    starts = segmented.owner[segmented.segments["first"]]
    calls = np.arange(segmented.owner[-1] + 1)
    return (np.searchsorted(starts, calls, side="right") - 1).tolist()


class Recording(NamedTuple):
    """One timed step: total nanoseconds, a record for every unit, the call of each record."""

    total_ns: int
    records: np.ndarray[Any, Any]
    owner: np.ndarray[Any, Any]
    fault: Fault | None

"""From call to call on one thread, and from segment to segment with the team."""

from __future__ import annotations

from weft.codegen.driver.control import control
from weft.codegen.driver.layout import (
    CONTROL,
    GUARD,
    HOST,
    WAKE,
    Program,
    Segment,
    Team,
    Unit,
)  # fmt: skip
from weft.codegen.driver.queue import wake
from weft.codegen.driver.unit import execute
from weft.codegen.procedure import Procedure, Ref, Repeat, Word, i64, routine

IN_CALLS, IN_SEGMENTS = range(2)  # fields of `Target`
UNITS_BITS, CALLER_BIT, THREADS_SHIFT, SEGMENT_SHIFT = (1 << 23) - 1, 1 << 23, 24, 32
"""The parts of a `Head`."""


def _check(rounds: Repeat, flags: Word, error: Ref) -> None:
    """Leaves if the error cell is set and a call must not be made then."""
    f = flags.f
    with f.when(flags.has(GUARD)):
        rounds.leave(error.load("seq_cst").differs(0))


@routine(Program, i64)
def serial(f: Procedure, program: Ref, start: Word) -> None:
    """Makes all calls in order from `start` on, on this thread."""
    calls, count = program["calls"].to(Unit), program["call_count"]
    error = program["error"].to(i64)
    i = f.local(start)
    with f.repeat() as rounds:
        rounds.leave(i >= count)
        unit = calls.at(i)
        flags = unit["flags"]
        with f.when(flags.has(CONTROL)):
            i.set(control(f, program, unit, i, IN_CALLS))
            rounds.again()
        _check(rounds, flags, error)
        execute(f, program, unit, 0)
        i.set(i + 1)


@routine(Program, Team, i64, i64)
def advance(f: Procedure, program: Ref, team: Ref, start: Word, thread: Word) -> None:
    """Starts segment `start`, or ends the program. Segments of one unit run here and now."""
    units, segments = program["units"].to(Unit), program["segments"].to(Segment)
    count, threads, leave = program["segment_count"], program["threads"], program["leave"]
    error = program["error"].to(i64)
    is_caller = thread.equals(0)
    i = f.local(start)
    with f.repeat() as rounds:
        rounds.leave(i >= count)
        segment = segments.at(i)
        first, size, flags = segment["first"], segment["units"], segment["flags"]
        with f.when(flags.has(CONTROL)):
            i.set(control(f, program, units.at(first), i, IN_SEGMENTS))
            rounds.again()
        _check(rounds, flags, error)
        parted = f.local(f.constant(0, "i1"))
        # What the caller waits for is done. After an error it stays to the end, which is near.
        with f.when(i >= leave), f.when(error.load("seq_cst").equals(0)):
            parted.set(1)
            before = team.field("parting").update("xchg", 1)
            with f.when(~is_caller & before.equals(0)):
                wake(f, team.field("callers"))
        callers = flags.has(HOST) & ~is_caller  # alone: another thread has come here
        gone = parted & is_caller
        with f.when(size.equals(1) & ~callers & ~gone):
            execute(f, program, units.at(first), thread)
            i.set(i + 1)
            rounds.again()
        team.field("pending").store(size, "monotonic")
        _share(f, team, i, size, threads, callers)
        with f.when(flags.has(WAKE) | gone):
            wake(f, team.field("workers"))
        _tell(f, team, is_caller)
        f.give()
    team.field("finished").store(1, "release")
    team.field("parting").store(1, "release")
    f.full_fence()
    _tell(f, team, is_caller)


def _share(
    f: Procedure, team: Ref, segment: Word, size: Word, threads: Word, callers: Word
) -> None:
    """Publishes a segment's units, evenly on all heads; or on the caller's."""
    only = f.select(callers, CALLER_BIT, 0)
    common = (segment << SEGMENT_SHIFT) | ((threads - 1) << THREADS_SHIFT) | only
    begin = f.local(0)
    with f.count(threads) as thread:
        end = share_end(f, size, thread, threads, callers)
        team.field("heads").at(thread).field("word").store(common | (end - begin), "release")
        begin.set(end)
    f.full_fence()


def share_end(f: Procedure, size: Word, thread: Word, threads: Word, callers: Word) -> Word:
    """The end of a thread's share of units; all are the caller's, if `callers` holds."""
    return f.select(callers, 1, size * (thread + 1) // threads)


def _tell(f: Procedure, team: Ref, is_caller: Word) -> None:
    with f.when(~is_caller):
        wake(f, team.field("callers"))

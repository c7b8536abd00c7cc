"""What the driver and Python share: the tables of a program, and the state of the team.

A program is a list of calls. Run serially, the caller's thread makes them in order. Run by the
team, calls are cut into units (a range of chunks), and units are grouped in segments: the units of
a segment may run at the same time, and a segment starts when the one before is done.

Each thread has a head: the segment, and how many units of the thread's share are left. A unit is
claimed by taking one off a head, first off one's own (so that a thread finds in its cache what it
wrote before), then off the others'. Whoever finishes the last unit of a segment starts the next
one; so nobody ever waits for a thread that the system has put aside without work in hand. Which
thread does which unit has no influence on results.
"""

from __future__ import annotations

import ctypes
from typing import Final

from weft.codegen.procedure import i64, lines, pointer, u32

GUARD: Final = 1
"""Flag of a call that ends the program if the error cell is set."""
HOST: Final = 2
"""Flag of a call into Python, made on the caller's thread."""
TIMED: Final = 4
"""Flag of a call whose start and end are recorded."""
WAKE: Final = 8
"""Flag of a segment that wakes sleeping threads: enough work is left for them."""
CONTROL: Final = 16
"""Flag of a control-flow record, a `Steer` instead of a function, alone in its segment."""

UNDERSTAFFED: Final = -(1 << 63)
"""Returned by `run` without doing anything if the team has too few threads for the program."""
PAUSED: Final = UNDERSTAFFED + 1
"""Returned by `run` if a loop takes long: the next call continues."""
BEYOND: Final = 1 << 62
"""A call or segment behind the end of every program."""

MAX_THREADS: Final = 256
MAX_PROCESSORS: Final = 1024


class Unit(ctypes.Structure):
    """A range of chunks of a call; a call whole, where programs run serially."""

    _fields_ = [
        ("function", pointer), ("args", pointer), ("begin", u32), ("end", u32), ("flags", u32),
        ("position", u32),  # in its table
    ]  # fmt: skip


class Segment(ctypes.Structure):
    """Units that may run at the same time."""

    _fields_ = [("first", u32), ("units", u32), ("flags", u32), ("unused", u32)]


class Patch(ctypes.Structure):
    """The slot of arguments that takes the address of an external."""

    _fields_ = [("slot", u32), ("external", u32)]


class Record(ctypes.Structure):
    """When a unit ran last, by nanoseconds, on which thread, and in all how long and how often."""

    _fields_ = [("start", i64), ("end", i64), ("thread", i64), ("busy", i64), ("times", i64)]


class Tape(ctypes.Structure):
    """Rows that a loop writes: how many there are (if a program pauses for lack of room, how many
    are wanted), and how many fit."""

    _fields_ = [("rows", i64), ("room", i64)]


class Loop(ctypes.Structure):
    """A loop's iterations: how many are done, and at most; the tape that tells these, and the one
    that it makes, or null."""

    _fields_ = [("iterations", i64), ("most", i64), ("counted", pointer), ("tape", pointer)]


class Cursor(ctypes.Structure):
    """An argument that moves with a loop: its slot, what to add at the loop's start and for each
    iteration, what to change it with in each iteration, and what to add for each row of a tape."""

    _fields_ = [
        ("slot", pointer), ("start", i64), ("stride", i64), ("swap", i64), ("height", i64),
        ("tape", pointer),
    ]  # fmt: skip


class Target(ctypes.Structure):
    """Where a program goes on: a call, and the segment that this is."""

    _fields_ = [("call", u32), ("segment", u32)]


class Steer(ctypes.Structure):
    """A record of control flow: its `Kind`, a target, and the cursors of its loop (the targets of
    a choice)."""

    _fields_ = [
        ("kind", u32), ("count", u32), ("call", u32), ("segment", u32), ("items", pointer),
        ("loop", pointer),
    ]  # fmt: skip


class Program(ctypes.Structure):
    """A program's tables and state."""

    _fields_ = [
        ("calls", pointer), ("call_count", i64), ("units", pointer), ("segments", pointer),
        ("segment_count", i64), ("threads", i64), ("patches", pointer), ("patch_count", i64),
        ("externals", pointer), ("slots", pointer), ("error", pointer), ("team", pointer),
        ("records", pointer),
        ("unfinished", i64),  # a host call
        ("leave", i64),  # the segment from which on the caller may leave,
        ("aloft", i64),  # and whether it has left
        ("resume_call", i64), ("resume_segment", i64),  # after a pause; 0 if there was none
        ("patience", i64),  # nanoseconds after which a loop pauses, 0 if there is no loop,
        ("deadline", i64),  # and when that is
    ]  # fmt: skip


class Queue(ctypes.Structure):
    """Whether somebody sleeps, and how often they were woken."""

    _fields_ = lines([("sleeping", u32), ("epoch", u32)])


class Head(ctypes.Structure):
    """A thread's share of a segment.

    `segment << 32 | (threads - 1) << 24 | caller only << 23 | units left`.
    """

    _fields_ = lines([("word", i64)])


class Team(ctypes.Structure):
    """The threads of the process. Busy things have a cache line of their own."""

    _fields_ = lines(
        [("busy", i64)],
        # The program, whether it is finished, whether its caller may leave, and how the caller
        # treats subnormal numbers.
        [("program", pointer), ("finished", i64), ("parting", i64), ("flushing", i64)],
        [("pending", i64)],  # units
        [("callers", Queue)],
        [("workers", Queue)],
        # How many threads look for work, whether they are to quit, how often to look before sleep.
        [("size", i64), ("quit", i64), ("turns", i64)],
        [("heads", Head * MAX_THREADS)],
        [("processor", i64)],  # the caller's
        [("processors", i64 * (MAX_PROCESSORS // 64))],  # the allowed ones, as bits
    )


class Worker(ctypes.Structure):
    """The argument of a thread."""

    _fields_ = [("team", pointer), ("thread", i64)]

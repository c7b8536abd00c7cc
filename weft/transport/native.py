"""Structures that native code and Python share for messages and for memory that ranks share.

`weft.codegen.driver.message` and `weft.codegen.all_reduce` read the layouts; the latter says which
side does what in an all-reduce.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final, NamedTuple

BUSY, TRACED, CALLS, SENT, FAILED = range(5)
"""Indices of `Words`: whether the communication thread may be at work; whether Python makes all
calls, because it traces them; how many calls native code has made, and the bytes it has sent;
whether the job cannot continue."""
Words = ctypes.c_int64 * 5

SHOWN: Final = 1
"""The stage of a call that has raised its flag and waits for slow members."""
DONE: Final = 2
"""The stage of a finished call. A call that has not started has 0."""


class Native(NamedTuple):
    """Native functions, which the runtime provides when they are first needed.

    Attributes:
        meet: returns a function of the address of a `Meeting`: 1 if all flags are raised, else 0.
        reduction: takes the name of a reduction, the element type and the number of members.
            Returns a function of the address of a `CallTable`, which returns the all-reduce of one
            contiguous array into another; `None` if native code does not have it.
        stream: returns a function that copies bytes with non-temporal stores, from its second
            address to its first.
    """

    meet: Callable[[], Any]
    reduction: Callable[[str, Any, int], Callable[[int], Callable[[Any, Any], None]] | None]
    stream: Callable[[], Callable[[int, int, int], Any]]


class ExchangeTable(ctypes.Structure):
    """Messages that MPI has prepared.

    Attributes:
        count, requests, statuses, start, test: of MPI; the last two are its functions.
        most: how often to ask at most.
        mask: others run in between where the number of questions has none of these bits.
    """

    _fields_ = [
        ("count", ctypes.c_int32), ("requests", ctypes.c_void_p), ("statuses", ctypes.c_void_p),
        ("start", ctypes.c_void_p), ("test", ctypes.c_void_p), ("most", ctypes.c_int64),
        ("mask", ctypes.c_int64),
    ]  # fmt: skip


class Meeting(ctypes.Structure):
    """Flags: native code raises one and polls the others.

    Attributes:
        count, flags: the other flags: how many, and their addresses.
        own, value: this rank's flag, and its new value.
        most, mask: as in `ExchangeTable`.
    """

    _fields_ = [
        ("count", ctypes.c_int64), ("flags", ctypes.c_void_p), ("own", ctypes.c_void_p),
        ("value", ctypes.c_int64), ("most", ctypes.c_int64), ("mask", ctypes.c_int64),
    ]  # fmt: skip


class ChannelTable(ctypes.Structure):
    """The state of a channel: see `weft.transport.channel`.

    `number` is that of the last flag, `turn` the slot used last, `calls` the number of native
    calls. If `closed` is set, native code calls Python. `slots` points to all members' slots, for
    each turn.
    """

    _fields_ = [
        ("number", ctypes.c_int64), ("turn", ctypes.c_int64), ("calls", ctypes.c_int64),
        ("closed", ctypes.c_int64), ("words", ctypes.c_void_p),
        ("meetings", ctypes.c_void_p * 2), ("meet", ctypes.c_void_p), ("slots", ctypes.c_void_p),
        ("own", ctypes.c_int64),
    ]  # fmt: skip


class CallTable(ctypes.Structure):
    """An all-reduce that native code makes.

    For a call in a program, `python` is the function that native code calls instead (stage 0) or to
    wait (`SHOWN`), and `mark` is cleared once it has succeeded. `error` is the program's error
    cell.
    """

    _fields_ = [
        ("channel", ctypes.c_void_p), ("tag", ctypes.c_int64), ("arrays", ctypes.c_int64),
        ("sizes", ctypes.c_void_p), ("sent", ctypes.c_int64), ("python", ctypes.c_void_p),
        ("mark", ctypes.c_void_p), ("error", ctypes.c_void_p), ("stage", ctypes.c_int64),
    ]  # fmt: skip

"""What native code and Python share of messages, and of memory that ranks share.

`weft.codegen.driver.message` and `weft.codegen.all_reduce` read the layouts; see the latter for who
does what in an all-reduce.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final, NamedTuple

BUSY, TRACED, CALLS, SENT, FAILED = range(5)
"""Of `Words`: whether the communication thread may be at work, whether Python makes all calls, as
it traces them, how many native code has made, with how many bytes sent, and whether the job cannot
go on."""
Words = ctypes.c_int64 * 5

SHOWN: Final = 1
"""The stage of a call that has raised its flag, when others take long with theirs."""
DONE: Final = 2
"""The stage of a call that is done. One of which nothing is done has 0."""


class Native(NamedTuple):
    """Native functions, which the runtime provides when they are first needed.

    Attributes:
        meet: gives what takes the address of a `Meeting`: 1 if all flags are raised, 0 if not yet.
        reduction: by the name of a reduction, the type of elements and the number of members, what
            gives by the address of a `CallTable` what makes an all-reduce of a contiguous array
            into another; `None` if there is no such function.
        stream: gives what copies bytes past the caches, from the second address to the first.
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
    """Flags, of which native code raises one and looks for the others.

    Attributes:
        count, flags: of the others: how many, and the addresses of theirs.
        own, value: one's own, and its new value.
        most, mask: as those of `ExchangeTable`.
    """

    _fields_ = [
        ("count", ctypes.c_int64), ("flags", ctypes.c_void_p), ("own", ctypes.c_void_p),
        ("value", ctypes.c_int64), ("most", ctypes.c_int64), ("mask", ctypes.c_int64),
    ]  # fmt: skip


class ChannelTable(ctypes.Structure):
    """The state of a channel: see `weft.transport.channel`.

    `number` is of the last flag, `turn` tells which slots were used last, `calls` counts those of
    native code, `closed` sends it to Python, `slots` points at those of all members, for each turn.
    """

    _fields_ = [
        ("number", ctypes.c_int64), ("turn", ctypes.c_int64), ("calls", ctypes.c_int64),
        ("closed", ctypes.c_int64), ("words", ctypes.c_void_p),
        ("meetings", ctypes.c_void_p * 2), ("meet", ctypes.c_void_p), ("slots", ctypes.c_void_p),
        ("own", ctypes.c_int64),
    ]  # fmt: skip


class CallTable(ctypes.Structure):
    """An all-reduce that native code makes.

    Of a call in a program: `python` is what is called instead of it (stage 0), or to wait
    (`SHOWN`), and `mark` is cleared once it has not failed. `error` is the program's error cell.
    """

    _fields_ = [
        ("channel", ctypes.c_void_p), ("tag", ctypes.c_int64), ("arrays", ctypes.c_int64),
        ("sizes", ctypes.c_void_p), ("sent", ctypes.c_int64), ("python", ctypes.c_void_p),
        ("mark", ctypes.c_void_p), ("error", ctypes.c_void_p), ("stage", ctypes.c_int64),
    ]  # fmt: skip

"""The native function that runs every program: its tables as arrays, its address."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from weft.codegen.driver import ENTRIES, layout, source
from weft.codegen.target import portable
from weft.passes.launch import Kernel
from weft.runtime.compilation import compiler
from weft.runtime.compilation.cache import digest
from weft.runtime.compilation.fingerprint import compiler_digest
from weft.runtime.compilation.pack import pack_of

PATIENCE_NS: Final = 50_000_000
"""Time after which a program with loops returns, so that Ctrl-C takes effect."""

Format = np.dtype[Any]
UNIT: Final[Format] = np.dtype(layout.Unit)
SEGMENT: Final[Format] = np.dtype(layout.Segment)
PATCH: Final[Format] = np.dtype(layout.Patch)
STEER: Final[Format] = np.dtype(layout.Steer)
CURSOR: Final[Format] = np.dtype(layout.Cursor)
LOOP: Final[Format] = np.dtype(layout.Loop)
TAPE: Final[Format] = np.dtype(layout.Tape)
TARGET: Final[Format] = np.dtype(layout.Target)
RECORD: Final[Format] = np.dtype(layout.Record)


class Entries(NamedTuple):
    """The driver's native functions."""

    run: Any  # (program table) -> state; releases the GIL
    run_locked: Any  # the same, holding the GIL: for short programs without host calls
    worker: int  # address of a thread's entry function
    stop: Any  # (team)
    land: Any  # (program table): finishes a step that its caller has left
    exchange: Any  # (prepared messages) -> whether they have arrived; holds the GIL
    meet: Any  # (flags in shared memory) -> whether all are set; holds the GIL
    stream: Any  # (to, from, bytes): copies past the caches; releases the GIL
    flush: Any  # (0, or 1: flush subnormals in this thread) -> what holds then; holds the GIL
    record: int  # address of a function for Python to call: `weft.codegen.driver.recording`
    evaluate: Any  # (formula, sizes, room for the values) -> whether it holds; holds the GIL
    stitch: Any  # (list, workspace, sizes, addresses) -> whether it is done; holds the GIL


_entries: Entries | None = None
_told: Final[list[Callable[[Entries], object]]] = []


def when_loaded(tell: Callable[[Entries], object]) -> None:
    """Has a function called once the driver is loaded, with the first program."""
    _told.append(tell)


def kernel() -> Kernel:
    """The driver as a kernel.

    If its object code is there, without its text, which takes some milliseconds to write.
    """
    target = portable()
    key = digest("driver", compiler_digest(), target.cpu, target.features)
    return Kernel("driver", "" if compiler.holds(key) else source(), key)


def entries() -> Entries:
    """The native functions, compiled (or loaded from the cache) on first use."""
    global _entries
    if _entries is None:
        pack = pack_of(portable())
        _entries = entries_at(_compiled() if pack is None else pack.driver)
        for tell in _told:
            tell(_entries)
    return _entries


def _compiled() -> int:
    code = kernel()
    return compiler.compile_kernels([code], portable())[code]


def flush_subnormals(on: bool) -> bool:
    """Makes the calling thread flush subnormal numbers to zero, or keep them.

    NumPy in this thread does the same, and so does the team while it runs a program of this thread.

    Returns:
        Whether that is so: processors other than x86-64 and AArch64 keep subnormal numbers.
    """
    wanted = ctypes.c_int64(on)
    now = entries().flush(ctypes.addressof(wanted))
    return now >= 0 and (now != 0) == on


def prestart() -> None:
    """Call it when a program is likely to be compiled soon: starts compilers on a new machine.

    Where there is a pack, which has the driver, they start with the first kernel.
    """
    if _entries is None and pack_of(portable()) is None:
        compiler.prestart(kernel(), portable())


def entries_at(address: int) -> Entries:
    """The functions that a linked driver's table lists."""
    table = (ctypes.c_void_p * len(ENTRIES)).from_address(address)
    run, worker, stop, land, exchange, meet, stream, flush, record, evaluate, stitch = table
    unary = (ctypes.c_int64, ctypes.c_void_p)
    return Entries(
        ctypes.CFUNCTYPE(*unary)(run or 0),
        ctypes.PYFUNCTYPE(*unary)(run or 0),
        worker or 0,
        ctypes.CFUNCTYPE(*unary)(stop or 0),
        ctypes.CFUNCTYPE(*unary)(land or 0),
        ctypes.PYFUNCTYPE(*unary)(exchange or 0),
        ctypes.PYFUNCTYPE(*unary)(meet or 0),
        ctypes.CFUNCTYPE(*unary, ctypes.c_void_p, ctypes.c_int64)(stream or 0),
        ctypes.PYFUNCTYPE(*unary)(flush or 0),
        record or 0,
        ctypes.PYFUNCTYPE(*unary, ctypes.c_char_p, ctypes.c_void_p)(evaluate or 0),
        ctypes.PYFUNCTYPE(*unary, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)(stitch or 0),
    )

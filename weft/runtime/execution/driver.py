"""The native function that runs every program: its LLVM IR, its data layouts, its address."""

from __future__ import annotations

import ctypes
import platform
import string
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from weft.codegen.target import current
from weft.passes.launch import SYMBOL, Kernel
from weft.runtime.compilation import compiler

GUARD: Final = 1
"""Flag of a call that ends the program if the error cell is set."""
HOST: Final = 2
"""Flag of a call into Python, made on the caller's thread."""
TIMED: Final = 4
"""Flag of a call whose start and end are recorded."""
WAKE: Final = 8
"""Flag of a segment that wakes sleeping threads: enough work is left for them."""
CONTROL: Final = 16
"""Flag of a control-flow record, which has no function."""

UNDERSTAFFED: Final = -(1 << 63)
"""Returned by `run` without doing anything if the team has too few threads for the program."""

PAUSED: Final = UNDERSTAFFED + 1
"""Returned by `run` if a loop takes long: the next call continues."""
PATIENCE_NS: Final = 50_000_000
"""Time after which a program with loops returns, so that Ctrl-C takes effect."""

MAX_THREADS: Final = 256

UNIT: Final = np.dtype(
    [("function", "u8"), ("args", "u8"), ("begin", "u4"), ("end", "u4"), ("flags", "u4"),
     ("position", "u4")]
)  # fmt: skip
SEGMENT: Final = np.dtype([("first", "u4"), ("units", "u4"), ("flags", "u4"), ("unused", "u4")])
PATCH: Final = np.dtype([("slot", "u4"), ("external", "u4")])
STEER: Final = np.dtype(
    [("kind", "u4"), ("count", "u4"), ("call", "u4"), ("segment", "u4"), ("items", "u8"),
     ("loop", "u8")]
)  # fmt: skip
CURSOR: Final = np.dtype(
    [("slot", "u8"), ("start", "i8"), ("stride", "i8"), ("swap", "i8"), ("height", "i8"),
     ("tape", "u8")]
)  # fmt: skip
LOOP: Final = np.dtype([("iterations", "i8"), ("most", "i8"), ("counted", "u8"), ("tape", "u8")])
TAPE: Final = np.dtype([("rows", "i8"), ("room", "i8")])
TARGET: Final = np.dtype([("call", "u4"), ("segment", "u4")])
RECORD: Final = np.dtype(
    [("start", "i8"), ("end", "i8"), ("thread", "i8"), ("busy", "i8"), ("times", "i8")]
)


class ProgramTable(ctypes.Structure):
    """The driver's view of a program (`%Program`)."""

    _fields_ = [
        ("calls", ctypes.c_void_p), ("call_count", ctypes.c_int64),
        ("units", ctypes.c_void_p), ("segments", ctypes.c_void_p),
        ("segment_count", ctypes.c_int64), ("threads", ctypes.c_int64),
        ("patches", ctypes.c_void_p), ("patch_count", ctypes.c_int64),
        ("externals", ctypes.c_void_p), ("slots", ctypes.c_void_p), ("error", ctypes.c_void_p),
        ("team", ctypes.c_void_p), ("records", ctypes.c_void_p), ("unfinished", ctypes.c_int64),
        ("leave", ctypes.c_int64), ("aloft", ctypes.c_int64),
        ("resume_call", ctypes.c_int64), ("resume_segment", ctypes.c_int64),
        ("patience", ctypes.c_int64), ("deadline", ctypes.c_int64),
    ]  # fmt: skip


TEAM_BYTES: Final = (6 + MAX_THREADS) * 64 + 64 + 128
TEAM_THREADS: Final = 5 * 64  # the address in `%Team` of the number of threads that look for work,
TEAM_SPIN: Final = 5 * 64 + 16  # how many times a thread looks before it sleeps,
TEAM_PROCESSORS: Final = (6 + MAX_THREADS) * 64 + 64  # and its allowed processors, as bits
MAX_PROCESSORS: Final = 1024

_FUTEX = {"x86_64": 202, "aarch64": 98}
_RELAX = {
    "x86_64": ("void @llvm.x86.sse2.pause()", ""),
    "aarch64": ("void @llvm.aarch64.hint(i32)", "i32 1"),
}
_LINUX = string.Template("""
declare i64 @syscall(i64, ...)
declare i32 @sched_getcpu()
declare i32 @sched_setaffinity(i32, i64, ptr)
define internal void @system_wait(ptr %word, i32 %value) nounwind {
  %r = call i64 (i64, ...) @syscall(i64 $NUMBER, ptr %word, i32 128, i32 %value, ptr null)
  ret void
}
define internal void @system_wake(ptr %word) nounwind {
  %r = call i64 (i64, ...) @syscall(i64 $NUMBER, ptr %word, i32 129, i32 2147483647)
  ret void
}
define internal i32 @system_processor() nounwind {
  %r = call i32 @sched_getcpu()
  ret i32 %r
}
define internal void @system_move(ptr %mask) nounwind {
  %r = call i32 @sched_setaffinity(i32 0, i64 128, ptr %mask)
  ret void
}
""")
_ELSEWHERE = """
declare i32 @usleep(i32)
define internal void @system_wait(ptr %word, i32 %value) nounwind {
  %r = call i32 @usleep(i32 100)
  ret void
}
define internal void @system_wake(ptr %word) nounwind {
  ret void
}
define internal i32 @system_processor() nounwind {
  ret i32 -1
}
define internal void @system_move(ptr %mask) nounwind {
  ret void
}
"""


# Subnormal numbers are kept, or flushed to zero if the thread that runs a program has been told so
# (`set_flush_denormal`). The threads of the team take its mode with the units that they claim.
_MXCSR = """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
define internal i64 @float_mode() nounwind {
  %p = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %p)
  %mode = load i32, ptr %p
  %wide = zext i32 %mode to i64
  ret i64 %wide
}
define internal void @float_mode_set(i64 %wide) nounwind {
  %p = alloca i32
  %mode = trunc i64 %wide to i32
  store i32 %mode, ptr %p
  call void @llvm.x86.sse.ldmxcsr(ptr %p)
  ret void
}
"""
_FPCR = """
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)
define internal i64 @float_mode() nounwind {
  %mode = call i64 @llvm.aarch64.get.fpcr()
  ret i64 %mode
}
define internal void @float_mode_set(i64 %mode) nounwind {
  call void @llvm.aarch64.set.fpcr(i64 %mode)
  ret void
}
"""
_FLUSHING = string.Template("""
$ACCESS
define internal i64 @flushing() nounwind {
  %mode = call i64 @float_mode()
  %bits = and i64 %mode, $BITS
  ret i64 %bits
}
define internal void @flush_as(i64 %bits) nounwind {
entry:
  %mode = call i64 @float_mode()
  %rest = and i64 %mode, $MASK
  %wanted = and i64 %bits, $BITS
  %new = or i64 %rest, %wanted
  %same = icmp eq i64 %new, %mode
  br i1 %same, label %done, label %change
change:
  call void @float_mode_set(i64 %new)
  br label %done
done:
  ret void
}
""")
_UNKNOWN_MODE = """
define internal i64 @flushing() nounwind {
  ret i64 -1
}
define internal void @flush_as(i64 %wanted) nounwind {
  ret void
}
"""


def _flushing(machine: str) -> str:
    """The part of the driver that reads and sets the mode for subnormal numbers."""
    modes = {"x86_64": (_MXCSR, 0x8040), "aarch64": (_FPCR, 1 << 24)}  # FTZ and DAZ; FZ
    if machine not in modes:
        return _UNKNOWN_MODE
    access, bits = modes[machine]
    return _FLUSHING.substitute(ACCESS=access, BITS=bits, MASK=~bits)


def source(system: str = sys.platform, machine: str | None = None) -> str:
    """The driver's LLVM IR for an operating system and a processor."""
    machine = platform.machine() if machine is None else machine
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine.lower(), machine)
    futex = _FUTEX.get(machine) if system == "linux" else None
    calls = _ELSEWHERE if futex is None else _LINUX.substitute(NUMBER=futex)
    relax = "define internal void @relax() nounwind {\n$CALL  ret void\n}\n"
    if machine in _RELAX:
        declaration, argument = _RELAX[machine]
        name = declaration.split("(")[0]
        call = f"  call {name}({argument})\n"
        relax = f"declare {declaration}\n" + relax.replace("$CALL", call)
    else:
        relax = relax.replace("$CALL", "")
    text = Path(__file__).with_suffix(".ll").read_text(encoding="utf-8")
    clock = "6" if system == "darwin" else "1"  # CLOCK_MONOTONIC
    return string.Template(text).substitute(
        SYMBOL=SYMBOL, CLOCK=clock, RELAX=relax, FLUSHING=_flushing(machine), SYSTEM=calls
    )


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


_entries: Entries | None = None


def kernel() -> Kernel:
    """The driver as a kernel, compiled along with a program's own."""
    return Kernel("driver", source())


def entries() -> Entries:
    """The native functions, compiled (or loaded from the cache) on first use."""
    global _entries
    if _entries is None:
        driver = kernel()
        _entries = entries_at(compiler.compile_kernels([driver], current())[driver])
    return _entries


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
    """Call it when a program is likely to be compiled soon: starts compilers on a new machine."""
    if _entries is None:
        compiler.prestart(kernel(), current())


def entries_at(address: int) -> Entries:
    """The functions that a linked driver's table lists."""
    table = (ctypes.c_void_p * 8).from_address(address)
    run, worker, stop, land, exchange, meet, stream, flush = table
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
    )

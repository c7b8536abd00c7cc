"""What the driver asks of the processor and the operating system."""

from __future__ import annotations

from typing import Final

from weft.codegen.driver.layout import MAX_PROCESSORS
from weft.codegen.procedure import Procedure, Ref, Word, i64, routine, u32

_FUTEX: Final = {"x86_64": 202, "aarch64": 98}  # the system call's number
_WAIT, _WAKE, _EVERYBODY = 128, 129, (1 << 31) - 1  # private futexes
_NAP_MICROSECONDS: Final = 100

_FLUSH_BITS: Final = {"x86_64": 0x8040, "aarch64": 1 << 24}
"""Of the floating-point mode: subnormal numbers are flushed to zero (FTZ and DAZ; FZ)."""


def _futex(f: Procedure) -> int | None:
    return _FUTEX.get(f.machine.processor) if f.machine.system == "linux" else None


def _system_call(f: Procedure, word: Ref, operation: int, value: Word | int) -> None:
    f.declarations.add("declare i64 @syscall(i64, ...)")
    args = f"i64 {_futex(f)}, {word.reg}, i64 {operation}, {f.reg(value)}, ptr null"
    f.instruction("i64", f"call i64 (i64, ...) @syscall({args})")


def sleep(f: Procedure, word: Ref, value: Word) -> None:
    """Sleeps until woken, unless the number there is not `value` any more."""
    if _futex(f) is None:
        f.invoke("i32", "usleep", f.constant(_NAP_MICROSECONDS, "i32"))
    else:
        _system_call(f, word, _WAIT, value)


def wake_all(f: Procedure, word: Ref) -> None:
    """Wakes all that sleep on a word."""
    if _futex(f) is not None:
        _system_call(f, word, _WAKE, _EVERYBODY)


def processor(f: Procedure) -> Word:
    """The number of this thread's processor; -1 where that is unknown."""
    if _futex(f) is None:
        return f.constant(-1)
    return f.invoke("i32", "sched_getcpu").wide()


def move(f: Procedure, processors: Ref) -> None:
    """Allows this thread only some processors, given as bits."""
    if _futex(f) is not None:
        size = f.constant(MAX_PROCESSORS // 8)
        f.invoke("i32", "sched_setaffinity", f.constant(0, "i32"), size, processors)


def give_way(f: Procedure) -> None:
    """Lets other threads have this processor."""
    f.invoke("i32", "sched_yield")


def relax(f: Procedure) -> None:
    """Pauses for some cycles in a loop that waits."""
    if f.machine.processor == "x86_64":
        f.invoke("void", "llvm.x86.sse2.pause")
    elif f.machine.processor == "aarch64":
        f.invoke("void", "llvm.aarch64.hint", f.constant(1, "i32"))


def copy(f: Procedure, to: Word, source: Word, size: Word | int) -> None:
    """Copies bytes."""
    f.invoke("void", "llvm.memcpy.p0.p0.i64", to, source, size, f.constant(0, "i1"))


@routine(result=i64)
def now(f: Procedure) -> Word:
    """Nanoseconds of the clock that `time.monotonic_ns` reads."""
    time = f.room(i64, 2)  # seconds, nanoseconds
    clock = f.constant(6 if f.machine.system == "darwin" else 1, "i32")  # CLOCK_MONOTONIC
    f.invoke("i32", "clock_gettime", clock, time)
    return time.at(0).load() * 1_000_000_000 + time.at(1).load()


def _mode(f: Procedure) -> Word:
    if f.machine.processor == "aarch64":
        return f.invoke("i64", "llvm.aarch64.get.fpcr")
    mode = f.room(u32)
    f.invoke("void", "llvm.x86.sse.stmxcsr", mode)
    return mode.load()


@routine(result=i64)
def flushing(f: Procedure) -> Word:
    """How this thread treats subnormal numbers: 0 if it keeps them, -1 where that is unknown."""
    bits = _FLUSH_BITS.get(f.machine.processor)
    return f.constant(-1) if bits is None else _mode(f) & bits


@routine(i64)
def flush_as(f: Procedure, wanted: Word) -> None:
    """Makes this thread treat subnormal numbers as `flushing` has told of another.

    The threads of the team take the mode of a program's caller with the units that they claim.
    """
    bits = _FLUSH_BITS.get(f.machine.processor)
    if bits is None:
        return
    mode = _mode(f)
    new = mode & ~bits | wanted & bits
    with f.when((new ^ mode).differs(0)):
        if f.machine.processor == "aarch64":
            f.invoke("void", "llvm.aarch64.set.fpcr", new)
        else:
            changed = f.room(u32)
            changed.store(new.short())
            f.invoke("void", "llvm.x86.sse.ldmxcsr", changed)

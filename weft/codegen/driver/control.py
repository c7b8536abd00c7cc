"""Control flow in a program: loops, choices, and the arguments that move with a loop."""

from __future__ import annotations

import ctypes

from weft.codegen.driver import system
from weft.codegen.driver.layout import (
    BEYOND,
    Cursor,
    Loop,
    Program,
    Steer,
    Tape,
    Target,
    Unit,
)  # fmt: skip
from weft.codegen.procedure import Procedure, Ref, Word, i64, pointer, routine, u8
from weft.passes.control.record import Kind


@routine(Steer, i64, i64, i64)
def move(f: Procedure, steer: Ref, starts: Word, strides: Word, mask: Word) -> None:
    """Moves a loop's cursors by so many starts and strides, and swaps places as the mask tells."""
    cursors = steer["items"].to(Cursor)
    with f.count(steer["count"]) as i:
        cursor = cursors.at(i)
        slot = cursor["slot"].to(i64)
        start = cursor["start"] + cursor["height"] * cursor["tape"].to(Tape)["rows"]
        address = slot.load() ^ (cursor["swap"] & mask)
        slot.store(address + start * starts + cursor["stride"] * strides)


@routine(Program, Unit, i64, i64, result=i64)
def control(f: Procedure, program: Ref, unit: Ref, here: Word, field: Word) -> Word:
    """A record at `here` of the table of calls (`field` 0 of a `Target`) or of segments (1).

    Returns:
        Where the program goes on there: beyond its end where it stops or pauses.
    """
    steer = unit["function"].to(Steer)
    args = unit["args"].to(pointer)
    kind = steer["kind"]
    loop, following = steer["loop"].to(Loop), here + 1
    target = f.select(field.equals(0), steer["call"], steer["segment"])
    with f.when(kind.equals(Kind.BEGIN)):
        _begin(f, program, steer, loop)
        f.give(following)
    with f.when(kind.equals(Kind.HOLDS)):
        condition = args.at(0).load().to(u8)
        with f.when(condition.load().equals(0)):
            f.give(target)
    with f.when(kind.equals(Kind.TEST) | kind.equals(Kind.HOLDS)):
        f.give(f.select(loop["iterations"] < loop["most"], following, target))
    with f.when(kind.equals(Kind.LATCH)):
        _latch(f, program, steer, loop)
    with f.when(kind.equals(Kind.END)):
        _end(f, steer, loop)
        f.give(following)
    with f.when(kind.equals(Kind.CHOOSE)):
        index = args.at(0).load().to(ctypes.c_int32).load()
        least = f.invoke("i64", "llvm.smax.i64", index, 0)
        chosen = f.invoke("i64", "llvm.smin.i64", least, steer["count"] - 1)
        goal = steer["items"].to(Target).at(chosen)
        f.give(f.select(field.equals(0), goal["call"], goal["segment"]))
    return target


def _begin(f: Procedure, program: Ref, steer: Ref, loop: Ref) -> None:
    loop["iterations"] = 0
    wanted = f.local(1)
    with f.when(~loop["counted"].is_null()):
        wanted.set(loop["counted"].to(Tape)["rows"])
        loop["most"] = wanted
    tape = loop["tape"].to(Tape)
    with f.when(~tape.is_null()):
        tape["rows"] = wanted
        with f.when(wanted > tape["room"]):
            _pause(f, program, steer, 1)  # it begins anew
    move(f, steer, 1, 0, 0)


def _latch(f: Procedure, program: Ref, steer: Ref, loop: Ref) -> None:
    """The end of an iteration. Returns from the function where the loop does not go on now."""
    with f.when(program["error"].to(i64).load("seq_cst").differs(0)):
        f.give(BEYOND)
    done = loop["iterations"] + 1
    loop["iterations"] = done
    move(f, steer, 0, 1, -1)
    tape = loop["tape"].to(Tape)
    with f.when(~tape.is_null()), f.when((done >= tape["room"]) & (done < loop["most"])):
        tape["rows"] = done + 1
        _pause(f, program, steer, 0)
    with f.when(system.now(f) > program["deadline"]):
        _pause(f, program, steer, 0)


def _pause(f: Procedure, program: Ref, steer: Ref, back: int) -> None:
    program["resume_call"] = steer["call"] - back
    program["resume_segment"] = steer["segment"] - back
    f.give(BEYOND)


def _end(f: Procedure, steer: Ref, loop: Ref) -> None:
    iterations = loop["iterations"]
    tape = loop["tape"].to(Tape)
    with f.when(~tape.is_null()):
        tape["rows"] = iterations
    move(f, steer, -1, -iterations, -(iterations & 1))

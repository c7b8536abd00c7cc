"""What ranks do without Python: messages of MPI, flags in memory that they share, copies."""

from __future__ import annotations

import ctypes

from weft.codegen.driver import system
from weft.codegen.procedure import Procedure, Ref, Word, i64, pointer, routine
from weft.transport.native import ExchangeTable, Meeting


@routine(ExchangeTable, result=i64)
def exchange(f: Procedure, messages: Ref) -> int:
    """Starts messages that were prepared once, and asks for their end.

    Whoever shares a processor with the other ranks lets them go on meanwhile.

    Returns:
        1 if all have arrived, 0 if not yet, MPI's error below 0.
    """
    count, requests = messages["count"].short(), messages["requests"]
    _check(f, messages["start"].call("i32", count, requests))
    flag = f.room(ctypes.c_int32)
    with f.count(messages["most"]) as i:
        with f.when((i & messages["mask"]).equals(0) & i.differs(0)):
            system.give_way(f)
        _check(f, messages["test"].call("i32", count, requests, flag, messages["statuses"]))
        with f.when(flag.load().differs(0)):
            f.give(1)
    return 0


def _check(f: Procedure, error: Word) -> None:
    with f.when(error.differs(0)):
        f.give(-error.wide())


@routine(Meeting, result=i64)
def meet(f: Procedure, meeting: Ref) -> int:
    """Raises a flag in memory that processes share, and waits for the same of the others.

    What was written to that memory before can be read by whoever has seen the flag.

    Returns:
        1 if all flags have the value, 0 if not yet.
    """
    flags, value, most = meeting["flags"].to(pointer), meeting["value"], meeting["most"]
    meeting["own"].to(i64).store(value, "release")
    looks = f.local(0)
    with f.count(meeting["count"]) as member:
        flag = flags.at(member).load().to(i64)
        with f.repeat() as asking:
            asking.leave(flag.load("acquire").equals(value))
            looks.set(looks + 1)
            with f.when(looks >= most):
                f.give(0)
            crowded = (looks & meeting["mask"]).equals(0)
            with f.when(crowded):
                system.give_way(f)
            with f.when(~crowded):
                system.relax(f)
    return 1


@routine(pointer, pointer, i64, result=i64)
def stream(f: Procedure, to: Word, source: Word, size: Word) -> int:
    """Copies bytes past the caches.

    A cache line that another processor has read lately is written so without asking that processor
    for it.
    """
    gap = -to.number() & 63
    at = f.local(f.select(size < gap, size, gap))
    system.copy(f, to, source, at)
    f.declarations.add("!0 = !{i32 1}")
    with f.repeat() as rest:
        rest.leave(at + 64 > size)
        data = f.load("<8 x i64>", f.offset(source.reg, at.reg), 1)
        f.line(f"store {data}, {f.offset(to.reg, at.reg)}, align 64, !nontemporal !0")
        at.set(at + 64)
    to, source = (Word(f, f.offset(p.reg, at.reg)) for p in (to, source))
    system.copy(f, to, source, size - at)
    f.full_fence()  # such stores are ordered only after this
    return 0

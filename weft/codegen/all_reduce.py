"""A kernel that reduces arrays over ranks in memory that they share, without calling Python.

It writes what this rank has to its slot, raises its flag and looks for those of the others. Once
all are up it adds up the slots, in the fixed tree of `weft.transport.reduction`. Where others take
long, where the communication thread is at work, while calls are traced, or after a failure, it is
Python's turn: the kernel calls the function in its table, or comes back with a stage short of the
end where there is none. The tables are those of `weft.transport.native`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from weft.codegen.builder import Reg, constant, vector
from weft.codegen.driver import system
from weft.codegen.procedure import Procedure, Ref, Word, i64, pointer, u8
from weft.passes.launch import SYMBOL, Kernel
from weft.transport.native import (
    BUSY,
    CALLS,
    DONE,
    FAILED,
    SENT,
    SHOWN,
    TRACED,
    CallTable,
    ChannelTable,
    Meeting,
)

_VECTOR_BYTES: Final = 64
_TYPES: Final = {"float32": "float", "float64": "double", "int32": "i32", "int64": "i64"}
MOST_MEMBERS: Final = 8
"""The kernel's text grows with their number."""


class _Sum(NamedTuple):
    """What is added up."""

    is_mean: bool
    type: str
    size: int  # bytes of an element
    members: int


def kernel(reduction: str, dtype: np.dtype[np.generic], members: int) -> Kernel | None:
    """The kernel of a reduction, `None` where there is none.

    Args:
        reduction: of `weft.transport.reduction.REDUCTIONS`.
        members: of the group.
    """
    type_ = _TYPES.get(dtype.name, "")
    is_mean = reduction == "mean" and type_ in ("float", "double")
    if not (type_ and (reduction == "sum" or is_mean) and 2 <= members <= MOST_MEMBERS):
        return None
    f = Procedure(SYMBOL, [("ptr", "args"), ("i64", "begin"), ("i64", "end"), ("i64", "thread")])
    _write(f, _Sum(is_mean, type_, dtype.itemsize, members))
    return Kernel(f"all_reduce_{reduction}_{dtype.name}_{members}", f.module())


def _write(f: Procedure, total: _Sum) -> None:
    args, *rest = (Word(f, param) for param in f.params)
    places = args.to(pointer)
    call = places.at(0).load().to(CallTable)
    channel = call["channel"].to(ChannelTable)
    python, mark = call["python"], call["mark"].to(i64)
    alone = python.is_null()
    call["stage"] = 0
    with f.when(~alone), f.when(call["error"].to(i64).load("seq_cst").differs(0)):
        # What would be sent was not computed: the others wait until they are told.
        mark.store(0)
        f.give()
    words = channel["words"].to(i64)
    state = words.at(BUSY).load() | words.at(TRACED).load() | words.at(FAILED).load()
    with f.when((state | channel["closed"]).differs(0)):
        with f.when(~alone):
            python.call("void", args, *rest)
        f.give()
    slots = _show(f, total, places, call, channel)
    with f.when(~_meet(f, call, channel, words).equals(1)):
        call["stage"] = SHOWN
        with f.when(alone):
            f.give()
        python.call("void", args, *rest)
        with f.when(mark.load().differs(0)):
            f.give()
    _add_up(f, total, places, call, slots)
    call["stage"] = DONE
    with f.when(~alone):
        mark.store(0)


def _show(f: Procedure, total: _Sum, places: Ref, call: Ref, channel: Ref) -> list[Word]:
    """Writes the arrays to this rank's slot; returns everybody's."""
    turn = channel["turn"] ^ 1
    channel["turn"] = turn
    first, slots = turn * total.members, channel["slots"].to(pointer)
    to = f.local(slots.at(first + channel["own"]).load())
    with f.count(call["arrays"]) as i:
        size = call["sizes"].to(i64).at(i).load() * total.size
        system.copy(f, to, places.at(i + 1).load(), size)
        to.set(to.to(u8).at(size))
    return [slots.at(first + i).load() for i in range(total.members)]


def _meet(f: Procedure, call: Ref, channel: Ref, words: Ref) -> Word:
    """Raises the flag, and looks for the others'; counts the call."""
    number = (channel["number"] + 1) & 0x7FFFFFFF
    channel["number"] = number
    meeting = channel.field("meetings").at(number & 1).load().to(Meeting)
    meeting["value"] = (number << 32) | call["tag"]
    channel["calls"] = channel["calls"] + 1
    words.at(CALLS).store(words.at(CALLS).load() + 1)
    words.at(SENT).store(words.at(SENT).load() + call["sent"])
    return channel["meet"].call("i64", meeting)


def _add_up(f: Procedure, total: _Sum, places: Ref, call: Ref, slots: list[Word]) -> None:
    """Reduces array by array, whole vectors first."""
    arrays, before = call["arrays"], f.local(0)  # elements of the arrays before this one
    with f.count(arrays) as i:
        size = call["sizes"].to(i64).at(i).load()
        y, j = places.at(arrays + i + 1).load(), f.local(0)
        for lanes in (_VECTOR_BYTES // total.size, 1):
            with f.repeat() as rounds:
                rounds.leave(j + lanes > size)
                at = (before + j).reg
                rows = [f.offset(slot.reg, at, total.type) for slot in slots]
                f.store(_sum(f, total, rows, lanes), f.offset(y.reg, j.reg, total.type), total.size)
                j.set(j + lanes)
        before.set(before + size)


def _sum(f: Procedure, total: _Sum, places: list[Reg], lanes: int) -> Reg:
    type_ = vector(total.type, lanes)
    rows = [f.load(type_, place, total.size) for place in places]
    add = "add" if total.type.startswith("i") else "fadd"
    while len(rows) > 1:  # neighbors, then neighbors among the sums
        pairs = zip(rows[::2], rows[1::2], strict=False)
        rows = [f.binary(add, x, y) for x, y in pairs] + rows[len(rows) & ~1 :]
    return f.binary("fdiv", rows[0], constant(total.members, type_)) if total.is_mean else rows[0]

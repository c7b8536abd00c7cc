"""A kernel that reduces arrays over ranks in memory that they share, without calling Python.

It writes what this rank has to its slot, raises its flag and looks for those of the others. Once
all are up it adds up the slots, in the fixed tree of `weft.transport.reduction`. Where others take
long, where the communication thread is at work, while calls are traced, or after a failure, it is
Python's turn: the kernel calls the function in its table, or comes back with a stage short of the
end where there is none. The tables are described in `weft.transport.native`.
"""

from __future__ import annotations

import string
from typing import Final

import numpy as np

from weft.passes.launch import SYMBOL, Kernel
from weft.transport.native import DONE, SHOWN

_VECTOR_BYTES: Final = 64
_TYPES: Final = {"float32": "float", "float64": "double", "int32": "i32", "int64": "i64"}
MOST_MEMBERS: Final = 8
"""The kernel's text grows with their number."""

_TEXT: Final = string.Template("""
%Channel = type { i64, i64, i64, i64, ptr, [2 x ptr], ptr, ptr, i64 }
%Call = type { ptr, i64, i64, ptr, i64, ptr, ptr, ptr, i64 }
%Meeting = type { i64, ptr, ptr, i64, i64, i64 }
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define void @$SYMBOL(ptr %args, i64 %begin, i64 %end, i64 %thread) nounwind {
entry:
  %call = load ptr, ptr %args
  %channel = load ptr, ptr %call
  %stage.p = getelementptr %Call, ptr %call, i64 0, i32 8
  store i64 0, ptr %stage.p
  %python.p = getelementptr %Call, ptr %call, i64 0, i32 5
  %python = load ptr, ptr %python.p
  %alone = icmp eq ptr %python, null
  %mark.p = getelementptr %Call, ptr %call, i64 0, i32 6
  %mark = load ptr, ptr %mark.p
  %error.p = getelementptr %Call, ptr %call, i64 0, i32 7
  %error = load ptr, ptr %error.p
  br i1 %alone, label %look, label %check
check:
  ; What would be sent was not computed: the others wait until they are told.
  %state = load atomic i64, ptr %error seq_cst, align 8
  %fine = icmp eq i64 %state, 0
  br i1 %fine, label %look, label %clear
look:
  %closed.p = getelementptr %Channel, ptr %channel, i64 0, i32 3
  %closed = load i64, ptr %closed.p
  %words.p = getelementptr %Channel, ptr %channel, i64 0, i32 4
  %words = load ptr, ptr %words.p
  %busy = load i64, ptr %words
  %traced.p = getelementptr i64, ptr %words, i64 1
  %traced = load i64, ptr %traced.p
  %failed.p = getelementptr i64, ptr %words, i64 4
  %failed = load i64, ptr %failed.p
  %either = or i64 %busy, %traced
  %ended = or i64 %failed, %closed
  %any = or i64 %either, %ended
  %free = icmp eq i64 %any, 0
  br i1 %free, label %show, label %whole
whole:
  br i1 %alone, label %out, label %ask
ask:
  call void %python(ptr %args, i64 %begin, i64 %end, i64 %thread)
  br label %out
show:
  %turn.p = getelementptr %Channel, ptr %channel, i64 0, i32 1
  %turn.before = load i64, ptr %turn.p
  %turn = xor i64 %turn.before, 1
  store i64 %turn, ptr %turn.p
  %slots.p = getelementptr %Channel, ptr %channel, i64 0, i32 7
  %slots = load ptr, ptr %slots.p
  %first = mul i64 %turn, $MEMBERS
  %own.p = getelementptr %Channel, ptr %channel, i64 0, i32 8
  %own = load i64, ptr %own.p
  %own.at = add i64 %first, %own
  %slot.p = getelementptr ptr, ptr %slots, i64 %own.at
  %slot = load ptr, ptr %slot.p
  %arrays.p = getelementptr %Call, ptr %call, i64 0, i32 2
  %arrays = load i64, ptr %arrays.p
  %sizes.p = getelementptr %Call, ptr %call, i64 0, i32 3
  %sizes = load ptr, ptr %sizes.p
  br label %copy.head
copy.head:
  %i = phi i64 [ 0, %show ], [ %i.next, %copy ]
  %to = phi ptr [ %slot, %show ], [ %to.next, %copy ]
  %copying = icmp ult i64 %i, %arrays
  br i1 %copying, label %copy, label %raise
copy:
  %i.next = add i64 %i, 1
  %from.p = getelementptr ptr, ptr %args, i64 %i.next
  %from = load ptr, ptr %from.p
  %size.p = getelementptr i64, ptr %sizes, i64 %i
  %size = load i64, ptr %size.p
  %bytes = mul i64 %size, $BYTES
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  %to.next = getelementptr i8, ptr %to, i64 %bytes
  br label %copy.head
raise:
  %number.before = load i64, ptr %channel
  %number.more = add i64 %number.before, 1
  %number = and i64 %number.more, 2147483647
  store i64 %number, ptr %channel
  %side = and i64 %number, 1
  %meeting.p = getelementptr %Channel, ptr %channel, i64 0, i32 5, i64 %side
  %meeting = load ptr, ptr %meeting.p
  %tag.p = getelementptr %Call, ptr %call, i64 0, i32 1
  %tag = load i64, ptr %tag.p
  %high = shl i64 %number, 32
  %value = or i64 %high, %tag
  %value.p = getelementptr %Meeting, ptr %meeting, i64 0, i32 3
  store i64 %value, ptr %value.p
  %calls.p = getelementptr %Channel, ptr %channel, i64 0, i32 2
  %calls = load i64, ptr %calls.p
  %calls.now = add i64 %calls, 1
  store i64 %calls.now, ptr %calls.p
  %all.p = getelementptr i64, ptr %words, i64 2
  %all = load i64, ptr %all.p
  %all.now = add i64 %all, 1
  store i64 %all.now, ptr %all.p
  %bytes.p = getelementptr i64, ptr %words, i64 3
  %bytes.before = load i64, ptr %bytes.p
  %sent.p = getelementptr %Call, ptr %call, i64 0, i32 4
  %sent = load i64, ptr %sent.p
  %bytes.now = add i64 %bytes.before, %sent
  store i64 %bytes.now, ptr %bytes.p
  %meet.p = getelementptr %Channel, ptr %channel, i64 0, i32 6
  %meet = load ptr, ptr %meet.p
  %met = call i64 %meet(ptr %meeting)
  %together = icmp eq i64 %met, 1
  br i1 %together, label %reduce, label %late
late:
  store i64 $SHOWN, ptr %stage.p
  br i1 %alone, label %out, label %wait
wait:
  call void %python(ptr %args, i64 %begin, i64 %end, i64 %thread)
  %left = load i64, ptr %mark
  %waited = icmp eq i64 %left, 0
  br i1 %waited, label %reduce, label %out
reduce:
$SLOTS
  br label %next
next:
  %a = phi i64 [ 0, %reduce ], [ %a.next, %reduced ]
  %above = phi i64 [ 0, %reduce ], [ %above.next, %reduced ]
  %reducing = icmp ult i64 %a, %arrays
  br i1 %reducing, label %array, label %through
array:
  %a.next = add i64 %a, 1
  %a.size.p = getelementptr i64, ptr %sizes, i64 %a
  %n = load i64, ptr %a.size.p
  %above.next = add i64 %above, %n
  %out.at = add i64 %arrays, %a.next
  %y.p = getelementptr ptr, ptr %args, i64 %out.at
  %y = load ptr, ptr %y.p
$LOOPS
reduced:
  br label %next
through:
  store i64 $DONE, ptr %stage.p
  br i1 %alone, label %out, label %clear
clear:
  store i64 0, ptr %mark
  br label %out
out:
  ret void
}
""")

_LOOP: Final = string.Template("""
  br label %$L.head
$L.head:
  %$L.j = phi i64 [ $BEGIN, %$BEFORE ], [ %$L.end, %$L.body ]
  %$L.end = add i64 %$L.j, $STEP
  %$L.more = icmp ule i64 %$L.end, %n
  br i1 %$L.more, label %$L.body, label %$AFTER
$L.body:
  %$L.at = add i64 %above, %$L.j
$ELEMENTS
  %$L.y = getelementptr $T, ptr %y, i64 %$L.j
  store $V %$L.$RESULT, ptr %$L.y, align $BYTES
  br label %$L.head
""")


def kernel(reduction: str, dtype: np.dtype[np.generic], members: int) -> Kernel | None:
    """The kernel of a reduction, `None` where there is none.

    Args:
        reduction: of `weft.transport.reduction.REDUCTIONS`.
        members: of the group.
    """
    kind = _TYPES.get(dtype.name)
    floating = kind in ("float", "double")
    added = reduction == "sum" or (reduction == "mean" and floating)
    if kind is None or not added:
        return None
    if not 2 <= members <= MOST_MEMBERS:
        return None
    lanes = _VECTOR_BYTES // dtype.itemsize
    wide = _loop("wide", reduction, kind, members, lanes, dtype.itemsize)
    one = _loop("one", reduction, kind, members, 1, dtype.itemsize)
    text = _TEXT.substitute(
        SYMBOL=SYMBOL, MEMBERS=members, BYTES=dtype.itemsize, SHOWN=SHOWN, DONE=DONE,
        SLOTS=_slots(members), LOOPS=wide + "one.begin:" + one,
    )  # fmt: skip
    return Kernel(f"all_reduce_{reduction}_{dtype.name}_{members}", text)


def _slots(members: int) -> str:
    """The addresses of all slots."""
    lines: list[str] = []
    for i in range(members):
        lines += [
            f"  %s{i}.at = add i64 %first, {i}",
            f"  %s{i}.p = getelementptr ptr, ptr %slots, i64 %s{i}.at",
            f"  %s{i} = load ptr, ptr %s{i}.p",
        ]
    return "\n".join(lines)


def _loop(label: str, reduction: str, kind: str, members: int, lanes: int, size: int) -> str:
    """A loop over elements, so many at a time."""
    vector = kind if lanes == 1 else f"<{lanes} x {kind}>"
    lines: list[str] = []
    for i in range(members):
        lines += [
            f"  %{label}.p{i} = getelementptr {kind}, ptr %s{i}, i64 %{label}.at",
            f"  %{label}.r{i} = load {vector}, ptr %{label}.p{i}, align {size}",
        ]
    floating = kind in ("float", "double")
    rows, count = [f"r{i}" for i in range(members)], 0
    while len(rows) > 1:  # neighbors, then neighbors among the sums
        for i in range(0, len(rows) - 1, 2):
            add = "fadd" if floating else "add"
            lines.append(
                f"  %{label}.t{count} = {add} {vector} %{label}.{rows[i]}, %{label}.{rows[i + 1]}"
            )
            rows[i], count = f"t{count}", count + 1
        rows = rows[::2]
    if reduction == "mean":
        by = f"{float(members)}"
        divisor = by if lanes == 1 else f"<{', '.join([f'{kind} {by}'] * lanes)}>"
        lines.append(f"  %{label}.mean = fdiv {vector} %{label}.{rows[0]}, {divisor}")
        rows = ["mean"]
    begin, before = ("0", "array") if lanes > 1 else ("%wide.j", "one.begin")
    return _LOOP.substitute(
        L=label, BEGIN=begin, BEFORE=before, STEP=lanes, T=kind, V=vector, BYTES=size,
        AFTER="one.begin" if lanes > 1 else "reduced", ELEMENTS="\n".join(lines), RESULT=rows[0],
    )  # fmt: skip

"""Functions with control flow: locals have the values that Python's would have."""

from __future__ import annotations

import ctypes

from weft.codegen.procedure import Machine, Procedure, Ref, Word, i64, module, routine, u8, u32
from weft.codegen.target import current
from weft.passes.launch import SYMBOL, Kernel
from weft.runtime.compilation.compiler import compile_kernels


class Table(ctypes.Structure):
    _fields_ = [
        ("rows", u32), ("sign", ctypes.c_int32), ("flags", u8 * 5), ("start", i64),
        ("values", i64 * 4),
    ]  # fmt: skip


@routine(i64, result=i64)
def steps(f: Procedure, start: Word) -> Word:
    """Of the Collatz sequence, or -1 for more than 100: leaves, goes on and returns in a loop."""
    x, count = f.local(start), f.local(0)
    with f.repeat() as rounds:
        rounds.leave(x.equals(1))
        count.set(count + 1)
        with f.when(count > 100):
            f.give(-1)
        with f.when((x & 1).equals(0)):
            x.set(x >> 1)
            rounds.again()
        x.set(x * 3 + 1)
    return count


@routine(Table, result=i64)
def total(f: Procedure, table: Ref) -> Word:
    """Calls another function, reads each type, and carries a local through nested loops."""
    y = f.local(table["start"])
    with f.count(table["rows"]) as i:
        value = table.field("values").at(i)
        value.store(steps(f, value.load()))
        with f.when(value.load() < 100), f.count(value.load()) as j:
            y.set(y + j)
    flag = table.field("flags").at(3)
    flag_is = f.select(flag.load().equals(255), 1000, 0)
    table.field("start").update("add", flag_is)
    return y + table["sign"]


def python_steps(x: int) -> int:
    count = 0
    while x != 1:
        count += 1
        if count > 100:
            return -1
        x = 3 * x + 1 if x & 1 else x >> 1
    return count


def test_locals_and_fields_are_as_in_python():
    text = f"@{SYMBOL} = constant ptr @total\n{module(Machine('', ''), total)}"
    kernel = Kernel("procedure", text)
    address = ctypes.c_void_p.from_address(compile_kernels([kernel], current())[kernel])
    call = ctypes.CFUNCTYPE(i64, ctypes.c_void_p)(address.value or 0)
    starts = (6, 27, 1, 7)  # the second takes 111 steps
    table = Table(3, -5, (u8 * 5)(0, 0, 0, 255, 0), 40, (i64 * 4)(*starts))
    expected = 40 - 5
    for start in starts[:3]:
        expected += sum(range(max(0, python_steps(start))))
    assert call(ctypes.addressof(table)) == expected
    assert list(table.values) == [*map(python_steps, starts[:3]), 7]
    assert table.start == 1040

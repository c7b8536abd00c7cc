"""The native functions of tables, compiled on first use."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from weft.codegen import table
from weft.codegen.table import rows
from weft.codegen.target import current
from weft.ir.dtype import float32, uint64
from weft.ir.function import Function
from weft.ir.node import TensorType, Value
from weft.ops.call import trace
from weft.passes.launch import Kernel
from weft.runtime.compilation.compiler import compile_kernels
from weft.table.first_row import Constant, FirstRow
from weft.table.optimizer import RowOptimizer

_ADDRESS: Final = ctypes.c_void_p
_COUNT: Final = ctypes.c_int64


class Functions(NamedTuple):
    """The functions of `weft.codegen.table`; they release Python's lock."""

    search: Callable[..., int]
    partition: Callable[..., int]
    unique: Callable[..., int]
    list_members: Callable[..., int]
    collect: Callable[..., int]
    read_rows: Callable[..., int]
    write_rows: Callable[..., int]
    drop: Callable[..., int]
    clear: Callable[..., int]


class RowFunctions(NamedTuple):
    """The functions of `weft.codegen.table.rows` for rows of a form."""

    form: rows.RowForm
    fill: int  # the address
    gather: Callable[..., None]
    spread: Callable[..., None]
    total: Callable[..., None]
    apply: Callable[..., None]


@functools.cache
def functions() -> Functions:
    """Those that do not depend on what rows consist of."""
    code = Kernel("tables", table.source())
    two, rows_of = (_ADDRESS, _ADDRESS), (_ADDRESS, _COUNT, _COUNT, _COUNT, _ADDRESS)
    one = (_ADDRESS,)
    members = (_ADDRESS, _ADDRESS, _COUNT, _ADDRESS, _ADDRESS, _ADDRESS, _COUNT)
    forms = (one, one, one, members, two, rows_of, rows_of, (_ADDRESS, _COUNT), one)
    places = table_of(code, len(forms))
    made = [
        ctypes.CFUNCTYPE(ctypes.c_int64, *form)(place)
        for form, place in zip(forms, places, strict=True)
    ]
    return Functions(*made)


def row_functions(width: int, optimizer: RowOptimizer, first: FirstRow) -> RowFunctions:
    """Those for rows of this width."""
    key = (width, optimizer.shape, first)
    found = _made.get(key)
    return found if found else _made.setdefault(key, _compiled(width, optimizer, first))


_made: Final[dict[Any, RowFunctions]] = {}


def _compiled(width: int, optimizer: RowOptimizer, first: FirstRow) -> RowFunctions:
    form = _form(width, optimizer, first)
    fill, *others = table_of(rows.kernel(form, current()), len(rows.ENTRIES))
    forms = (
        (_ADDRESS, _ADDRESS, _COUNT, _ADDRESS), (_ADDRESS, _ADDRESS, _ADDRESS, _COUNT, _ADDRESS),
        (_ADDRESS, _ADDRESS, _ADDRESS, _COUNT, _ADDRESS),
        (_ADDRESS, _COUNT, _ADDRESS, _ADDRESS, _ADDRESS, _ADDRESS),
    )  # fmt: skip
    made = [ctypes.CFUNCTYPE(None, *form)(place) for form, place in zip(forms, others, strict=True)]
    return RowFunctions(form, fill, *made)


def _form(width: int, optimizer: RowOptimizer, first: FirstRow) -> rows.RowForm:
    slots = len(optimizer.slots)
    begin = [first, *[Constant(value) for value in optimizer.beginnings()]]
    counter = TensorType(uint64, ())
    return rows.RowForm(
        width, slots, rule_of(optimizer), [trace(x.number, [counter]) for x in begin]
    )


def rule_of(optimizer: RowOptimizer) -> Function:
    """The rule as a function of numbers: (row, gradient, *slots, *rates) -> (row, *slots)."""
    slots = len(optimizer.slots)

    def rule(p: Value, g: Value, *rest: Value) -> tuple[Value, ...]:
        rates = dict(zip(optimizer.rates, rest[slots:], strict=True))
        return optimizer.rule(p, g, *rest[:slots], **rates).values

    return trace(rule, [TensorType(float32, ())] * (2 + slots + len(optimizer.rates)))


def table_of(code: Kernel, count: int) -> list[int]:
    """The addresses of the functions of a module, which has a table of them."""
    address = compile_kernels([code], current())[code]
    return [int(place or 0) for place in (ctypes.c_void_p * count).from_address(address)]


def rates_of(optimizer: RowOptimizer, step: int, lr: float | None) -> np.ndarray[Any, Any]:
    """The rates of an update, in the order in which native code reads them."""
    numbers = optimizer.numbers(step, optimizer.lr if lr is None else lr)
    return np.array([numbers[name] for name in optimizer.rates], np.float32)

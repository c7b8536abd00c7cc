"""Kernels for bags of rows of dense tables: sums of rows, and updates from the sums' gradients.

All tables of one width are one call. A gradient is added up in registers from the bags that have a
row, in their order, and the row and its optimizer's state are updated at once: no gradient of a row
is ever in memory.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from weft.codegen.builder import Reg, vector
from weft.codegen.loop.convert import register_type
from weft.codegen.procedure import (
    NO_MACHINE,
    Local,
    Procedure,
    Ref,
    Word,
    i64,
    module,
    pointer,
    routine,
    u32,
)
from weft.codegen.table.formula import Formula, lanes_for, pieces
from weft.codegen.table.hashing import prefetch
from weft.codegen.target import Target
from weft.ir.dtype import float32
from weft.ir.function import Function
from weft.passes.launch import SYMBOL, Kernel

SIZE: Final = float32.size
ENTRIES: Final = ("pool", "list_bags", "update")
"""The functions in the module's table, in order."""
SUMS: Final = 8
"""Vectors that are summed up at a time: wider rows are read in blocks of so many."""
ROWS_AHEAD: Final = 6
UPDATES_AHEAD: Final = 3
MOST_LINES: Final = 8


class Bags(ctypes.Structure):
    """Bags of several features of one width, those of a feature one after the other."""

    _fields_ = (
        ("features", i64),
        ("rows", pointer),  # the address of the rows of each feature's table
        ("sizes", pointer),  # how many rows that has
        ("columns", pointer),  # where the sums of each begin in a row of sums
        ("bags", i64),  # of each feature
        ("ids", pointer),
        ("offsets", pointer),  # where each bag begins, and the end
        ("factors", pointer),  # of each id; null if 1
        ("mean", i64),  # whether sums are divided by the number of ids
        ("sums", pointer),  # (bags, stride): the sums, or their gradients
        ("stride", i64),
        ("begin", i64),  # of the bags, or of the distinct ids, that are worked on
        ("end", i64),
        ("fault", i64),  # 1 + the position of an id that no table has
    )


class Lists(ctypes.Structure):
    """For each distinct id, the bags that have it; and what updates read besides."""

    _fields_ = (
        ("tables", i64),
        ("rows", pointer),  # the address of each table's rows
        ("found", pointer),  # the distinct ids
        ("starts", pointer),  # where those of each table begin, and the end
        ("inverse", pointer),  # 32 bits each: the place of each id in `found`
        ("members", pointer),  # where the bags of each distinct id begin, and the end
        ("following", pointer),  # as many as distinct ids, for use meanwhile
        ("listed", pointer),  # 32 bits each: the bags
        ("factors", pointer),  # of each listed bag; null if 1
        ("slots", pointer),  # the address of each slot of each table
        ("rates", pointer),
    )


@dataclass(frozen=True, eq=False)
class BagForm:
    """What is summed up and how it changes: see `weft.codegen.table.rows.RowForm`."""

    width: int
    slots: int
    rule: Function


def kernel(form: BagForm, target: Target) -> Kernel:
    """The module for tables of a form."""
    writer = _Writer(form, lanes_for(target.vector_bits, float32))
    routines = [
        routine(Bags)(writer.pool),
        routine(Bags, Lists)(writer.list_bags),
        routine(Bags, Lists)(writer.update),
    ]
    addresses = ", ".join([f"ptr @{name}" for name in ENTRIES])
    table = f"@{SYMBOL} = constant [{len(ENTRIES)} x ptr] [{addresses}]"
    return Kernel(f"bags_{form.width}_{form.slots}", f"{table}\n{module(NO_MACHINE, *routines)}")


class _Writer:
    """Writes the functions."""

    def __init__(self, form: BagForm, lanes: int) -> None:
        self.form = form
        every = pieces(form.width, lanes)
        self.blocks = [every[i : i + SUMS] for i in range(0, len(every), SUMS)]
        self.lanes = lanes

    def pool(self, f: Procedure, bags: Ref) -> None:
        """The sums of the bags from `begin` to `end`."""
        count, ids, offsets = bags["bags"], bags["ids"].to(i64), bags["offsets"].to(i64)
        n, end = f.local(bags["begin"]), bags["end"]
        factors, mean = bags["factors"], bags["mean"].differs(0)
        with f.repeat() as rounds:
            rounds.leave(n >= end)
            t = n // count
            table, size = bags["rows"].to(pointer).at(t).load(), bags["sizes"].to(i64).at(t).load()
            start, stop = offsets.at(n).load(), offsets.at(n + 1).load()
            to = self._sums(f, bags, n - t * count, t)
            for block in self.blocks:
                sums = _zeros(f, block)
                i = f.local(start)
                with f.repeat() as each:
                    each.leave(i >= stop)
                    # Beyond the bag are those of the next ones; at the end of all, the first
                    later = i + ROWS_AHEAD
                    later = f.select(later < offsets.at(n + 1).load(), later, start)
                    self._ask(f, self._row(f, table, ids.at(later).load()))
                    id = ids.at(i).load()
                    with f.when(id >= size):
                        bags["fault"] = i + 1
                    row = self._row(f, table, f.select(id < size, id, 0))
                    factor = _factor(f, factors, i)
                    for total, (at, lanes) in zip(sums, block, strict=True):
                        x = f.binary("fmul", _get(f, row, at, lanes), f.splat(factor.reg, lanes))
                        total.set(Word(f, f.binary("fadd", total.reg, x)))
                    i.set(i + 1)
                share = _share(f, mean, stop - start)
                for total, (at, lanes) in zip(sums, block, strict=True):
                    y = f.binary("fdiv", total.reg, f.splat(share.reg, lanes))
                    f.store(y, f.offset(to.reg, at * SIZE), 4)
            n.set(n + 1)

    def list_bags(self, f: Procedure, bags: Ref, lists: Ref) -> None:
        """The bags of each distinct id, in order; `members` has how many at first."""
        count, offsets = bags["bags"], bags["offsets"].to(i64)
        members, following = lists["members"].to(i64), lists["following"].to(i64)
        inverse, listed = lists["inverse"].to(u32), lists["listed"].to(u32)
        factors, kept = bags["factors"], lists["factors"]
        total, distinct = f.local(0), lists["starts"].to(i64).at(lists["tables"]).load()
        with f.count(distinct) as u:
            size = members.at(u).load()
            members.at(u).store(total)
            following.at(u).store(total)
            total.set(total + size)
        members.at(distinct).store(total)
        first = offsets.at(0).load()
        with f.count(count * bags["features"]) as n:
            i, end = f.local(offsets.at(n).load()), offsets.at(n + 1).load()
            with f.repeat() as each:
                each.leave(i >= end)
                turn = following.at(inverse.at(i - first).load())
                at = turn.load()
                turn.store(at + 1)
                listed.at(at).store(n.short())
                with f.when(~kept.is_null()):
                    f.store(_factor(f, factors, i).reg, f.offset(kept.reg, (at * SIZE).reg), 4)
                i.set(i + 1)

    def update(self, f: Procedure, bags: Ref, lists: Ref) -> None:
        """Updates the rows of the distinct ids from `begin` to `end`."""
        form, starts = self.form, lists["starts"].to(i64)
        inputs, rates = form.rule.inputs, lists["rates"]
        given, numbers = inputs[: 2 + form.slots], inputs[2 + form.slots :]
        fixed = {
            value: f.load(register_type(value.dtype), f.offset(rates.reg, SIZE * i), 4)
            for i, value in enumerate(numbers)
        }
        formula = Formula(f, form.rule, given, fixed)
        formula.hoist(self.lanes)
        first, last = bags["begin"], bags["end"]
        with f.count(lists["tables"]) as t:
            begin, end = starts.at(t).load(), starts.at(t + 1).load()
            u = f.local(f.select(begin < first, first, begin))
            end = f.select(end > last, last, end)
            bases = self._bases(f, lists, t)
            with f.repeat() as rounds:
                rounds.leave(u >= end)
                self._update_row(f, formula, bags, lists, (u, end), bases)
                u.set(u + 1)

    def _bases(self, f: Procedure, lists: Ref, t: Word) -> list[Word]:
        """Where the rows and each slot of a table are."""
        slots = lists["slots"].to(pointer)
        others = [slots.at(t * self.form.slots + k).load() for k in range(self.form.slots)]
        return [lists["rows"].to(pointer).at(t).load(), *others]

    def _update_row(
        self, f: Procedure, formula: Formula, bags: Ref, lists: Ref,
        place: tuple[Word, Word], bases: Sequence[Word],
    ) -> None:  # fmt: skip
        u, end = place
        found, members = lists["found"].to(i64), lists["members"].to(i64)
        with f.when((u + UPDATES_AHEAD) < end):
            id = found.at(u + UPDATES_AHEAD).load()
            for base in bases:
                self._ask(f, self._row(f, base, id), writes=True)
        id, start, stop = found.at(u).load(), members.at(u).load(), members.at(u + 1).load()
        parts = [self._row(f, base, id) for base in bases]
        for block in self.blocks:
            sums = self._gradient(f, bags, lists, (start, stop), block)
            for (at, lanes), g in zip(block, sums, strict=True):
                p, *slots = [_get(f, part, at, lanes) for part in parts]
                new = formula([p, g.reg, *slots], lanes)
                for value, part in zip(new, parts, strict=True):
                    f.store(value, f.offset(part.reg, at * SIZE), 4)

    def _gradient(
        self, f: Procedure, bags: Ref, lists: Ref, place: tuple[Word, Word],
        block: Sequence[tuple[int, int]],
    ) -> list[Local]:  # fmt: skip
        """The gradient of some columns of a row: the sum over its bags."""
        start, stop = place
        listed, factors, count = lists["listed"].to(u32), lists["factors"], bags["bags"]
        offsets, mean = bags["offsets"].to(i64), bags["mean"].differs(0)
        sums, j = _zeros(f, block), f.local(start)
        with f.repeat() as each:
            each.leave(j >= stop)
            n = listed.at(j).load()
            feature = n // count
            g = self._sums(f, bags, n - feature * count, feature)
            share = _share(f, mean, offsets.at(n + 1).load() - offsets.at(n).load())
            factor = f.binary("fdiv", _factor(f, factors, j).reg, share.reg)
            for total, (at, lanes) in zip(sums, block, strict=True):
                x = f.binary("fmul", _get(f, g, at, lanes), f.splat(factor, lanes))
                total.set(Word(f, f.binary("fadd", total.reg, x)))
            j.set(j + 1)
        return sums

    def _sums(self, f: Procedure, bags: Ref, bag: Word, feature: Word) -> Word:
        """Where the sums of a feature's bag are."""
        column = bags["columns"].to(i64).at(feature).load()
        at = (bag * bags["stride"] + column) * SIZE
        return Ref(f, f.offset(bags["sums"].reg, at.reg), pointer)

    def _row(self, f: Procedure, base: Word, index: Word) -> Word:
        return Ref(f, f.offset(base.reg, (index * (self.form.width * SIZE)).reg), pointer)

    def _ask(self, f: Procedure, row: Word, writes: bool = False) -> None:
        for line in range(0, min(self.form.width * SIZE, 64 * MOST_LINES), 64):
            prefetch(f, Ref(f, f.offset(row.reg, line), pointer), writes)


def _zeros(f: Procedure, block: Sequence[tuple[int, int]]) -> list[Local]:
    return [f.local(Word(f, Reg(vector("float", n), _zero(n)))) for _, n in block]


def _zero(lanes: int) -> str:
    return "zeroinitializer" if lanes > 1 else "0.0"


def _one(f: Procedure) -> Word:
    return Word(f, Reg("float", "1.0"))


def _get(f: Procedure, row: Word, at: int, lanes: int) -> Reg:
    return f.load(vector("float", lanes), f.offset(row.reg, at * SIZE), 4)


def _factor(f: Procedure, factors: Word, i: Word) -> Word:
    """What an id counts: its factor, or 1 where there are none."""
    factor = f.local(_one(f))
    with f.when(~factors.is_null()):
        factor.set(Word(f, f.load("float", f.offset(factors.reg, (i * SIZE).reg), 4)))
    return factor


def _share(f: Procedure, mean: Word, count: Word) -> Word:
    """What a sum is divided by: 1, or how many were added up, where that is not 0."""
    number = f.instruction("float", f"sitofp {count.reg} to float")
    return f.select(mean & count.differs(0), number, _one(f))

"""Kernels for rows of one width: made, gathered, spread, summed up, updated by a rule.

A row has `width` numbers, then as many for each slot of the optimizer, each part padded to 16
bytes. All loops over a row are unrolled vectors, for which the width is a constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from weft.codegen.builder import Reg, constant, vector
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
from weft.codegen.table.hashing import mixed, prefetch
from weft.codegen.target import Target
from weft.ir.dtype import float32
from weft.ir.function import Function
from weft.ops.random.counter_based import random_bits
from weft.passes.launch import SYMBOL, Kernel

SIZE: Final = float32.size
PART_BYTES: Final = 16
ROWS_AHEAD: Final = 8
"""How many rows before its turn a row's memory is asked for."""
SUMS: Final = 8
"""Vectors of a gradient that are summed up at a time."""
MOST_LINES: Final = 4
"""Lines of a row that are asked for; the processor fetches what follows by itself."""


@dataclass(frozen=True, eq=False)
class RowForm:
    """What rows consist of and how they change.

    Attributes:
        width: numbers of a row.
        slots: how many parts the optimizer's state has.
        rule: (row, gradient, *slots, *rates) -> (row, *slots), of numbers.
        first: one function for the row and each slot; its `random_bits`, if there are any, become
            those of the id and the column.
    """

    width: int
    slots: int
    rule: Function
    first: Sequence[Function]

    @property
    def part_bytes(self) -> int:
        """Bytes of the row, or of one slot."""
        return -(-self.width * SIZE // PART_BYTES) * PART_BYTES

    @property
    def row_bytes(self) -> int:
        """Bytes of all."""
        return self.part_bytes * (1 + self.slots)


ENTRIES: Final = ("fill", "gather", "spread", "total", "apply")
"""The functions in the module's table, in order."""


def kernel(form: RowForm, target: Target) -> Kernel:
    """The module for rows of a form."""
    writer = _Writer(form, lanes_for(target.vector_bits, float32))
    routines = [
        routine(pointer, i64)(writer.fill),
        routine(pointer, pointer, i64, pointer)(writer.gather),
        routine(pointer, pointer, pointer, i64, pointer)(writer.spread),
        routine(pointer, pointer, pointer, i64, pointer)(writer.total),
        routine(pointer, i64, pointer, pointer, pointer, pointer)(writer.apply),
    ]
    addresses = ", ".join([f"ptr @{name}" for name in ENTRIES])
    table = f"@{SYMBOL} = constant [{len(ENTRIES)} x ptr] [{addresses}]"
    return Kernel(f"rows_{form.width}_{form.slots}", f"{table}\n{module(NO_MACHINE, *routines)}")


class _Writer:
    """Writes the functions."""

    def __init__(self, form: RowForm, lanes: int) -> None:
        self.form = form
        self.pieces = pieces(form.width, lanes)
        self.blocks = [self.pieces[i : i + SUMS] for i in range(0, len(self.pieces), SUMS)]
        self.lanes = lanes

    def fill(self, f: Procedure, row: Word, id: Word) -> None:
        """The first content of a row."""
        hash = mixed(f, id)
        words = hash.short(), (hash >> 32).short()
        for number, function in enumerate(self.form.first):
            bits = [n.outputs[0] for n in function.nodes if n.op == random_bits.name]
            formula = Formula(f, function, bits, {})
            for at, lanes in self.pieces:
                drawn = [_bits(f, words, at, lanes, number)] if bits else []
                (x,) = formula(drawn, lanes)
                f.store(x, self._place(f, row, number, at), 4)

    def gather(self, f: Procedure, rows: Word, order: Word, count: Word, out: Word) -> None:
        """out[order[i]] = the row at address i, zeros where there is none; see `spread`."""
        places = rows.to(pointer)
        with f.count(count) as i:
            later = i + ROWS_AHEAD
            with f.when(later < count):
                self._ask(f, places.at(later).load(), writes=False)
                with f.when(~order.is_null()):
                    self._ask(f, self._row(f, out, order.to(u32).at(later).load()), writes=True)
            row = places.at(i).load()
            missing, to = row.is_null(), self._row(f, out, _at(f, order, i))
            with f.when(missing):
                for at, lanes in self.pieces:
                    self._put(f, to, at, _zero(lanes), lanes)
            with f.when(~missing):
                self._copy(f, row, to)

    def spread(
        self, f: Procedure, content: Word, inverse: Word, order: Word, count: Word, out: Word
    ) -> None:
        """out[order[i]] = content[inverse[i]], where a null list is 0, 1, 2 and so on."""
        with f.count(count) as i:
            later = i + ROWS_AHEAD
            with f.when(later < count):
                self._ask(f, self._row(f, content, _at(f, inverse, later)), writes=False)
                self._ask(f, self._row(f, out, _at(f, order, later)), writes=True)
            source = self._row(f, content, _at(f, inverse, i))
            self._copy(f, source, self._row(f, out, _at(f, order, i)))

    def total(
        self, f: Procedure, gradients: Word, inverse: Word, order: Word, count: Word, out: Word
    ) -> None:
        """out[inverse[i]] += gradients[order[i]], in this order."""
        with f.count(count) as i:
            later = i + ROWS_AHEAD
            with f.when(later < count):
                self._ask(f, self._row(f, gradients, _at(f, order, later)), writes=False)
                self._ask(f, self._row(f, out, _at(f, inverse, later)), writes=True)
            g = self._row(f, gradients, _at(f, order, i))
            to = self._row(f, out, _at(f, inverse, i))
            for at, lanes in self.pieces:
                x, y = (self._get(f, p, at, lanes) for p in (to, g))
                self._put(f, to, at, f.binary("fadd", x, y), lanes)

    def apply(
        self, f: Procedure, rows: Word, count: Word, gradients: Word, members: Word, listed: Word,
        rates: Word,
    ) -> None:  # fmt: skip
        """Updates rows by the rule; those that have no address are left out.

        The gradient of row i is the sum of gradients[listed[j]] for j from members[i] to
        members[i + 1], or gradients[listed[i]] where there are no members.
        """
        form, places = self.form, rows.to(pointer)
        inputs = form.rule.inputs
        given, numbers = inputs[: 2 + form.slots], inputs[2 + form.slots :]
        fixed = {
            value: f.load(register_type(value.dtype), f.offset(rates.reg, SIZE * i), 4)
            for i, value in enumerate(numbers)
        }
        formula = Formula(f, form.rule, given, fixed)
        formula.hoist(self.lanes)
        with f.count(count) as i:
            later = i + ROWS_AHEAD
            with f.when(later < count):
                self._ask(f, places.at(later).load(), writes=True)
                g = self._row(f, gradients, _at(f, listed, _start(f, members, later)))
                self._ask(f, g, writes=False)
            row = places.at(i).load()
            first, last = _start(f, members, i), _start(f, members, i + 1)
            with f.when(~row.is_null()):
                for block in self.blocks:
                    sums = self._summed(f, gradients, listed, (first, last), block)
                    for g, (at, lanes) in zip(sums, block, strict=True):
                        self._update(f, formula, row, g.reg, at, lanes)

    def _summed(
        self, f: Procedure, gradients: Word, listed: Word, bounds: tuple[Word, Word],
        block: Sequence[tuple[int, int]],
    ) -> list[Local]:  # fmt: skip
        sums = [f.local(Word(f, _zero(lanes))) for _, lanes in block]
        j = f.local(bounds[0])
        with f.repeat() as each:
            each.leave(j >= bounds[1])
            g = self._row(f, gradients, _at(f, listed, j))
            for total, (at, lanes) in zip(sums, block, strict=True):
                x = self._get(f, g, at, lanes)
                total.set(Word(f, f.binary("fadd", total.reg, x)))
            j.set(j + 1)
        return sums

    def _update(
        self, f: Procedure, formula: Formula, row: Word, g: Reg, at: int, lanes: int
    ) -> None:  # fmt: skip
        parts = [self._place(f, row, number, at) for number in range(1 + self.form.slots)]
        p, *slots = [f.load(vector("float", lanes), place, 4) for place in parts]
        new = formula([p, g, *slots], lanes)
        for value, place in zip(new, parts, strict=True):
            f.store(value, place, 4)

    def _place(self, f: Procedure, row: Word, number: int, at: int) -> Reg:
        return f.offset(row.reg, number * self.form.part_bytes + at * SIZE)

    def _row(self, f: Procedure, base: Word, index: Word) -> Word:
        """The address of a row in an array of them."""
        return Ref(f, f.offset(base.reg, (index * (self.form.width * SIZE)).reg), pointer)

    def _ask(self, f: Procedure, row: Word, writes: bool) -> None:
        parts = 1 + self.form.slots if writes else 1
        size = self.form.width * SIZE + (parts - 1) * self.form.part_bytes
        for line in range(0, min(size, 64 * MOST_LINES), 64):
            prefetch(f, Ref(f, f.offset(row.reg, line), pointer), writes)

    def _get(self, f: Procedure, row: Word, at: int, lanes: int) -> Reg:
        return f.load(vector("float", lanes), f.offset(row.reg, at * SIZE), 4)

    def _put(self, f: Procedure, row: Word, at: int, x: Reg, lanes: int) -> None:
        f.store(x, f.offset(row.reg, at * SIZE), 4)

    def _copy(self, f: Procedure, source: Word, to: Word) -> None:
        for at, lanes in self.pieces:
            self._put(f, to, at, self._get(f, source, at, lanes), lanes)


def _zero(lanes: int) -> Reg:
    return Reg(vector("float", lanes), "zeroinitializer" if lanes > 1 else "0.0")


def _start(f: Procedure, members: Word, i: Word) -> Word:
    """members[i], or i where there are none."""
    found = f.local(i)
    with f.when(~members.is_null()):
        found.set(members.to(i64).at(i).load())
    return found


def _at(f: Procedure, places: Word, i: Word) -> Word:
    """places[i], or i where there is no list; which of both is decided in each round."""
    found = f.local(i)
    with f.when(~places.is_null()):
        found.set(places.to(u32).at(i).load())
    return found


def _bits(f: Procedure, words: tuple[Word, Word], at: int, lanes: int, part: int) -> Reg:
    """32 random bits for each column, from the hash of the id: two rounds of mixing.

    Source: Appleby, MurmurHash3's finalizer.
    """
    type_ = vector("i32", lanes)
    first, second = (f.splat(word.reg, lanes) for word in words)
    column = [_signed((at + i + 1) * 0x9E3779B9 + part * 0x85EBCA6B) for i in range(lanes)]
    text = f"<{', '.join([f'i32 {c}' for c in column])}>" if lanes > 1 else str(column[0])
    x = f.binary("add", first, Reg(type_, text))
    for word in (second, first):
        x = f.binary("xor", x, f.binary("lshr", x, constant(16, type_)))
        x = f.binary("mul", x, constant(_signed(0x85EBCA6B), type_))
        x = f.binary("xor", x, f.binary("lshr", x, constant(13, type_)))
        x = f.binary("mul", x, constant(_signed(0xC2B2AE35), type_))
        x = f.binary("xor", f.binary("xor", x, f.binary("lshr", x, constant(16, type_))), word)
    return x


def _signed(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value

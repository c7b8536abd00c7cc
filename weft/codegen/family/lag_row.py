"""Updates of one row of lagged tables, in registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from weft.codegen.builder import Builder, Reg, constant, integer, vector
from weft.codegen.contraction.emit import read, smaller, subtract, write
from weft.codegen.family.emit import Part, ask_for, load_index, over_vectors
from weft.codegen.loop.arithmetic import compute, literal
from weft.codegen.loop.expression import Expr, Expressions, needed
from weft.codegen.loop.index import Symbol
from weft.ir.dtype import DType, float32, int32
from weft.ir.extent import smallest
from weft.ir.node import Value
from weft.ops.boundary.state import CONSTANT
from weft.ops.call import Subgraph
from weft.ops.declaration import Elementwise, op_of
from weft.ops.indexing.lagged_table import NEVER, PERIOD

WORD: Final = 4  # bytes of float32 and int32, the only types here
AHEAD: Final = 2
"""Prefetch distance in rows; the hardware cannot predict where rows lie."""
MOST: Final = 1024
"""Bytes of a row to prefetch: the hardware fetches the rest."""


@dataclass(frozen=True)
class Lagging:
    """`count` tables of `rows` rows of `width` elements, and `indices` indices of rows."""

    rows: int
    width: int
    count: int
    indices: int
    index: DType
    lanes: int
    rule: Subgraph

    @property
    def row(self) -> int:
        """Bytes of a row."""
        return self.width * WORD


def step_at(f: Builder, pointer: Reg, at: Reg) -> Reg:
    """An `int32` from memory as `i64`."""
    return load_index(f, pointer, at, int32)


class _Rule:
    """A rule as expressions of (p, g, *state, *numbers)."""

    def __init__(self, rule: Subgraph) -> None:
        build = Expressions()
        count = len(rule.inputs)
        self.inputs = [build.local(Symbol(f"x{i}"), float32) for i in range(count)]
        found: dict[Value, Expr] = dict(zip(rule.inputs, self.inputs, strict=True))
        for node in rule.nodes:
            if op_of(node) is CONSTANT:
                found[node.outputs[0]] = build.const(node.attrs["value"].array, node.types[0].dtype)
                continue
            lower = op_of(node).lower
            assert isinstance(lower, Elementwise)
            args = [found[v] for v in node.inputs]
            found[node.outputs[0]] = lower.rule(build, *args, **node.attrs)
        self.outputs = [found[y] for y in rule.outputs]
        self.order = needed(self.outputs)

    def __call__(self, f: Builder, inputs: Sequence[Reg], lanes: int) -> list[Reg]:
        """The new p and state for one vector."""
        regs = {x.serial: reg for x, reg in zip(self.inputs, inputs, strict=True)}
        for x in self.order:
            if x.op == "const":
                regs[x.serial] = literal(x.data, x.dtype, lanes)
            elif x.serial not in regs:
                regs[x.serial] = compute(f, x, [regs[a.serial] for a in x.args])
        return [regs[y.serial] for y in self.outputs]


class RowGradients(NamedTuple):
    """Rows of gradients, `pitch` bytes apart; lists of the gradients of a table's row."""

    rows: Reg
    pitch: int
    begin: Reg
    following: Reg


class Rows:
    """Writes the update of one row of all tables."""

    def __init__(self, f: Builder, problem: Lagging, history: Reg, tables: Sequence[Reg]) -> None:
        self.f = f
        self.problem = problem
        self.history = history
        self.tables = tables
        self.rule = _Rule(problem.rule)
        self.numbers = len(problem.rule.inputs) - problem.count - 1
        self.type = vector("float", problem.lanes)

    def place(self, table: Reg, row: Reg) -> Reg:
        """The address of a row."""
        return self.f.offset(table, self.f.mul(row, self.problem.row))

    def ask(self, indices: Reg, position: Reg, tables: Sequence[Reg], write: bool = False) -> None:
        """Prefetches rows, in some of the tables, that a later index names."""
        f, problem = self.f, self.problem
        at = smaller(f, f.add(position, AHEAD), integer(problem.indices - 1))
        row = load_index(f, indices, at, problem.index)
        for table in tables:
            ask_for(f, self.place(table, row), smallest(problem.row, MOST), 3, write)

    def look(self, row: Reg, steps: tuple[Reg, Reg], to: Reg, output: int) -> None:
        """Computes the row of table `output` after steps from `steps[0]` up to `steps[1]`."""

        def body(start: Reg, parts: Sequence[Part]) -> None:
            state = self.missed(self.load(row, start, parts), *steps)
            self.store(state, to, start, parts, output)

        over_vectors(self.f, self.problem.width, self.problem.lanes, body)

    def update(self, row: Reg, since: Reg, now: Reg, gradient: RowGradients | None) -> None:
        """Updates a row up to step `now`, the last one with its gradient."""
        f = self.f
        moves = f.compare("icmp ne", since, integer(NEVER))
        before = subtract(f, now, integer(1))
        since = f.emit("i64", f"select {moves}, {since}, {before}")
        until = now if gradient is None else before

        def body(start: Reg, parts: Sequence[Part]) -> None:
            state = self.missed(self.load(row, start, parts), since, until)
            if gradient is not None:
                state = self.step(state, self.total(gradient, start, parts), now)
            for i, table in enumerate(self.tables):
                self.store(state, self.place(table, row), start, parts, i)

        over_vectors(f, self.problem.width, self.problem.lanes, body)

    def load(self, row: Reg, start: Reg, parts: Sequence[Part]) -> list[list[Reg]]:
        """Loads, for each part, a vector of each table."""
        places = [self.place(table, row) for table in self.tables]
        return [[self._read(place, start, part) for place in places] for part in parts]

    def _at(self, place: Reg, start: Reg, part: Part) -> Reg:
        return self.f.offset(place, self.f.mul(self.f.add(start, part.first), WORD))

    def _read(self, place: Reg, start: Reg, part: Part) -> Reg:
        at = self._at(place, start, part)
        return read(self.f, at, self.problem.lanes, float32, float32, part.mask)

    def store(
        self, state: list[list[Reg]], to: Reg, start: Reg, parts: Sequence[Part], table: int
    ) -> None:
        """Stores a table's vectors to a row."""
        for part, values in zip(parts, state, strict=True):
            write(self.f, values[table], self._at(to, start, part), float32, part.mask)

    def missed(self, state: list[list[Reg]], since: Reg, until: Reg) -> list[list[Reg]]:
        """The state after steps without a gradient: those after `since`, up to `until`."""
        f, count = self.f, self.problem.count
        flat = [reg for values in state for reg in values]
        zeros = [constant(0, self.type)] * len(state)
        with f.loop(f.add(since, 1), f.add(until, 1), carried=flat) as loop:
            now = [loop.carried[i : i + count] for i in range(0, len(flat), count)]
            found = self.step(now, zeros, loop.index)
            loop.next = [reg for values in found for reg in values]
        return [loop.results[i : i + count] for i in range(0, len(flat), count)]

    def step(self, state: list[list[Reg]], g: Sequence[Reg], step: Reg) -> list[list[Reg]]:
        """The state after a step."""
        f, lanes = self.f, self.problem.lanes
        row = f.mul(f.binary("and", step, integer(PERIOD)), self.numbers * WORD)
        place = f.offset(self.history, row)
        numbers = [
            f.splat(f.load("float", f.offset(place, i * WORD), WORD), lanes)
            for i in range(self.numbers)
        ]
        return [
            self.rule(f, [values[0], gradient, *values[1:], *numbers], lanes)
            for values, gradient in zip(state, g, strict=True)
        ]

    def total(self, gradient: RowGradients, start: Reg, parts: Sequence[Part]) -> list[Reg]:
        """The sum of a row's gradients, in the order of the indices."""
        f, following = self.f, gradient.following
        place = f.offset(gradient.rows, f.mul(gradient.begin, gradient.pitch))
        totals = [self._read(place, start, part) for part in parts]
        head, body, after = (f.label(name) for name in ("more", "add", "added"))
        entry = f.label("sum")
        f.jump(entry)
        f.start(entry)
        second = step_at(f, following, gradient.begin)
        f.jump(head)
        f.start(head)
        at = Reg("i64", f.fresh())
        sums = [Reg(self.type, f.fresh()) for _ in parts]
        latch = f.label("latch")
        again, added = Reg("i64", f.fresh()), [Reg(self.type, f.fresh()) for _ in parts]
        for reg, one, other in zip((at, *sums), (second, *totals), (again, *added), strict=True):
            sources = f"[ {one.text}, %{entry} ], [ {other.text}, %{latch} ]"
            f.line(f"{reg.text} = phi {reg.type} {sources}")
        f.branch(f.compare("icmp sge", at, integer(0)), body, after)
        f.start(body)
        place = f.offset(gradient.rows, f.mul(at, gradient.pitch))
        for part, reg, new in zip(parts, sums, added, strict=True):
            value = self._read(place, start, part)
            f.line(f"{new.text} = fadd {reg}, {value.text}")
        found = step_at(f, following, at)
        f.line(f"{again.text} = add {found}, 0")
        f.jump(latch)
        f.start(latch)
        f.jump(head)
        f.start(after)
        return sums

"""Lazy updates of lagged tables (`weft.ops.indexing.lagged_table`); missed steps catch up in
registers.

An update goes through the indices once. The first index that names a row owns it: it adds up the
gradients of all indices of that row (in order, along a linked list that one thread builds in some
10 cycles an index), and catches up with missed steps. So each row is read and written once, no two
chunks write one row, and results do not depend on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from weft.codegen.builder import Builder, Reg, constant, integer, kernel_builder, vector
from weft.codegen.contraction.emit import read, smaller, subtract, write
from weft.codegen.family.emit import (
    Part,
    check_index,
    chunks_of,
    copy_bytes,
    load_index,
    over_rows,
    over_vectors,
    vector_lanes,
)
from weft.codegen.loop.arithmetic import compute, literal
from weft.codegen.loop.expression import Expr, Expressions, needed
from weft.codegen.loop.index import Symbol
from weft.codegen.microkernel import LINE, prefetch
from weft.codegen.target import Target
from weft.ir.dtype import DType, float32, int32
from weft.ir.node import Value
from weft.ir.shape import known, size
from weft.ops.base import Elementwise, op_of
from weft.ops.boundary.state import CONSTANT
from weft.ops.call import Subgraph
from weft.ops.indexing.lagged_table import NEVER, PERIOD
from weft.passes.group import Group
from weft.passes.launch import ERROR, Kernel, Launch, Scratch

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


def _lagging(group: Group, table: Value, count: int, indices: Value, target: Target) -> Lagging:
    dims = known(table.shape)
    width = math.prod(dims[1:])
    lanes = 1 if width == 1 else vector_lanes(float32, target.vector_bits)
    rule: Subgraph = group.nodes[0].attrs["rule"]
    return Lagging(dims[0], width, count, size(indices.shape), indices.dtype, lanes, rule)


def lag_gather(group: Group, target: Target) -> tuple[Launch, ...]:
    """Copies rows that are up to date, and catches up with the others."""
    node = group.nodes[0]
    x, indices, clock, last, history, *slots = node.data_inputs
    problem = _lagging(group, x, 1 + len(slots), indices, target)
    if not problem.indices * problem.width:
        return ()
    y = 5 + len(slots)
    per_chunk, chunks = chunks_of(problem.indices, problem.row + 16)
    f = kernel_builder()
    tables = [f.argument(i) for i in (0, *range(5, y))]
    places, now, seen = f.argument(1), _step(f, f.argument(2), integer(0)), f.argument(3)
    rows = _Rows(f, problem, f.argument(4), tables)
    out, output = f.argument(y), node.attrs["output"]
    with over_rows(f, problem.indices, per_chunk) as position:
        rows.ask(places, position, tables[output : output + 1])
        index = load_index(f, places, position, problem.index)
        row = check_index(f, index, problem.rows, position, slot=y + 1)
        to, since = f.offset(out, f.mul(position, problem.row)), _step(f, seen, row)
        behind = _is_behind(f, since, now)
        with f.when(behind):
            rows.look(row, (since, now), to, output)
        with f.when(_not(f, behind)):
            copy_bytes(f, rows.place(tables[output], row), to, problem.row)
    return (
        Launch(
            Kernel(f"lag_gather_{problem.indices}x{problem.row}", f.module()),
            (x, indices, clock, last, history, *slots, node.outputs[0], ERROR, 0), (y,), chunks,
            bytes=2.0 * problem.indices * problem.row, check=True,
        ),
    )  # fmt: skip


def lag_update(group: Group, target: Target) -> tuple[Launch, ...]:
    """Copies tables unless in place; then updates rows with gradients, then those that are due.

    An index out of bounds is skipped: whoever looked the row up has reported it.
    """
    node = group.nodes[0]
    indices, g, clock, last, history, *tables = node.data_inputs
    problem = _lagging(group, tables[0], len(tables), indices, target)
    head, following = Scratch(problem.rows * WORD + WORD), Scratch(problem.indices * WORD + WORD)
    shape = f"{problem.rows}x{problem.width}"
    new = node.outputs
    changed = tuple(range(4, 5 + len(tables)))
    row = (2 * len(tables) + 1) * problem.row
    per_copy, copies = chunks_of(problem.rows, row)
    per_update, updates = chunks_of(problem.indices, row)
    due = -(-problem.rows // PERIOD)
    per_sweep, sweeps = chunks_of(due, row)
    pitch, first = math.prod(known(g.shape)[1:]) * WORD, node.attrs["first"] * WORD
    half = len(new)
    pairs = tuple((half + i, i) for i in range(half))
    common = (clock, history)
    return (
        Launch(
            Kernel(f"lag_copy_{shape}", _copying(problem, per_copy)), (last, *tables, *new),
            tuple(range(half, 2 * half)), copies, pairs, bytes=1.0,
        ),
        Launch(
            Kernel(f"lag_lists_{problem.indices}", _listing(problem)), (indices, head, following),
            (1, 2), bytes=float(4 * problem.indices * WORD),
        ),
        Launch(
            Kernel(f"lag_update_{shape}", _updating(problem, per_update, pitch, first)),
            (*common, indices, g, *new, head, following), changed, updates,
            bytes=float(problem.indices * row),
        ),
        Launch(
            Kernel(f"lag_sweep_{shape}", _sweeping(problem, due, per_sweep)),
            (*common, indices, g, *new), changed, sweeps, bytes=float(due * row),
        ),
    )  # fmt: skip


def _copying(problem: Lagging, per_chunk: int) -> str:
    f = kernel_builder()
    start = f.mul(f.params[1], per_chunk)
    stop = smaller(f, f.mul(f.params[2], per_chunk), problem.rows)
    for i in range(problem.count + 1):
        source, to = f.argument(i), f.argument(problem.count + 1 + i)
        row = problem.row if i else WORD
        with f.when(f.compare("icmp ne", source, to)):
            at, count = f.mul(start, row), f.mul(subtract(f, stop, start), row)
            copy_bytes(f, f.offset(source, at), f.offset(to, at), count)
    return f.module()


def _listing(problem: Lagging) -> str:
    """`head` of a row: the first index that names it; `following` of an index: the next, or -1."""
    f = kernel_builder()
    indices, head, following = (f.argument(i) for i in range(3))
    none = integer(-1, "i32")
    with f.loop(f.params[1], f.params[2]):
        for backwards in (False, True):
            with f.loop(0, problem.indices) as loop:
                at = loop.index
                if backwards:
                    at = subtract(f, integer(problem.indices - 1), at)
                row = load_index(f, indices, at, problem.index)
                with f.when(f.compare("icmp ult", row, integer(problem.rows))):
                    mine = f.offset(head, f.mul(row, WORD))
                    if backwards:
                        f.store(f.load("i32", mine, WORD), f.offset(following, f.mul(at, WORD)), 4)
                    f.store(f.emit("i32", f"trunc {at} to i32") if backwards else none, mine, WORD)
    return f.module()


def _updating(problem: Lagging, per_chunk: int, pitch: int, first: int) -> str:
    """Rows of g are `pitch` bytes apart; the rows from `first` on are used."""
    f = kernel_builder()
    tables = [f.argument(5 + i) for i in range(problem.count)]
    rows = _Rows(f, problem, f.argument(1), tables)
    now = _step(f, f.argument(0), integer(0))
    indices, g, seen = f.argument(2), f.offset(f.argument(3), first), f.argument(4)
    lists = (f.argument(5 + problem.count), f.argument(6 + problem.count))
    with over_rows(f, problem.indices, per_chunk) as position:
        rows.ask(indices, position, tables, write=True)
        index = load_index(f, indices, position, problem.index)
        inside = f.compare("icmp ult", index, integer(problem.rows))
        row = f.emit("i64", f"select {inside}, {index}, i64 0")
        owner = f.compare("icmp eq", _step(f, lists[0], row), position)
        with f.when(f.binary("and", inside, owner)):
            gradient = _Gradient(g, pitch, position, lists[1])
            rows.update(row, _step(f, seen, row), now, gradient)
            f.store(f.emit("i32", f"trunc {now} to i32"), f.offset(seen, f.mul(row, WORD)), WORD)
    return f.module()


def _sweeping(problem: Lagging, due: int, per_chunk: int) -> str:
    f = kernel_builder()
    tables = [f.argument(5 + i) for i in range(problem.count)]
    rows = _Rows(f, problem, f.argument(1), tables)
    now, seen = _step(f, f.argument(0), integer(0)), f.argument(4)
    begin = f.mul(f.binary("urem", now, integer(PERIOD)), due)
    with over_rows(f, due, per_chunk) as number:
        row = f.add(begin, number)
        with f.when(f.compare("icmp slt", row, integer(problem.rows))):
            since = _step(f, seen, row)
            with f.when(_is_behind(f, since, now)):
                rows.update(row, since, now, None)
                trunc = f.emit("i32", f"trunc {now} to i32")
                f.store(trunc, f.offset(seen, f.mul(row, WORD)), WORD)
    return f.module()


def _step(f: Builder, pointer: Reg, at: Reg) -> Reg:
    """An `int32` from memory as `i64`."""
    return load_index(f, pointer, at, int32)


def _is_behind(f: Builder, since: Reg, now: Reg) -> Reg:
    moves = f.compare("icmp ne", since, integer(NEVER))
    return f.binary("and", moves, f.compare("icmp slt", since, now))


def _not(f: Builder, condition: Reg) -> Reg:
    return f.binary("xor", condition, Reg("i1", "true"))


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


class _Gradient(NamedTuple):
    """Rows of gradients, `pitch` bytes apart; lists of the gradients of a table's row."""

    rows: Reg
    pitch: int
    begin: Reg
    following: Reg


class _Rows:
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
            place = self.place(table, row)
            for line in range(0, min(problem.row, MOST), LINE):
                prefetch(f, f.offset(place, line), 3, write)

    def look(self, row: Reg, steps: tuple[Reg, Reg], to: Reg, output: int) -> None:
        """Computes the row of table `output` after steps from `steps[0]` up to `steps[1]`."""

        def body(start: Reg, parts: Sequence[Part]) -> None:
            state = self.missed(self.load(row, start, parts), *steps)
            self.store(state, to, start, parts, output)

        over_vectors(self.f, self.problem.width, self.problem.lanes, body)

    def update(self, row: Reg, since: Reg, now: Reg, gradient: _Gradient | None) -> None:
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

    def total(self, gradient: _Gradient, start: Reg, parts: Sequence[Part]) -> list[Reg]:
        """The sum of a row's gradients, in the order of the indices."""
        f, following = self.f, gradient.following
        place = f.offset(gradient.rows, f.mul(gradient.begin, gradient.pitch))
        totals = [self._read(place, start, part) for part in parts]
        head, body, after = (f.label(name) for name in ("more", "add", "added"))
        entry = f.label("sum")
        f.jump(entry)
        f.start(entry)
        second = _step(f, following, gradient.begin)
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
        found = _step(f, following, at)
        f.line(f"{again.text} = add {found}, 0")
        f.jump(latch)
        f.start(latch)
        f.jump(head)
        f.start(after)
        return sums

"""Lazy updates of lagged tables (`weft.ops.indexing.lagged_table`); missed steps catch up in
registers.

An update goes through the indices once. The first index that names a row owns it: it adds up the
gradients of all indices of that row (in order, along a linked list that one thread builds in some
10 cycles an index), and catches up with missed steps. So each row is read and written once, no two
chunks write one row, and results do not depend on the number of threads.
"""

from __future__ import annotations

import math

from weft.codegen.builder import Builder, Reg, integer, kernel_builder
from weft.codegen.chunk import Items, by_work
from weft.codegen.contraction.emit import subtract
from weft.codegen.family.emit import (
    check_index,
    copy_bytes,
    load_index,
    vector_lanes,
)
from weft.codegen.family.lag_row import WORD, Lagging, RowGradients, Rows, step_at
from weft.codegen.target import Target
from weft.ir.dtype import float32
from weft.ir.node import Value
from weft.ir.shape import known, size
from weft.ops.call import Subgraph
from weft.ops.indexing.lagged_table import NEVER, PERIOD
from weft.passes.group import Group
from weft.passes.launch import ERROR, Kernel, Launch, Scratch


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
    items = by_work(problem.indices, problem.row + 16)
    f = kernel_builder()
    tables = [f.argument(i) for i in (0, *range(5, y))]
    places, now, seen = f.argument(1), step_at(f, f.argument(2), integer(0)), f.argument(3)
    rows = Rows(f, problem, f.argument(4), tables)
    out, output = f.argument(y), node.attrs["output"]
    with items.loop(f) as position:
        rows.ask(places, position, tables[output : output + 1])
        index = load_index(f, places, position, problem.index)
        row = check_index(f, index, problem.rows, position, slot=y + 1)
        to, since = f.offset(out, f.mul(position, problem.row)), step_at(f, seen, row)
        behind = _is_behind(f, since, now)
        with f.when(behind):
            rows.look(row, (since, now), to, output)
        with f.when(_not(f, behind)):
            copy_bytes(f, rows.place(tables[output], row), to, problem.row)
    return (
        Launch(
            Kernel(f"lag_gather_{problem.indices}x{problem.row}", f.module()),
            (x, indices, clock, last, history, *slots, node.outputs[0], ERROR, 0), (y,),
            items.chunks, bytes=2.0 * problem.indices * problem.row, check=True,
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
    copies, updates = by_work(problem.rows, row), by_work(problem.indices, row)
    due = -(-problem.rows // PERIOD)
    sweeps = by_work(due, row)
    pitch, first = math.prod(known(g.shape)[1:]) * WORD, node.attrs["first"] * WORD
    half = len(new)
    pairs = tuple((half + i, i) for i in range(half))
    common = (clock, history)
    return (
        Launch(
            Kernel(f"lag_copy_{shape}", _copying(problem, copies)), (last, *tables, *new),
            tuple(range(half, 2 * half)), copies.chunks, pairs, bytes=1.0,
        ),
        Launch(
            Kernel(f"lag_lists_{problem.indices}", _listing(problem)), (indices, head, following),
            (1, 2), bytes=float(4 * problem.indices * WORD),
        ),
        Launch(
            Kernel(f"lag_update_{shape}", _updating(problem, updates, pitch, first)),
            (*common, indices, g, *new, head, following), changed, updates.chunks,
            bytes=float(problem.indices * row),
        ),
        Launch(
            Kernel(f"lag_sweep_{shape}", _sweeping(problem, sweeps)),
            (*common, indices, g, *new), changed, sweeps.chunks, bytes=float(due * row),
        ),
    )  # fmt: skip


def _copying(problem: Lagging, items: Items) -> str:
    f = kernel_builder()
    start, stop = items.bounds(f)
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


def _updating(problem: Lagging, items: Items, pitch: int, first: int) -> str:
    """Rows of g are `pitch` bytes apart; the rows from `first` on are used."""
    f = kernel_builder()
    tables = [f.argument(5 + i) for i in range(problem.count)]
    rows = Rows(f, problem, f.argument(1), tables)
    now = step_at(f, f.argument(0), integer(0))
    indices, g, seen = f.argument(2), f.offset(f.argument(3), first), f.argument(4)
    lists = (f.argument(5 + problem.count), f.argument(6 + problem.count))
    with items.loop(f) as position:
        rows.ask(indices, position, tables, write=True)
        index = load_index(f, indices, position, problem.index)
        inside = f.compare("icmp ult", index, integer(problem.rows))
        row = f.emit("i64", f"select {inside}, {index}, i64 0")
        owner = f.compare("icmp eq", step_at(f, lists[0], row), position)
        with f.when(f.binary("and", inside, owner)):
            gradient = RowGradients(g, pitch, position, lists[1])
            rows.update(row, step_at(f, seen, row), now, gradient)
            f.store(f.emit("i32", f"trunc {now} to i32"), f.offset(seen, f.mul(row, WORD)), WORD)
    return f.module()


def _sweeping(problem: Lagging, items: Items) -> str:
    f = kernel_builder()
    tables = [f.argument(5 + i) for i in range(problem.count)]
    rows = Rows(f, problem, f.argument(1), tables)
    now, seen = step_at(f, f.argument(0), integer(0)), f.argument(4)
    begin = f.mul(f.binary("urem", now, integer(PERIOD)), items.count)
    with items.loop(f) as number:
        row = f.add(begin, number)
        with f.when(f.compare("icmp slt", row, integer(problem.rows))):
            since = step_at(f, seen, row)
            with f.when(_is_behind(f, since, now)):
                rows.update(row, since, now, None)
                trunc = f.emit("i32", f"trunc {now} to i32")
                f.store(trunc, f.offset(seen, f.mul(row, WORD)), WORD)
    return f.module()


def _is_behind(f: Builder, since: Reg, now: Reg) -> Reg:
    moves = f.compare("icmp ne", since, integer(NEVER))
    return f.binary("and", moves, f.compare("icmp slt", since, now))


def _not(f: Builder, condition: Reg) -> Reg:
    return f.binary("xor", condition, Reg("i1", "true"))

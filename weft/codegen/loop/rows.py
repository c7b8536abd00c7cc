"""Groups with reductions in one kernel: one thread does a whole row (or block of columns).

If the last axis is reduced, vectors go along it and later passes over the row find it in cache;
values that are expensive to compute are kept in a scratch row between passes. If the last axis is
kept, or rows are much shorter than a vector, vectors go along the last kept axis and every lane has
its own sums.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

from weft.codegen.loop.assemble import Pass, launch
from weft.codegen.loop.domain import lanes_for, per_chunk, traffic, unroll_for
from weft.codegen.loop.expression import COST, EXPENSIVE, Expr, Expressions, cost, needed
from weft.codegen.loop.index import Symbol, fixed, flat, unflat, variable
from weft.codegen.loop.order import ACCUMULATORS, extent_of, ordered
from weft.codegen.loop.parts import Leaves, Nest
from weft.codegen.loop.reduction import Levels, sum_type
from weft.codegen.loop.tree import Loop, Reduce, Segment, Store, Tree, Vector
from weft.codegen.target import Target
from weft.ir.extent import Extent, tuned
from weft.ir.shape import size
from weft.passes.launch import Launch, Scratch

SCRATCH_ROW: int = 256 * 1024
"""Maximum bytes of a row's kept values: a part of L2."""
SOME: int = 4
"""Vectors of columns that are summed together if sizes differ from run to run."""
STRAIGHT: int = 4
"""A row of at most this many vectors stays in registers between passes."""


def row_launch(name: str, levels: Levels, target: Target) -> Launch:
    """One kernel for a whole group; no reduced axis is empty."""
    values = [p.value for p in (*levels.sums, *levels.full, *levels.small)]
    own = target.lanes(max([s.dtype.size for s in levels.sums]))  # not of what else is computed
    lanes = min(lanes_for(values, target), own)
    count = size(levels.reduction.domain)
    moved = traffic(values, [s.buffer for s in (*levels.full, *levels.small)]) / count
    cycles = cost(values) / lanes
    narrow = _is_narrow(levels, own, target)
    if levels.is_rows and not narrow:
        _gather_rows(levels, levels.kept)
        _keep_expensive(levels, lanes)
        body = [*_row_passes(levels, lanes, target), *levels.small]
        return _over_rows(name, levels, body, (count, moved, cycles), target)
    *outer, last = levels.kept
    _gather_rows(levels, outer)
    unroll = 1 if narrow else columns_unroll(len(levels.sums), last.extent, lanes, target)
    passes = _narrow_passes(levels, target) if narrow else _column_passes(levels)
    inside = (*passes, *levels.small)
    if outer:
        body = [Vector(last, lanes, unroll, inside)]
        return _over_rows(name, levels, body, (count, moved, cycles), target)
    depth = count // last.extent
    block = lanes * unroll
    each = -(-per_chunk(last.extent, moved, cycles, depth) // block) * block
    tree = Vector(last, lanes, unroll, inside, Segment(None, each))
    return launch(name, [tree], passes_of(levels), target, -(-last.extent // each))


def _is_narrow(levels: Levels, lanes: int, target: Target) -> bool:
    """Whether rows would waste most of a vector, so that each lane should be a row."""
    length = extent_of(levels.reduced)
    if levels.outer or not levels.kept or isinstance(length, Extent):
        return False
    least = lanes // 4 if target.masked else lanes // 2
    return levels.is_rows and length <= least and levels.kept[-1].extent >= lanes


def columns_unroll(sums: int, extent: int, lanes: int, target: Target) -> int:
    """Vectors of adjacent columns that are summed together.

    Half of the registers hold sums: the more there are, the longer the contiguous reads.
    """
    most = max(1, target.registers // 2 // max(sums, 1))
    if not isinstance(extent, Extent):
        return max(1, min(most, extent // lanes))
    return most if most <= SOME or tuned("<=", most * lanes, extent) else SOME


def row_unroll(leaves: Leaves, lanes: int, target: Target) -> int:
    """Vectors of a row that are computed together: one for each accumulator of ordered sums."""
    if not ordered(leaves.sums):
        return max(2, unroll_for(leaves.values))
    most = max([target.lanes(s.dtype.size) for s in ordered(leaves.sums)])
    return ACCUMULATORS * most // lanes


def _over_rows(
    name: str,
    levels: Levels,
    body: Sequence[Tree],
    work: tuple[int, float, float],  # elements; bytes and cycles of each
    target: Target,
) -> Launch:
    count, moved, cycles = work
    row = levels.row
    if row is None:
        return launch(name, body, passes_of(levels), target)
    each = per_chunk(row.extent, moved, cycles, count // row.extent)
    tree = Loop(row, tuple(body), Segment(None, each))
    return launch(name, [tree], passes_of(levels), target, -(-row.extent // each))


def _gather_rows(levels: Levels, outer: Sequence[Symbol]) -> None:
    """Collapses the axes `outer` into one loop over rows."""
    if not outer:
        return
    levels.row = Symbol("row", extent_of(outer))
    places = unflat(variable(levels.row), [s.extent for s in outer])
    levels.rename(dict(zip(outer, places, strict=True)))


def passes_of(levels: Levels) -> list[Pass]:
    """What each pass computes; small outputs are stored after the last one."""
    found: list[Pass] = []
    for n in range(levels.count):
        sums, stores = levels.at(n)
        found.append(Pass(tuple(stores), tuple(p.value for p in (*sums, *stores))))
    small = tuple(levels.small)
    return [*found, Pass(small, tuple(s.value for s in small))]


def _passes(levels: Levels) -> list[Leaves]:
    found = [levels.at(n) for n in range(levels.count)]
    return [Leaves(tuple(sums), tuple(stores)) for sums, stores in found if sums or stores]


def _row_passes(levels: Levels, lanes: int, target: Target) -> list[Tree]:
    found: list[Tree] = []
    for leaves in _passes(levels):
        unroll = row_unroll(leaves, lanes, target)

        def along(
            axis: Symbol,
            body: tuple[Tree, ...],
            segment: Segment | None,
            around: Symbol | None,
            unroll: int = unroll,
        ) -> Tree:
            fixed = segment is None and not isinstance(axis.extent, Extent)
            if fixed and axis.extent <= STRAIGHT * lanes:
                unroll = max(unroll, STRAIGHT)
            return Vector(axis, lanes, unroll, body, segment, around)

        found.append(Nest(levels, along, target.masked).whole(leaves))
    return found


def column(axis: Symbol, body: tuple[Tree, ...], segment: Segment | None, _: Symbol | None) -> Tree:
    """The loop down a column."""
    return Loop(axis, body, segment)


def _column_passes(levels: Levels) -> list[Tree]:
    nest = Nest(levels, column)
    return [nest.whole(leaves) for leaves in _passes(levels)]


def _narrow_passes(levels: Levels, target: Target) -> list[Tree]:
    """Passes over a few elements each, written one by one."""
    b, symbols = levels.trace.b, levels.reduced
    length = extent_of(symbols)
    places = [unflat(fixed(n), [s.extent for s in symbols]) for n in range(length)]
    found: list[Tree] = []
    for leaves in _passes(levels):
        each = [leaves.at(b, symbols, place) for place in places]
        sums = [
            replace(s, value=_joined(b, s.op, [x.sums[n].value for x in each], target.masked))
            for n, s in enumerate(leaves.sums)
        ]
        body = (*sums, *[s for x in each for s in x.stores])
        found += [Reduce(tuple(sums), body)] if sums else body
    return found


def _joined(b: Expressions, op: str, values: list[Expr], halves: bool) -> Expr:
    """The values combined in the order of a row."""
    if not halves:
        return functools.reduce(lambda x, y: b.apply(op, x, y), values)
    half = 1 << (len(values) - 1).bit_length()
    while half > 1:
        half //= 2
        joined = [b.apply(op, x, y) for x, y in zip(values, values[half:], strict=False)]
        values = [*joined, *values[len(joined) : half]]
    return values[0]


def _keep_expensive(levels: Levels, lanes: int) -> None:
    """Stores values that are expensive and needed by two passes; the later one loads them."""
    length = extent_of(levels.reduced)
    fixed = len(levels.reduced) == 1 and not isinstance(length, Extent)
    if fixed and length <= STRAIGHT * lanes:
        return  # the row stays in registers
    position = flat([variable(s) for s in levels.reduced], [s.extent for s in levels.reduced])
    for n in range(levels.count - 1):
        sums, stores = levels.at(n)
        now = {x for x in needed([p.value for p in (*sums, *stores)])}
        later = [p.value for m in range(n + 1, levels.count) for part in levels.at(m) for p in part]
        for x in _frontier(now, later, set(levels.reduced)):
            dtype = sum_type(x.dtype)
            if tuned("<", SCRATCH_ROW, length * dtype.size) or x.dtype.kind == "b":
                continue
            memory = Scratch(-(-length * dtype.size // 64) * 64, per_thread=True)
            buffer = levels.buffers.of(memory, dtype)
            b = levels.trace.b
            levels.keep(n, x, Store(buffer, position, b.cast(x, dtype)))


def _frontier(now: set[Expr], later: Sequence[Expr], varying: set[Symbol]) -> list[Expr]:
    """The costly values of `now` that later values use directly and that vary along the row."""
    found: dict[Expr, None] = {x: None for x in later if x in now}
    for x in needed(later):
        if x not in now:
            found.update({a: None for a in x.args if a in now})
    return [x for x in found if x.op != "load" and _varying_cost(x, varying) >= EXPENSIVE]


def _varying_cost(root: Expr, varying: set[Symbol]) -> int:
    return sum(COST.get(x.op, 1) for x in needed([root]) if x.args and x.symbols & varying)

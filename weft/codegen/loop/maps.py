"""Kernels without reductions: every output element is computed on its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.codegen.kernel import Launch
from weft.codegen.loop.assemble import Pass, launch
from weft.codegen.loop.domain import (
    lanes_for,
    merged_axes,
    per_chunk,
    symbols_of,
    traffic,
    unroll_for,
)
from weft.codegen.loop.emit import roots_of
from weft.codegen.loop.expression import cost, needed
from weft.codegen.loop.index import Index, Symbol, flat, substituted, unflat, variable
from weft.codegen.loop.trace import Trace, axes_of
from weft.codegen.loop.tree import Loop, Segment, Store, Vector
from weft.codegen.target import Target
from weft.ir.node import Value
from weft.ir.shape import known


def map_launch(name: str, outputs: Sequence[Value], target: Target, trace: Trace) -> Launch | None:
    """One kernel for outputs of one shape; `None` where they are empty."""
    shape = known(outputs[0].shape)
    if 0 in shape:
        return None
    buffers = trace.buffers
    symbols, index = axes_of(shape)
    values = [trace.at(v, index) for v in outputs]
    stores = [
        Store(buffers.of(v, v.dtype), flat(index, shape), x)
        for v, x in zip(outputs, values, strict=True)
    ]
    new = merged_axes(symbols, [0] * len(symbols), [*roots_of(values), flat(index, shape)])
    stores = _renamed(trace, stores, new)
    left, _ = symbols_of(symbols, new)
    if len(left) > 1 and left[-1].extent < _least(lanes_for(values, target), target):
        stores, left = _flattened(trace, stores, left)
    return _schedule(name, trace, stores, left, target)


def _least(lanes: int, target: Target) -> int:
    """Rows shorter than this waste most of a vector, so they are walked as one sequence."""
    return lanes // 2 if target.masked else lanes


def _renamed(trace: Trace, stores: Sequence[Store], new: Mapping[Symbol, Index]) -> list[Store]:
    values = trace.b.substitute([s.value for s in stores], new)
    return [
        Store(s.buffer, substituted(s.offset, new, _unused), x)
        for s, x in zip(stores, values, strict=True)
    ]


def _unused(expr: object) -> object:
    return expr  # where outputs are stored never depends on data


def _flattened(
    trace: Trace, stores: Sequence[Store], left: Sequence[Symbol]
) -> tuple[list[Store], list[Symbol]]:
    extents = [s.extent for s in left]
    total = 1
    for extent in extents:
        total *= extent
    one = Symbol("i", total)
    places = unflat(variable(one), extents)
    return _renamed(trace, stores, dict(zip(left, places, strict=True))), [one]


def _schedule(
    name: str, trace: Trace, stores: list[Store], left: list[Symbol], target: Target
) -> Launch:
    values = [s.value for s in stores]
    lanes, unroll = lanes_for([*values], target), unroll_for(values)
    count = 1
    for symbol in left:
        count *= symbol.extent
    moved = traffic(values, [s.buffer for s in stores]) / count
    cycles = cost(values) / lanes
    if not left:
        body = tuple(stores)
        return launch(name, [_once(body)], [_pass(stores)], target, 1)
    if len(left) == 1:
        return _one_axis(name, trace, stores, left[0], (lanes, unroll, moved, cycles), target)
    *outer, last = left
    rows = count // last.extent
    row = Symbol("row", rows)
    new = dict(zip(outer, unflat(variable(row), [s.extent for s in outer]), strict=True))
    stores = _renamed(trace, stores, new)
    part = per_chunk(last.extent, moved, cycles)
    if part < last.extent // 2 and rows < 64:  # long rows: cut them
        part = -(-part // (lanes * unroll)) * lanes * unroll
        return _cut_rows(name, trace, stores, row, (last, lanes, unroll, part), target)
    inner = Vector(last, lanes, unroll, tuple(stores))
    each = per_chunk(rows, moved * last.extent, cycles * last.extent)
    tree = Loop(row, (inner,), Segment(None, each))
    return launch(name, [tree], [_pass(stores)], target, -(-rows // each))


def _once(body: tuple[Store, ...]) -> Loop:
    return Loop(Symbol("once", 1), body)


def _pass(stores: Sequence[Store]) -> Pass:
    return Pass(tuple(stores), tuple(s.value for s in stores))


def _one_axis(
    name: str,
    trace: Trace,
    stores: list[Store],
    axis: Symbol,
    shape: tuple[int, int, float, float],
    target: Target,
) -> Launch:
    lanes, unroll, moved, cycles = shape
    block = lanes * unroll
    each = -(-per_chunk(axis.extent, moved, cycles) // block) * block
    chunks = -(-axis.extent // each)
    if not _is_plain(stores, axis):
        vector = Vector(axis, lanes, unroll, tuple(stores), Segment(None, each))
        return launch(name, [vector], [_pass(stores)], target, chunks)
    length = Symbol("i")
    stores = _renamed(trace, stores, {axis: variable(length)})
    slot = len({x.data[0] for x in needed([s.value for s in stores]) if x.op == "load"}
               | {s.buffer for s in stores})  # fmt: skip
    vector = Vector(length, lanes, unroll, tuple(stores), Segment(None, each, slot))
    return launch(name, [vector], [_pass(stores)], target, chunks, (axis.extent, each))


def _is_plain(stores: Sequence[Store], axis: Symbol) -> bool:
    """Whether the kernel is the same for every length of the axis."""
    plain = variable(axis)
    return all(i.is_constant or i == plain for i in roots_of([s.value for s in stores])) and all(
        s.offset == plain for s in stores
    )


def _cut_rows(
    name: str,
    trace: Trace,
    stores: list[Store],
    row: Symbol,
    shape: tuple[Symbol, int, int, int],
    target: Target,
) -> Launch:
    last, lanes, unroll, part = shape
    parts = -(-last.extent // part)
    both = Symbol("part", row.extent * parts)
    place = variable(both)
    stores = _renamed(trace, stores, {row: place // parts})
    inner = Vector(last, lanes, unroll, tuple(stores), Segment(place % parts, part))
    tree = Loop(both, (inner,), Segment(None, 1))
    return launch(name, [tree], [_pass(stores)], target, both.extent)

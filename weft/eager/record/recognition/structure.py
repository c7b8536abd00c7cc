"""The structure of what is to be computed: its key in the program cache, and its graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np

from weft.eager.record.call.placed_type import device_of
from weft.eager.record.pending.access import refuse
from weft.eager.record.pending.lazy import Alias, Array, Lazy, Number, Record
from weft.ir.graph import Graph
from weft.ir.node import Node
from weft.ir.shape import is_stack, known, size
from weft.ops.declaration import inner_nodes, op_of
from weft.runtime.flight import land


@dataclass(frozen=True)
class Structure:
    """Records in order, the leaves that they read, and the wanted results.

    Attributes:
        key: equal for recordings that run the same program.
        leaves: values with an array, in order of first use; also results of earlier programs.
        homes: for each output the position of the leaf whose memory it takes over, or -1.
        known: what an earlier call found out about all leaves but the first ones.
        memo: what is known of all structures that differ from it in sizes alone.
    """

    key: tuple[Any, ...]
    records: tuple[Record, ...]
    leaves: tuple[Lazy, ...]
    outputs: tuple[Lazy, ...]
    homes: tuple[int, ...]
    same: tuple[tuple[Lazy, Lazy], ...]  # leaves that share the array of another one
    known: Known | None = None
    memo: Memo | None = field(default=None, compare=False)

    @property
    def calls(self) -> tuple[str, ...]:
        """What is called in which order, regardless of shapes."""
        return tuple([r.plan.name for r in self.records])

    @property
    def devices(self) -> frozenset[int]:
        """The CPUs of the results."""
        return frozenset([device_of(t) for r in self.records for t in r.plan.types])

    @property
    def outline(self) -> list[str]:
        """What is called in which order, and the result types, as text for other processes."""
        plans = [r.plan for r in self.records]
        return [f"{p.name}{[(t.dtype.name, t.shape) for t in p.types]}" for p in plans]

    def arrays(self) -> list[Array]:
        """The arrays of the leaves, C-contiguous."""
        known = self.known
        if known is None:
            return [_contiguous(x.array) for x in self.leaves]
        return [*[_contiguous(x.array) for x in self.leaves[: known.arguments]], *known.arrays]


class Memo:
    """What structures that differ in sizes alone have in common: `Listing`s, the latest first.

    A size of 1 may need another one: a broadcast shares its input's memory there.
    """

    __slots__ = ("listings",)

    def __init__(self) -> None:
        self.listings: list[Any] = []


class Known(NamedTuple):
    """What a call of a traced function has found out for later calls."""

    key: tuple[Any, ...]
    arguments: int  # how many leaves are arguments and not captured; these come first
    arrays: tuple[Array, ...]  # of the captured ones
    taken: frozenset[int]  # the identities of these arrays
    wanted: tuple[int, ...]  # which results
    token: object  # of no other call


def _contiguous(array: Array | None) -> Array:
    assert array is not None
    if array.flags.c_contiguous:
        return array
    land()
    return np.ascontiguousarray(array)


def structure_of(outputs: Sequence[Lazy]) -> Structure:
    """The structure that computes `outputs`.

    Raises:
        WeftError: a needed value was overwritten by an in-place change.
    """
    records = needed(outputs)
    number: dict[Lazy, int] = {}
    leaves: list[Lazy] = []
    position: dict[int, int] = {}  # among the leaves, by the identity of the array
    same: list[tuple[Lazy, Lazy]] = []
    key: list[Any] = []
    count = 0
    for record in records:
        key.append(record.plan)
        for lazy in record.inputs:
            found = number.get(lazy)
            if found is None:
                found = number[lazy] = count
                count += 1
                place = position.setdefault(_identity(lazy, record), len(leaves))
                if place < len(leaves):
                    first = leaves[place]
                    same.append((lazy, first))
                    key += ["same", number[first], lazy.tracked, first.tracked]
                else:
                    leaves.append(lazy)
            key.append(found)
        tracked = False
        for place, result in enumerate(record.results, count):
            lazy = result()
            if lazy is None:
                continue
            number[lazy] = place
            tracked = tracked or lazy.tracked
            if lazy.array is not None:
                position[id(lazy.array)] = len(leaves)
                leaves.append(lazy)
                key += ["fed", place]
        key.append(tracked)
        count += len(record.results)
    homes = [-1 if y.home is None else _home(y, position, leaves) for y in outputs]
    key.append(len(leaves))
    key += [number[y] for y in outputs]
    key += homes
    return Structure(tuple(key), records, tuple(leaves), tuple(outputs), tuple(homes), tuple(same))


def _home(output: Lazy, position: dict[int, int], leaves: list[Lazy]) -> int:
    """The position of the leaf whose memory the output takes over; -1 if none."""
    home = output.home
    assert home is not None
    if home.array is None or not home.array.flags.writeable or home.is_live:
        output.home = None
        return -1
    place = position.setdefault(id(home.array), len(leaves))
    if place == len(leaves):
        leaves.append(home)
    return place


def _identity(lazy: Lazy, record: Record) -> int:
    """The identity of a leaf's array."""
    if type(lazy) is Alias:
        lazy.array = lazy.base.array  # which may be a copy by now, or lost
    if lazy.array is None:
        refuse(lazy, record)
    return id(lazy) if type(lazy) is Number else id(lazy.array)


SHALLOW: Final = 1 << 62


def needed(outputs: Sequence[Lazy], since: int = 0) -> tuple[Record, ...]:
    """The records that must run, in order; without those before number `since`.

    A gradient sees the whole history of its ys, computed or not. While a function is traced
    (`since`), it stops at the variables that it differentiates by and at those of outer
    derivatives, which go on outside.
    """
    found: dict[Record, int] = {}  # -> the number of the variable at which its history ends
    stack: list[tuple[Record, int]] = []
    for y in outputs:
        if y.record and _is_pending(y, since):
            y.record.meet(y)
            stack.append((y.record, SHALLOW))
    while stack:
        record, end = stack.pop()
        if found.get(record, SHALLOW + 1) <= end:
            continue
        found[record] = end
        follows = record.plan.follows
        own = _end(record, since) if follows else SHALLOW
        for position, lazy in enumerate(record.inputs):
            inner = lazy.record
            if inner is None:
                continue
            deep = own if position < follows else end if lazy.tracked else SHALLOW
            if lazy.leaf is not None or (inner.plan.variable and inner.serial <= deep):
                deep = SHALLOW
            if deep < SHALLOW or _is_pending(lazy, since):
                inner.meet(lazy)
                stack.append((inner, deep))
    return tuple(sorted(found, key=_serial))


def _end(record: Record, since: int) -> int:
    """The last of a gradient's variables from before `since`.

    If all of its variables are younger, those from before belong to outer derivatives.
    """
    variables = [
        x.record.serial
        for x in record.inputs[record.plan.follows :]
        if x.record is not None and x.record.plan.variable
    ]
    before = [serial for serial in variables if serial < since]
    return max(before, default=since - 1 if variables else -1)


def _is_pending(lazy: Lazy, since: int) -> bool:
    return lazy.array is None and lazy.record is not None and lazy.record.serial >= since


def _serial(record: Record) -> int:
    return record.serial


def meet_values(structure: Structure) -> None:
    """Let records refer to all their results that are read, as needed in a finalizer."""
    for lazy in chain(structure.outputs, *[record.inputs for record in structure.records]):
        if lazy.record is not None:
            lazy.record.meet(lazy)


def is_cut(record: Record) -> bool:
    """Whether a record stops gradients that its nodes would pass on."""
    if not record.plan.pattern.inexact:
        return False
    for result in record.results:
        y = result()
        if y is not None and y.tracked:
            return False
    return any([x.tracked for x in record.inputs])


ELEMENT_NS: Final = 1.0
"""Nanoseconds that NumPy takes for each result element, besides matmuls."""


CALL_NS: Final = 2e3
"""Nanoseconds of a call in the body of a loop."""


def interpreted_seconds(graph: Graph) -> float:
    """Estimated seconds that the NumPy references take for a graph, without call overhead."""
    return sum(map(_interpreted_ns, graph.nodes)) * 1e-9


def _interpreted_ns(node: Node) -> float:
    facts = op_of(node).facts
    total = sum([size(t.shape) for t in node.types if not is_stack(t.shape)]) * ELEMENT_NS
    if facts.work is not None:
        shapes = [known(v.shape) for v in (*node.data_inputs, *node.outputs)]
        attrs = {**op_of(node).attrs, **node.attrs}
        total += facts.work.products(*shapes, **attrs) * facts.work.ns
    if facts.runs is not None:
        inner = inner_nodes(node)
        once = sum(map(_interpreted_ns, inner)) + len(inner) * CALL_NS
        total += once * facts.runs(**node.attrs)
    return total

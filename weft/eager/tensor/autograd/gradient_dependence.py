"""Finds the inputs that a recorded gradient depends on: that of `x * a` by `x` needs `a` alone.

A recorded gradient has what it differentiates, and the variables, among its inputs. Only its nodes
tell which of these its value depends on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from weft.eager.record.call.plan import accepted_input, placeholders
from weft.eager.record.pending.lazy import Lazy, Record
from weft.eager.tensor.autograd.backward import History
from weft.eager.tensor.autograd.custom_function import Custom
from weft.ir.graph import Graph
from weft.ir.node import Value
from weft.transform.gradient import Cotangent

MOST_KNOWN: Final = 256

_known: dict[Any, frozenset[int]] = {}  # structure of a history -> indices of what is reached


def depended_on(past: History, ys: Sequence[Lazy]) -> History:
    """The history of `ys`, reduced to values that these depend on, if only by comparisons.

    All records are kept, since a gradient begins at what it differentiates.
    """
    if not any([record.plan.follows for record in past.records]):
        return past
    records = sorted(past.records, key=lambda r: r.serial)
    number: dict[Lazy, int] = {}
    key: list[Any] = []
    for record in records:
        inputs = [number.setdefault(x, len(number)) for x in record.inputs]
        results = [(i, number.setdefault(y, len(number))) for i, y in _results(record, past)]
        key += [record.plan, *inputs, *results]
    key += [number.setdefault(y, len(number)) for y in ys]
    structure = tuple(key)
    found = _known.get(structure)
    if found is None:
        if len(_known) >= MOST_KNOWN:
            _known.clear()
        reached = _reached(records, past, ys)
        found = _known[structure] = frozenset([number[x] for x in reached if x in number])
    return History(
        past.records, {x: None for x in past.values if number.get(x) in found or x in ys}
    )


def _results(record: Record, past: History) -> list[tuple[int, Lazy]]:
    return [(y.index, y) for y in record.outputs if y in past.values]


def _reached(records: Sequence[Record], past: History, ys: Sequence[Lazy]) -> set[Lazy]:
    """The values of a history that the nodes of `ys` read."""
    env: dict[Lazy, Cotangent] = {}
    behind: dict[Value, list[Cotangent]] = {}  # what results of custom functions depend on
    with Graph().as_default():
        for record in records:
            for x in record.inputs:
                if x not in env:
                    env[x] = placeholders([x.type])[0]
            values = [accepted_input(env[x], record.plan) for x in record.inputs]
            if any([isinstance(y, Custom) for y in record.outputs]):
                for y in record.outputs:
                    (env[y],) = found = placeholders([y.type])
                    behind[found[0]] = values
            else:
                env.update(record.paired(record.plan.expand(*values)))
    read: set[Value] = set()
    stack = [part for y in ys if y in env for part in _parts(env[y])]
    while stack:
        value = stack.pop()
        if value not in read:
            read.add(value)
            stack += value.node.inputs
            stack += [part for x in behind.get(value, ()) for part in _parts(x)]
    return {x for x in past.values if x in env and read.issuperset(_parts(env[x]))}


def _parts(value: Cotangent) -> tuple[Value, ...]:
    return (value,) if isinstance(value, Value) else (value.indices, value.values)

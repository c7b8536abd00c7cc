"""Replays recorded calls at other sizes.

Each call is planned again: operations check the new sizes as when recording, and functions that
branch on sizes take the right branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any
from weakref import ref

from weft.eager.record.attribute_pattern import refilled
from weft.eager.record.gradient_plan import gradient_plan
from weft.eager.record.interned_type import intern
from weft.eager.record.lazy import Lazy, Record
from weft.eager.record.pattern import Pattern
from weft.eager.record.plan import Plan, function_plan, op_plan
from weft.eager.record.structure import Structure, meet_values
from weft.errors import WeftError
from weft.ir.node import TensorType
from weft.ir.shape import known
from weft.ops.declaration import Op
from weft.transform.resize import Sizes, UnfitError


def resized(structure: Structure, sizes: Sizes) -> Structure:
    """The structure at other sizes, in the order of `weft.eager.record.dynamic_shape.family_of`.

    Raises:
        UnfitError: the calls are invalid at these sizes.
    """
    meet_values(structure)
    left = iter(sizes)
    new: dict[Lazy, Lazy] = {}
    records = tuple([_record(record, left, new) for record in structure.records])

    def of(lazy: Lazy) -> Lazy:
        return new.get(lazy, lazy)

    return replace(
        structure,
        records=records,
        leaves=tuple(map(of, structure.leaves)),
        outputs=tuple(map(of, structure.outputs)),
        same=tuple([(of(a), of(b)) for a, b in structure.same]),
    )


def _record(record: Record, left: Iterator[int], new: dict[Lazy, Lazy]) -> Record:
    plan, results = record.plan, [result() for result in record.results]
    types = [*[x.type for x in record.inputs], *plan.types]
    if plan.pattern.shared:
        types = [intern(t.dtype, refilled(known(t.shape), left)) for t in types]
        static = {name: refilled(value, left) for name, value in plan.static.items()}
        plan = _plan(plan.pattern, types[: len(record.inputs)], static)
    if list(plan.types) != types[len(record.inputs) :]:
        raise UnfitError
    for lazy, kind in zip((*record.inputs, *results), types, strict=True):
        if lazy is None:
            continue
        if lazy not in new:
            new[lazy] = copy(lazy)
            new[lazy].type = kind
        elif new[lazy].type != kind:
            raise UnfitError
    found = copy(record)
    found.plan = plan
    found.inputs = tuple([new[x] for x in record.inputs])
    pairs = zip(record.results, results, strict=True)
    found.results = tuple([gone if y is None else ref(new[y]) for gone, y in pairs])
    return found


def _plan(pattern: Pattern, types: Sequence[TensorType], static: dict[str, Any]) -> Plan:
    """The plan of the same call on inputs of these types."""
    called = pattern.called
    try:
        if isinstance(called, Op):
            return op_plan(called, types, static)
        if callable(called):
            return function_plan(called, types, static, pattern.differentiable, pattern.takes_rows)
    except WeftError:
        raise UnfitError from None
    return gradient_plan(types, **static)  # its gradient rules run when it is expanded

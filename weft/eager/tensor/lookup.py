"""Finds large parameters with row-sparse gradients (tables), or gradients of low rank."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import unwrap
from typing import Any, Final

from weft.eager.record.memory.result import rows_of
from weft.eager.record.pending.lazy import Lazy, Record
from weft.eager.tensor.dispatch import looks_up
from weft.ir.dtype import float32
from weft.ir.shape import known, size
from weft.ops.linalg.linear import linear

Use = tuple[Record, int]
"""A call, and the place of an input of it."""
Uses = dict[Lazy, list[Use]]
UsesByPass = dict[Record | None, Uses]
"""By the backward pass."""

LARGE: Final = 1 << 20
"""Elements from which a parameter's dense update costs more than finding a smaller one."""


def uses(g: Lazy) -> Uses:
    """Uses of the leaves that `g` differentiates through; none if that is not known."""
    record = g.record
    if record is None or not record.plan.follows:
        return {}
    found: Uses = {}
    seen: set[Record] = set()
    stack = [x.record for x in record.inputs[: record.plan.follows]]
    while stack:
        record = stack.pop()
        if record is None or record in seen:
            continue
        seen.add(record)
        for i, x in enumerate(record.inputs):
            if x.leaf is None:
                stack.append(x.record if x.tracked else None)
            else:
                found.setdefault(x, []).append((record, i))
    return found


def _uses_of(p: Lazy, g: Lazy, found: UsesByPass) -> Sequence[Use]:
    if g.record not in found:
        found[g.record] = uses(g)
    return found[g.record].get(p, ())


def looked_up(p: Lazy, g: Lazy, found: UsesByPass) -> int:
    """How many rows the gradient `g` of `p` has; 0 if it is dense.

    Args:
        found: the uses behind gradients of other parameters.
    """
    record = g.record
    if (
        record is not None and record.plan.pattern.called is rows_of
    ):  # computed, and still row-sparse
        return size(record.inputs[0].type.shape)
    calls = _uses_of(p, g, found)
    if not all([i == 1 and looks_up(call.plan) for call, i in calls]):
        return 0
    return sum([size(call.inputs[0].type.shape) for call, _ in calls])


def multiplied(p: Lazy, g: Lazy, found: UsesByPass) -> int:
    """How many rows the only use of `p`, a linear layer, multiplies by it; 0 if `p` has other uses.

    Its gradient `g` is then the product of the output's gradient and the input, summed over rows.
    """
    calls = _uses_of(p, g, found)
    if len(calls) != 1:
        return 0
    ((call, i),) = calls
    called = call.plan.pattern.called
    if i != 1 or called is None or unwrap(called) is not linear or len(known(p.type.shape)) != 2:
        return 0
    return size(known(call.inputs[0].type.shape)[:-1])


def is_large(p: Any) -> bool:
    """Whether a parameter is large enough for updates that are not dense."""
    kind = p.shown.type
    return size(kind.shape) >= LARGE and kind.dtype is float32


def pays(p: Any, rows: int) -> bool:
    """Whether updating a table by rows pays off if so many are looked up."""
    return 0 < rows <= known(p.lazy.type.shape)[0]

"""Collectives as recorded calls: part of the program that computes what they work on.

They run when somebody looks at anything, in the order of the program. Where nobody does, the end
of the job or the next collective on tensors runs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from weft.eager.record.lazy import Lazy, flush, trace
from weft.eager.record.plan import op_plan
from weft.eager.tensor.dispatch import wrap
from weft.ops.base import REGISTRY
from weft.transport import session
from weft.transport.group import Group

_pending: Final[list[Any]] = []
"""Tensors that show results which may not be computed yet: so none is left out on one rank only."""


def reduce_all(xs: Sequence[Lazy], reduction: str, group: Group) -> tuple[Lazy, ...]:
    """Record the reductions of values over ranks, as one call."""
    attrs = {"reduction": reduction, "group": group.number}
    plan = op_plan(REGISTRY["all_reduce"], [x.type for x in xs], attrs)
    found = trace.now.record(plan, tuple(xs))
    _pending[:] = [x for x in _pending if x.lazy.array is None]
    if not trace.now.depth:
        _pending.append(wrap(found[0]))
    return found


def settle() -> None:
    """Run what is recorded, if any of it waits for other ranks."""
    if any(x.lazy.array is None for x in _pending):
        flush()
    _pending.clear()


session.before_end.append(settle)

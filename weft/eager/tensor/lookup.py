"""Finds the row-sparse gradients (those of embedding tables) and their numbers of rows."""

from __future__ import annotations

from typing import Any, Final

from weft.eager.record.lazy import Lazy, Record
from weft.eager.record.result import rows_of
from weft.eager.tensor.dispatch import looks_up
from weft.ir.dtype import float32
from weft.ir.shape import known, size

LARGE: Final = 1 << 20
"""Elements from which a table's whole update costs more than keeping account of its rows."""


def lookups(g: Lazy) -> dict[Lazy, int]:
    """Leaves that `g` differentiates through lookups only, and how many rows of each."""
    record = g.record
    if record is None or not record.plan.follows:
        return {}
    found: dict[Lazy, int] = {}
    others: set[Lazy] = set()
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
            elif i == 1 and looks_up(record.plan):
                found[x] = found.get(x, 0) + size(record.inputs[0].type.shape)
            else:
                others.add(x)
    return {x: n for x, n in found.items() if x not in others}


def looked_up(p: Lazy, g: Lazy, found: dict[Record | None, dict[Lazy, int]]) -> int:
    """How many rows the gradient `g` of `p` has; 0 if it is dense.

    Args:
        found: what `lookups` gave for other parameters.
    """
    record = g.record
    if record is not None and record.plan.called is rows_of:  # computed, and still row-sparse
        return size(record.inputs[0].type.shape)
    if record not in found:
        found[record] = lookups(g)
    return found[record].get(p, 0)


def is_large(p: Any) -> bool:
    """Whether a table is large enough for row-sparse updates."""
    kind = p.shown.type
    return size(kind.shape) >= LARGE and kind.dtype is float32


def pays(p: Any, rows: int) -> bool:
    """Whether updating a table by rows pays off if so many are looked up."""
    return 0 < rows <= known(p.lazy.type.shape)[0]

"""Patterns: what calls that differ in sizes alone have in common."""

from __future__ import annotations

from typing import Any, Final

from weft.eager.record.attribute_pattern import without
from weft.eager.record.lazy import Record
from weft.ir.shape import known

MOST_PATTERNS: Final = 1 << 12  # forgotten together

Sizes = tuple[int, ...]
_patterns: Final[dict[Any, object]] = {}


def without_sizes(record: Record) -> tuple[object, Sizes]:
    """A record's plan without its sizes, and the sizes."""
    plan = record.plan
    if plan.kind is None:
        plan.general = (plan, ())
        return plan.general
    sizes: list[int] = []
    types = [*[x.type for x in record.inputs], *plan.types]
    kinds = [(t.dtype, without(known(t.shape), sizes)) for t in types]
    pattern = (without(plan.kind, sizes), len(plan.types), *kinds)
    if len(_patterns) >= MOST_PATTERNS:
        _patterns.clear()
    plan.general = (_patterns.setdefault(pattern, object()), tuple(sizes))
    return plan.general

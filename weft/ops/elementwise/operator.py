"""Arithmetic on values: what `x + y`, `-x`, `x @ y` and `x[1:, ...]` mean."""

from __future__ import annotations

from typing import Any

from weft.ir.hooks import HOOKS
from weft.ir.node import Value
from weft.ops.declaration import REGISTRY
from weft.ops.indexing.subscript import subscript


def apply(op: str, *operands: Any) -> Value:
    """The value of an operator, by the name of its operation."""
    if op == "subscript":
        return subscript(*operands)
    return REGISTRY[op](*operands)


HOOKS.operator = apply

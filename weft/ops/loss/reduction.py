"""Reduction of losses."""

from __future__ import annotations

from weft.ir.node import Value
from weft.ops.declaration import catalogue


def reduced(losses: Value, reduction: str) -> Value:
    """All losses (`"none"`), their mean, or their sum."""
    return losses if reduction == "none" else getattr(catalogue, reduction)(losses)

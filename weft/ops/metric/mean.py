"""Weighted totals, of which means over batches are made."""

from __future__ import annotations

from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.ops.shape.creation import ones_like


def weighted_total(x: Value, weights: Value | None = None) -> tuple[Value, Value]:
    """The weighted sum and the sum of the weights, which broadcast; all weigh 1 without them."""
    spread = ones_like(x) if weights is None else ones_like(x) * weights
    return catalogue.sum(x if weights is None else x * spread), catalogue.sum(spread)

"""Reduction of losses."""

from __future__ import annotations

from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.ops.declaration.rule import shape_argument
from weft.ops.elementwise.combination import safe_quotient


def reduced(losses: Value, reduction: str) -> Value:
    """All losses (`"none"`), their mean, or their sum."""
    return losses if reduction == "none" else getattr(catalogue, reduction)(losses)


def weighted(losses: Value, weights: Value, reduction: str) -> Value:
    """Losses times weights, reduced as TensorFlow 1 does; 0 if they are divided by 0.

    Args:
        weights: of the losses' first axes; they broadcast.
        reduction: `none`, `weighted_sum`, or the sum divided by all weights (`weighted_mean`), by
            the number of losses (`weighted_sum_over_batch_size`) or of weights that are not 0
            (`weighted_sum_by_nonzero_weights`).
    """
    for _ in range((losses.rank or 0) - (weights.rank or 0) if weights.rank else 0):
        weights = catalogue.expand_dims(weights, axis=-1)
    product = losses * weights
    if reduction == "none":
        return product
    total = catalogue.sum(product)
    if reduction == "weighted_sum":
        return total
    if reduction == "weighted_sum_over_batch_size":
        return safe_quotient(total, catalogue.cast(catalogue.size_of(losses), dtype=losses.dtype))
    spread = catalogue.broadcast_to(weights, shape=shape_argument(losses))
    if reduction == "weighted_sum_by_nonzero_weights":
        spread = catalogue.cast(catalogue.not_equal(spread, 0), dtype=losses.dtype)
    return safe_quotient(total, catalogue.sum(spread))

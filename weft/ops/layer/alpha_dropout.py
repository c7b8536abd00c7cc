"""Dropout that keeps the mean and variance that SELU networks rely on."""

from __future__ import annotations

from weft.ir.node import Value
from weft.ops.declaration import catalogue, constant_of
from weft.ops.elementwise.activation import SELU_ALPHA, SELU_SCALE


def alpha_dropout(x: Value, mask: Value, *, rate: float) -> Value:
    """`x` where the mask is true, else SELU's lower limit, rescaled to mean 0 and variance 1.

    Source: Klambauer et al., "Self-Normalizing Neural Networks" (2017).
    """
    low = -SELU_ALPHA * SELU_SCALE
    a = ((1 - rate) * (1 + rate * low * low)) ** -0.5 if rate < 1 else 0.0
    kept = catalogue.select(mask, x, constant_of(low, x.dtype))
    return kept * a + (-a * rate * low)

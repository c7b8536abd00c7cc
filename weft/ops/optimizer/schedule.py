"""Learning rates as functions of the step, on graph values."""

from __future__ import annotations

import math

from weft.ir.node import Value
from weft.ops.declaration import catalogue


def _units(step: Value, steps: Value, staircase: bool) -> Value:
    """How many times `steps` have passed; a staircase counts whole times."""
    share = step / steps
    return catalogue.floor(share) if staircase else share


def exponential_decay(
    rate: Value, step: Value, steps: Value, factor: Value, *, staircase: bool
) -> Value:
    """`rate * factor ** (step / steps)`"""
    return rate * catalogue.power(factor, _units(step, steps, staircase))


def natural_exponential_decay(
    rate: Value, step: Value, steps: Value, factor: Value, *, staircase: bool
) -> Value:
    """`rate * exp(-factor * step / steps)`"""
    return rate * catalogue.exp(-factor * _units(step, steps, staircase))


def inverse_time_decay(
    rate: Value, step: Value, steps: Value, factor: Value, *, staircase: bool
) -> Value:
    """`rate / (1 + factor * step / steps)`"""
    return rate / (1.0 + factor * _units(step, steps, staircase))


def polynomial_decay(
    rate: Value, step: Value, steps: Value, end: Value, degree: Value, *, cycle: bool
) -> Value:
    """From `rate` to `end` along `(1 - step / steps) ** degree`.

    Args:
        cycle: whether `steps` become the next multiple once they have passed.
    """
    if cycle:
        steps = steps * catalogue.maximum(catalogue.ceil(step / steps), 1.0)
    share = catalogue.minimum(step, steps) / steps
    return (rate - end) * catalogue.power(1.0 - share, degree) + end


def cosine_decay(rate: Value, step: Value, steps: Value, least: Value) -> Value:
    """From `rate` to `least * rate` along half a cosine.

    Source: Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts", 2016.
    """
    share = catalogue.minimum(step, steps) / steps
    return rate * ((1.0 - least) * (0.5 * (1.0 + catalogue.cos(share * math.pi))) + least)

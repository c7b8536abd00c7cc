"""Activations that JAX names."""

from __future__ import annotations

import math

from weft.ir.node import Value
from weft.ops.declaration import catalogue

__all__: list[str] = []


def squareplus(x: Value, b: Value) -> Value:
    """(x + sqrt(x**2 + b)) / 2 (Barron, "Squareplus", 2021)."""
    return (x + catalogue.sqrt(catalogue.square(x) + b)) * 0.5


def sparse_plus(x: Value) -> Value:
    """0 below -1, x above 1, and (x + 1)**2 / 4 between."""
    between = catalogue.square(x + 1.0) * 0.25
    above = catalogue.select(catalogue.greater_equal(x, x * 0.0 + 1.0), x, between)
    return catalogue.select(catalogue.less_equal(x, x * 0.0 - 1.0), x * 0.0, above)


def sparse_sigmoid(x: Value) -> Value:
    """(x + 1) / 2 within 0 and 1."""
    return catalogue.clip((x + 1.0) * 0.5, x * 0.0, x * 0.0 + 1.0)


def log1mexp(x: Value) -> Value:
    """log(1 - exp(-x)) without cancellation (Mächler, 2012)."""
    small = catalogue.log(-catalogue.expm1(-x))
    large = catalogue.log1p(-catalogue.exp(-x))
    return catalogue.select(catalogue.less(x, x * 0.0 + math.log(2)), small, large)


def weighted_logsumexp(x: Value, b: Value, *, axes: tuple[int, ...]) -> tuple[Value, Value]:
    """The logarithm of |sum(b * exp(x))|, and the sum's sign; axes are kept."""
    used = catalogue.select(catalogue.equal(b, b * 0.0), x * 0.0 - math.inf, x)
    most = catalogue.stop_gradient(catalogue.max(used, axes=axes, keepdims=True))
    most = catalogue.select(catalogue.isfinite(most), most, 0.0)
    total = catalogue.sum(b * catalogue.exp(x - most), axes=axes, keepdims=True)
    return catalogue.log(catalogue.abs(total)) + most, catalogue.sign(total)


def standardized(x: Value, mean: Value, variance: Value, *, epsilon: float) -> Value:
    """Values minus a mean over the root of a variance."""
    return (x - mean) / catalogue.sqrt(variance + epsilon)

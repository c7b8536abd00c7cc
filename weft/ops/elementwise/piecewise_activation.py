"""Activation functions that are written in others; at a kink the slope is PyTorch's."""

from __future__ import annotations

from weft.errors import ShapeError
from weft.ir.node import Value
from weft.ir.shape import show
from weft.ops.base import at_user_line, catalogue, constant_of
from weft.ops.declaration.rule import concrete
from weft.ops.elementwise.activation import relu6
from weft.ops.elementwise.compare import greater, greater_equal, less, less_equal, select
from weft.ops.elementwise.transcendental import expm1, sigmoid, softplus, tanh
from weft.ops.indexing.slicing import cut
from weft.ops.shape.reshape import axis_of

__all__ = [
    "celu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "log_sigmoid", "mish",
    "prelu", "softshrink", "softsign", "tanhshrink", "threshold",
]  # fmt: skip


def _number(value: float, like: Value) -> Value:
    return constant_of(value, like.dtype)


# Smooth ones


def softsign(x: Value) -> Value:
    """`x / (1 + |x|)`."""
    return x / (catalogue.abs(x) + 1)


def tanhshrink(x: Value) -> Value:
    """`x - tanh(x)`."""
    return x - tanh(x)


def log_sigmoid(x: Value) -> Value:
    """`log(sigmoid(x))`, which stays finite for every finite `x`."""
    return -softplus(-x)


def mish(x: Value) -> Value:
    """`x * tanh(log(1 + exp(x)))` (Misra, "Mish", 2019)."""
    return x * tanh(softplus(x))


def celu(x: Value, alpha: float = 1.0) -> Value:
    """`x` where it is positive, else `alpha * (exp(x / alpha) - 1)` (Barron, 2017)."""
    positive = greater(x, _number(0, x))
    below = select(positive, _number(0, x), x)  # keeps the exponential finite, and its slope
    return select(positive, x, expm1(below * (1 / alpha)) * alpha)


def glu(x: Value, axis: int = -1) -> Value:
    """One half of `x` along an axis times the sigmoid of the other (Dauphin et al., 2016).

    Raises:
        ShapeError: an odd dimension; the shape must be known.
    """
    at = axis_of("glu", x, axis)
    size = concrete(x)[at]
    if size % 2:
        shape = show(x.shape)
        raise ShapeError(f"glu: expected an even x.shape[{at}], got shape {shape}{at_user_line()}")
    return cut(x, at, 0, size // 2) * sigmoid(cut(x, at, size // 2, size))


# With kinks


def prelu(x: Value, slope: Value) -> Value:
    """`x` where it is positive, else `slope * x`; `slope` broadcasts, such as one a channel."""
    return select(greater(x, _number(0, x)), x, slope * x)


def threshold(x: Value, limit: float, value: float) -> Value:
    """`x` above a limit, else a value."""
    return select(less_equal(x, _number(limit, x)), _number(value, x), x)


def hardtanh(x: Value, low: float = -1.0, high: float = 1.0) -> Value:
    """`x` clipped to [low, high]; no slope at the limits themselves."""
    least, most = _number(low, x), _number(high, x)
    return select(less_equal(x, least), least, select(greater_equal(x, most), most, x))


def hardshrink(x: Value, limit: float = 0.5) -> Value:
    """`x`, but 0 in [-limit, limit]."""
    inside = less_equal(catalogue.abs(x), _number(limit, x))
    return select(inside, _number(0, x), x)


def softshrink(x: Value, limit: float = 0.5) -> Value:
    """`x` brought nearer to 0 by `limit`, and 0 in [-limit, limit]."""
    above, below = greater(x, _number(limit, x)), less(x, _number(-limit, x))
    shift = select(above, _number(-limit, x), _number(limit, x))
    return select(catalogue.logical_or(above, below), x + shift, x * 0)


def hardsigmoid(x: Value) -> Value:
    """`(x + 3) / 6` clipped to [0, 1] (Howard et al., "Searching for MobileNetV3", 2019)."""
    return relu6(x + 3) * (1 / 6)


def hardswish(x: Value) -> Value:
    """`x * hardsigmoid(x)` (Howard et al., 2019)."""
    zero, three = _number(0, x), _number(3, x)
    low, high = less_equal(x, -three), greater_equal(x, three)
    inner = select(catalogue.logical_or(low, high), zero, x)  # so that infinity has a slope
    return select(low, zero, select(high, x, inner * (inner + 3) * (1 / 6)))

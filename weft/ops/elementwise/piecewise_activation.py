"""Activation functions composed of other operations; at a kink the derivative is PyTorch's."""

from __future__ import annotations

from weft.errors import ShapeError
from weft.ir.node import Value
from weft.ir.shape import show
from weft.ops.declaration import Face, catalogue, constant_of
from weft.ops.declaration.fact import Autocast, autocasting
from weft.ops.declaration.rule import concrete
from weft.ops.elementwise.compare import greater, greater_equal, less, less_equal, select
from weft.ops.elementwise.transcendental import expm1, sigmoid, tanh
from weft.ops.shape.reshape import axis_of

__all__ = [
    "celu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "log_sigmoid", "mish",
    "prelu", "softshrink", "softsign", "tanhshrink", "threshold",
]  # fmt: skip


def _number(value: float, like: Value) -> Value:
    return constant_of(value, like.dtype)


# Smooth ones


@Face(torch="", tf1="Softsign nn.softsign")
def softsign(x: Value) -> Value:
    """`x / (1 + |x|)`."""
    return x / (catalogue.abs(x) + 1)


def tanhshrink(x: Value) -> Value:
    """`x - tanh(x)`."""
    return x - tanh(x)


@Face(torch="", tf1="Neg/LogSigmoid log_sigmoid", scipy="log_expit")
def log_sigmoid(x: Value) -> Value:
    """`log(sigmoid(x))`, which stays finite for every finite `x`."""
    return -catalogue.softplus(-x)


def mish(x: Value) -> Value:
    """`x * tanh(log(1 + exp(x)))` (Misra, "Mish", 2019)."""
    return x * tanh(catalogue.softplus(x))


@Face()
def celu(x: Value, alpha: float = 1.0) -> Value:
    """`x` where it is positive, else `alpha * (exp(x / alpha) - 1)` (Barron, 2017)."""
    positive = greater(x, _number(0, x))
    below = select(positive, _number(0, x), x)  # keeps the exponential and its derivative finite
    return select(positive, x, expm1(below * (1 / alpha)) * alpha)


def glu(x: Value, dim: int = -1) -> Value:
    """One half of `x` along an axis times the sigmoid of the other (Dauphin et al., 2016).

    Raises:
        ShapeError: an odd dimension; the shape must be known.
    """
    dims = concrete(x)
    axis = axis_of("glu", x, dim)
    if dims[axis] % 2:
        raise ShapeError.here(f"glu: expected an even size of dimension {dim}, got {show(dims)}")
    a, b = catalogue.split.all(x, sizes=(dims[axis] // 2,) * 2, axis=axis)
    return a * sigmoid(b)


# With kinks


def prelu(x: Value, slope: Value) -> Value:
    """`x` where it is positive, else `slope * x`; `slope` broadcasts, such as one per channel."""
    return select(greater(x, _number(0, x)), x, x * slope)


def shifted_leaky_relu(x: Value, *, slope: float, limit: float) -> Value:
    """`x` from a limit on, below it `slope * (x - limit)`."""
    return select(greater_equal(x, limit), x, slope * (x - limit))


def two_sided_prelu(x: Value, slope: Value) -> Value:
    """`prelu` as a sum of both sides, so that its derivative at 0 is 0, as in Keras."""
    return catalogue.relu(x) - slope * catalogue.relu(-x)


def threshold(x: Value, limit: float, value: float) -> Value:
    """`x` above a limit, else a value."""
    return select(less_equal(x, _number(limit, x)), _number(value, x), x)  # NaN is not below


def hardtanh(x: Value, low: float = -1.0, high: float = 1.0) -> Value:
    """`x` clipped to [low, high]; the gradient at the limits is 0."""
    a, b = _number(low, x), _number(high, x)
    inside = catalogue.logical_and(greater(x, a), less(x, b))
    return select(inside, x, catalogue.clip(catalogue.stop_gradient(x), a, b))


@Face()
def hardshrink(x: Value, limit: float = 0.5) -> Value:
    """`x`, but 0 in [-limit, limit]."""
    inside = less_equal(catalogue.abs(x), _number(limit, x))
    return select(inside, _number(0, x), x)


def softshrink(x: Value, limit: float = 0.5) -> Value:
    """`x` moved towards 0 by `limit`, and 0 in [-limit, limit]."""
    inside = less_equal(catalogue.abs(x), _number(limit, x))  # NaN is not
    return select(inside, _number(0, x), x - catalogue.sign(x) * limit)


def _between(x: Value, inner: Value, high: Value) -> Value:
    """0 up to -3, `inner` up to 3, then `high`; compares the unrounded `x`."""
    above, below = greater_equal(x, _number(3, x)), less_equal(x, _number(-3, x))
    return select(above, high, select(below, _number(0, x), inner))


def hardsigmoid(x: Value) -> Value:
    """`(x + 3) / 6` clipped to [0, 1] (Howard et al., "Searching for MobileNetV3", 2019)."""
    return _between(x, (x + 3.0) / 6.0, _number(1, x))


def hardswish(x: Value) -> Value:
    """`x * hardsigmoid(x)` (Howard et al., 2019)."""
    inner = _between(x, x, _number(0, x))  # so that the derivative at infinity is finite
    return _between(x, inner * ((x + 3.0) / 6.0), x)


@autocasting(Autocast.FLOAT32)
def softplus(x: Value, *, beta: float, threshold: float) -> Value:
    """`log(1 + exp(beta * x)) / beta`, and `x` itself where `beta * x` exceeds `threshold`."""
    scaled = x * beta
    return select(greater(scaled, _number(threshold, x)), x, catalogue.softplus(scaled) / beta)

"""Elementwise composites of several values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from weft.ir.dtype import bfloat16, float16
from weft.ir.node import Value
from weft.ops.boundary.state import CONSTANT
from weft.ops.declaration import Face, catalogue, constant_of, op_of


def _shared(x: Value, y: Value, extreme: Value) -> Value:
    """If both are equal, each gets half of the gradient, as in PyTorch and autograd."""
    half = constant_of(0.5, x.dtype)
    return catalogue.select(catalogue.equal(x, y), half * x + half * y, extreme)


def maximum(x: Value, y: Value) -> Value:
    """The larger one; equal ones share the gradient."""
    return _shared(x, y, catalogue.maximum(x, y))


def minimum(x: Value, y: Value) -> Value:
    """The smaller one; equal ones share the gradient."""
    return _shared(x, y, catalogue.minimum(x, y))


@Face(torch="", tf1="TruncateDiv tf.truncatediv")
def cut_off(x: Value, y: Value) -> Value:
    """`x / y`, rounded towards 0."""
    if x.dtype.is_floating:
        return catalogue.trunc(x / y)
    rest = catalogue.fmod(x, y)
    return catalogue.floor_divide(x - rest, y)


def addcmul(x: Value, first: Value, second: Value, value: Value) -> Value:
    """`x + value * first * second`."""
    return x + value * first * second


def addcdiv(x: Value, first: Value, second: Value, value: Value) -> Value:
    """`x + value * first / second`."""
    return x + value * first / second


@Face(torch="", tf1="FloorDiv/floordiv floordiv tf.floor_div")
def floored(x: Value, y: Value) -> Value:
    """`x / y`, rounded down."""
    if x.dtype.is_floating:
        return catalogue.floor(x / y)
    return catalogue.floor_divide(x, y)


def round_away(x: Value) -> Value:
    """The nearest whole number, halves away from 0."""
    whole = catalogue.trunc(x)
    half = catalogue.greater_equal(catalogue.abs(x - whole), constant_of(0.5, x.dtype))
    return catalogue.select(half, whole + catalogue.sign(x), whole)


@Face(torch="", tf1="DivNoNan/div_no_nan div_no_nan")
def safe_quotient(x: Value, y: Value) -> Value:
    """`x / y`, or 0 where `y` is 0."""
    none = catalogue.equal(y, 0)
    return catalogue.select(none, 0, x / catalogue.select(none, 1, y))


@Face(torch="", tf1="SquaredDifference squared_difference")
def squared_difference(x: Value, y: Value) -> Value:
    """`(x - y) * (x - y)`; of complex numbers the square of the absolute value, as they are."""
    change = x - y
    return catalogue.conj(change) * change if change.dtype.is_complex else catalogue.square(change)


@Face(torch="", tf1="MulNoNan/multiply_no_nan math.multiply_no_nan")
def safe_product(x: Value, y: Value) -> Value:
    """`x * y`, and 0 where `y` is 0, even if `x` is NaN or infinite."""
    return catalogue.select(catalogue.equal(y, 0), 0, x * y)


def real_power(x: Value, y: Value) -> Value:
    """`x ** y`; the gradient by `y` is 0 where `x` is negative, as in TensorFlow."""
    if op_of(y.node) is CONSTANT or not x.dtype.is_floating:
        return catalogue.power(x, y)
    exponent = catalogue.select(catalogue.less(x, 0), catalogue.stop_gradient(y), y)
    return catalogue.power(x, exponent)


def raised(x: Value, *, exponent: float) -> Value:
    """`x ** exponent`, by a root or by multiplications where that is the same but for rounding.

    As in PyTorch, the root of -0.0 is -0.0, and the root of minus infinity is NaN.
    """
    form = _RAISED.get(exponent)
    half = x.dtype is float16 or (x.dtype is bfloat16 and exponent > 1)  # rounded once
    if form is None or half or not (x.dtype.is_floating or (x.dtype.kind in "iu" and exponent > 1)):
        return catalogue.power(x, exponent)
    return form(x)


_RAISED: Final[Mapping[float, Callable[[Value], Value]]] = {
    -1: lambda x: catalogue.reciprocal(x),
    0.5: lambda x: catalogue.sqrt(x),
    2: lambda x: catalogue.square(x),
    3: lambda x: catalogue.square(x) * x,
    4: lambda x: catalogue.square(catalogue.square(x)),
}  # others, with gradients at 0 and infinity as of a power


def polar(size: Value, angle: Value) -> Value:
    """Complex numbers from magnitudes and angles."""
    return catalogue.complex(size * catalogue.cos(angle), size * catalogue.sin(angle))

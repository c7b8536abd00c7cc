"""Elementwise arithmetic, rounding, minimum and maximum.

Both inputs of a binary operation have one dtype (front ends promote) and broadcast as in NumPy.
Integers wrap around; integer division and remainder by zero give 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from weft.ir import dtype as types
from weft.ir.dtype import DType
from weft.ops.declaration import Array, Case, Elementwise, catalogue, constant_of, defop
from weft.ops.declaration.fact import CHEAP, IN_FLOAT32, Cost, Facts
from weft.ops.declaration.numeric import (
    FLOATS,
    binary,
    draw,
    dtypes_of,
    elementwise,
    fitted,
    flat,
    over,
    special,
    widened,
)  # fmt: skip
from weft.ops.declaration.rule import arithmetic, broadcast_shape, numeric, same_shape
from weft.ops.elementwise.compare import (
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    not_equal,
    select,
)  # fmt: skip
from weft.ops.elementwise.transcendental import log

# Sums and products
add = binary(
    "add", lambda b, x, y: x + y, np.add, lambda g, z, x, y: (g, g), "iufc",
    facts=Facts(cost=Cost.CHEAP, cancels=True),
)  # fmt: skip
subtract = binary(
    "subtract", lambda b, x, y: x - y, np.subtract, lambda g, z, x, y: (g, -g), "iufc",
    facts=Facts(cost=Cost.CHEAP, cancels=True),
)  # fmt: skip
multiply = binary(
    "multiply", lambda b, x, y: x * y, np.multiply, lambda g, z, x, y: (g * y, g * x), "iufc",
    facts=CHEAP,
)  # fmt: skip
divide = binary(
    "divide", lambda b, x, y: x / y, np.divide, lambda g, z, x, y: (g / y, -g * z / y), "fc",
    atol=1e-5,
)  # fmt: skip
negative = elementwise(
    "negative", lambda b, x: -x, np.negative, lambda g, y, x: (-g,), kinds="iufc",
    facts=Facts(linear=True, cost=Cost.CHEAP),
)  # fmt: skip
square = elementwise(
    "square", lambda b, x: x * x, np.square, lambda g, y, x: (g * 2 * x,), kinds="iufc",
    facts=CHEAP,
)  # fmt: skip
reciprocal = elementwise(
    "reciprocal", lambda b, x: 1.0 / x, np.reciprocal, lambda g, y, x: (-g * y * y,), kinds="fc",
    facts=IN_FLOAT32,
)  # fmt: skip


def _sum_of(b: Any, first: Any, *rest: Any) -> Any:
    for x in rest:
        first = first + x
    return first


def _add_n_reference(first: Array, *rest: Array) -> Array:
    total = first + rest[0] if rest else first
    for x in rest[1:]:
        total += x
    return total


def _add_n_cases() -> Iterator[Case]:
    for count in (1, 2, 5):
        yield from over(
            [[(3, 5)] * count], (types.float32, types.int32, types.bfloat16, types.complex64)
        )


add_n = defop(
    "add_n",
    inputs="x *xs",
    dtype=arithmetic,
    shape=same_shape,
    reference=widened(_add_n_reference),
    vjp=lambda g, y, *xs: (g,) * len(xs),
    lower=Elementwise(_sum_of),
    cases=_add_n_cases,
    partial=True,
    facts=Facts(cancels=True),
)


# Integer-like division. The quotient is piecewise constant, so it has no gradient.
floor_divide = binary(
    "floor_divide", lambda b, x, y: b.floor_divide(x, y), np.floor_divide, flat,
    specials=(1.0, -2.5, 7.25, 0.0),
)  # fmt: skip
remainder = binary(
    "remainder", lambda b, x, y: b.remainder(x, y), np.remainder,
    lambda g, z, x, y: (g, -g * floor_divide(x, y)), specials=(1.0, -2.5, 7.25, 0.0), low=0.5,
)  # fmt: skip
fmod = binary(
    "fmod", lambda b, x, y: b.fmod(x, y), np.fmod,
    lambda g, z, x, y: (g, -g * trunc(x / y) if x.dtype.is_floating else None),
    specials=(1.0, -2.5, 7.25, 0.0), low=0.5,
)  # fmt: skip


# Powers
def _power_reference(x: Array, y: Array) -> Array:
    if x.dtype.kind != "i":
        return np.power(x, y)
    # A negative exponent gives the truncated real power: 1 for 1, +-1 for -1, otherwise 0.
    positive = np.power(x, np.maximum(y, 0))
    inverse = np.where(x == 1, 1, np.where(x == -1, np.where(y % 2 == 0, 1, -1), 0))
    return np.where(y < 0, inverse, positive).astype(x.dtype)


def _constant_exponent(y: Any) -> float | None:
    """The exponent if it is a constant number, as in `x ** 2`."""
    if y.node.op != "constant" or y.node.attrs["value"].array.size != 1:
        return None
    exponent = y.node.attrs["value"].array.reshape(())[()]
    return float(exponent.real) if exponent.imag == 0 else None


def _power_vjp(g: Any, z: Any, x: Any, y: Any) -> tuple[Any, ...]:
    one, zero = constant_of(1, x.dtype), constant_of(0, x.dtype)
    exponent = _constant_exponent(y)
    if exponent == 2:
        return g * 2 * x, None
    if exponent == 0:
        return g * y, None
    if exponent is not None:
        return g * (y * power(x, y - 1)), None
    if x.dtype.is_complex:
        return g * (y * power(x, y - 1)), g * z * log(select(equal(x, zero), one, x))
    # 0 * 0**-1 would be NaN: the derivative of x**0 is 0 at every x. By y it is NaN for x < 0; at
    # x = 0 it is 0 from y = 0 on, and -inf below, where z is infinite.
    nonzero = logical_or(greater(x, zero), less(x, zero))
    singular = logical_and(equal(y, zero), logical_not(nonzero))
    dx = g * (y * power(select(singular, one, x), y - 1))
    flat = logical_and(equal(x, zero), greater_equal(y, zero))
    dy = g * z * log(select(flat, one, x))
    return dx, dy


power = binary(
    "power", lambda b, x, y: b.power(x, y), _power_reference, _power_vjp, "iufc",
    low=0.25, rtol=1e-5,
    specials=(0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 3.0, -3.0, np.inf, -np.inf, np.nan),
    facts=IN_FLOAT32,
)  # fmt: skip


# Magnitude and rounding
def _sign_rule(b: Any, x: Any) -> Any:
    zero, one = b.const(0, x.dtype), b.const(1, x.dtype)
    rest = x + zero if x.dtype.is_floating else x  # -0 becomes 0; NaN stays
    positive = b.select(b.less(zero, x), one, rest)
    if x.dtype.kind == "u":
        return positive
    return b.select(b.less(x, zero), -one, positive)


def _magnitude_dtype(x: DType) -> DType:
    return arithmetic(x).real


def _abs_vjp(g: Any, y: Any, x: Any) -> tuple[Any, ...]:
    if x.dtype.is_complex:  # the steepest ascent is sign(x), and a cotangent its conjugate
        return (catalogue.cast(g, dtype=x.dtype) * catalogue.conj(sign(x)),)
    return (g * sign(x),)


def _sign_vjp(g: Any, y: Any, x: Any) -> tuple[Any, ...]:
    if not x.dtype.is_complex:
        return (None,)
    # Of y = x / r: dy = (dx - y * dr) / r, where dr is the real part of conj(y) * dx.
    size = catalogue.abs(x)
    zero, one = (constant_of(v, size.dtype) for v in (0, 1))
    there = not_equal(size, zero)
    scale = catalogue.select(there, one / catalogue.select(there, size, one), zero)
    along = catalogue.cast(catalogue.real(g * y), dtype=x.dtype)
    return (catalogue.cast(scale, dtype=x.dtype) * (g - along * catalogue.conj(y)),)


abs = elementwise(
    "abs", lambda b, x: b.abs(x), np.abs, _abs_vjp, kinds="iufc", dtype=_magnitude_dtype,
    facts=CHEAP,
)  # fmt: skip
sign = elementwise("sign", _sign_rule, np.sign, _sign_vjp, kinds="iufc")
"""-1, 0 or 1; for complex numbers `x / abs(x)`, and 0 at 0."""
floor = elementwise("floor", lambda b, x: b.floor(x), np.floor, flat)
ceil = elementwise("ceil", lambda b, x: b.ceil(x), np.ceil, flat)
trunc = elementwise("trunc", lambda b, x: b.trunc(x), np.trunc, flat)
round = elementwise("round", lambda b, x: b.round(x), np.rint, flat, kinds="fc")

# Minimum and maximum. NaN wins; in a tie the whole gradient goes to x, as in TensorFlow.
maximum = binary(
    "maximum", lambda b, x, y: b.maximum(x, y), np.maximum,
    lambda g, z, x, y: _to_winner(g, greater_equal(x, y)),
    facts=CHEAP,
)  # fmt: skip
minimum = binary(
    "minimum", lambda b, x, y: b.minimum(x, y), np.minimum,
    lambda g, z, x, y: _to_winner(g, less_equal(x, y)),
    facts=CHEAP,
)  # fmt: skip


def _to_winner(g: Any, first: Any) -> tuple[Any, Any]:
    zero = constant_of(0, g.dtype)
    return select(first, g, zero), select(first, zero, g)


def _clip_reference(x: Array, low: Array, high: Array) -> Array:
    return np.minimum(np.maximum(x, low), high)


def _clip_vjp(g: Any, y: Any, x: Any, low: Any, high: Any) -> tuple[Any, ...]:
    zero = constant_of(0, g.dtype)
    below, above = less(x, low), greater(maximum(x, low), high)
    return (
        select(logical_or(below, above), zero, g),
        select(logical_and(below, less_equal(low, high)), g, zero),
        select(above, g, zero),
    )


def _clip_cases() -> Iterator[Case]:
    for dtype in dtypes_of("iuf"):
        for x, low, high in (((4, 5), (), ()), ((3,), (2, 1), (3,)), ((0, 2), (2,), ())):
            yield Case((draw(x, dtype), draw(low, dtype, -2, -1), draw(high, dtype, 1, 2)))
    yield from special(3, FLOATS[:2], (-np.inf, -1.0, 2.0, np.nan, np.inf))


clip = defop(
    "clip",
    inputs="x low high",
    dtype=numeric,
    shape=broadcast_shape,
    reference=widened(_clip_reference),
    vjp=fitted(_clip_vjp),
    lower=Elementwise(lambda b, x, low, high: b.minimum(b.maximum(x, low), high)),
    cases=_clip_cases,
    partial=True,
)

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
from weft.ops.declaration import (
    Array,
    Case,
    Elementwise,
    Face,
    Out,
    Takes,
    catalogue,
    constant_of,
    defop,
)
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
    "add", lower=lambda b, x, y: x + y, reference=np.add, vjp=lambda g, z, x, y: (g, g),
    kinds="iufc", facts=Facts(cost=Cost.CHEAP, cancels=True),
    face=Face("The sum of two tensors, with broadcasting.", "[1, 2], [3, 4] -> [4, 6]",
              torch="add_", numpy="add", tf1="AddV2/Add add"),
)  # fmt: skip
subtract = binary(
    "subtract", lower=lambda b, x, y: x - y, reference=np.subtract, vjp=lambda g, z, x, y: (g, -g),
    kinds="iufc", facts=Facts(cost=Cost.CHEAP, cancels=True),
    face=Face("The difference of two tensors, with broadcasting.", "[1, 2], 3 -> [-2, -1]",
              torch="sub_ subtract_", numpy="subtract", tf1="Sub subtract"),
)  # fmt: skip
multiply = binary(
    "multiply", lower=lambda b, x, y: x * y, reference=np.multiply,
    vjp=lambda g, z, x, y: (g * y, g * x),
    kinds="iufc", facts=CHEAP,
    face=Face("The product of two tensors, element by element, with broadcasting.",
              "[1, 2], [3, 4] -> [3, 8]",
              torch="mul_ multiply_", numpy="multiply", tf1="Mul multiply"),
)  # fmt: skip
divide = binary(
    "divide", lower=lambda b, x, y: x / y, reference=np.divide,
    vjp=lambda g, z, x, y: (g / y, -g * z / y),
    kinds="fc", atol=1e-5,
    face=Face("The quotient of two tensors, with broadcasting; integers are divided as floats.",
              "[1, 2], 4 -> [0.2500, 0.5000]",
              torch="div_ divide_ true_divide_", numpy="divide true_divide"),
)  # fmt: skip
negative = elementwise(
    "negative", lower=lambda b, x: -x, reference=np.negative, vjp=lambda g, y, x: (-g,),
    kinds="iufc", facts=Facts(linear=True, cost=Cost.CHEAP),
    face=Face("Every element with the other sign.", "[1, -2] -> [-1,  2]",
              torch="neg_ negative_", numpy="negative", tf1="Neg negative", out=Out.EXACT),
)  # fmt: skip
square = elementwise(
    "square", lower=lambda b, x: x * x, reference=np.square, vjp=lambda g, y, x: (g * 2 * x,),
    kinds="iufc", facts=CHEAP,
    face=Face("The square of every element; for booleans an integer.", "[2, -3] -> [4, 9]",
              torch="square_", numpy="square", tf1="Square", dtensor=True, booleans=types.int64),
)  # fmt: skip
reciprocal = elementwise(
    "reciprocal", lower=lambda b, x: 1.0 / x, reference=np.reciprocal,
    vjp=lambda g, y, x: (-g * y * y,),
    kinds="fc", facts=IN_FLOAT32,
    face=Face("1 divided by every element.", "[2.0, -4.0] -> [ 0.5000, -0.2500]",
              torch="reciprocal_", tf1="Reciprocal", dtensor=True),
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
    "floor_divide", lower=lambda b, x, y: b.floor_divide(x, y), reference=np.floor_divide, vjp=flat,
    specials=(1.0, -2.5, 7.25, 0.0),
    face=Face("The quotient of two tensors, rounded down, with broadcasting.",
              "[7, -7], 2 -> [ 3, -4]",
              torch="floor_divide_", numpy="floor_divide", takes=Takes.DIVISOR),
)  # fmt: skip
remainder = binary(
    "remainder", lower=lambda b, x, y: b.remainder(x, y), reference=np.remainder,
    vjp=lambda g, z, x, y: (g, -g * floor_divide(x, y)),
    specials=(1.0, -2.5, 7.25, 0.0), low=0.5,
    face=Face("What a division rounded down leaves: the sign is that of the divisor.",
              "[7, -7], 3 -> [1, 2]", torch="remainder_", numpy="remainder mod",
              tf1="FloorMod floormod mod", takes=Takes.DIVISOR),
)  # fmt: skip
fmod = binary(
    "fmod", lower=lambda b, x, y: b.fmod(x, y), reference=np.fmod,
    vjp=lambda g, z, x, y: (g, -g * trunc(x / y) if x.dtype.is_floating else None),
    specials=(1.0, -2.5, 7.25, 0.0), low=0.5,
    face=Face("What a division rounded towards 0 leaves: the sign is that of the dividend.",
              "[7, -7], 3 -> [ 1, -1]",
              torch="fmod_", numpy="fmod", tf1="TruncateMod tf.truncatemod", takes=Takes.DIVISOR),
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
    "power", lower=lambda b, x, y: b.power(x, y), reference=_power_reference, vjp=_power_vjp,
    kinds="iufc", low=0.25, rtol=1e-5,
    specials=(0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 3.0, -3.0, np.inf, -np.inf, np.nan), facts=IN_FLOAT32,
    face=Face("The first tensor to the power of the second, with broadcasting.",
              "[2, 3], 2 -> [4, 9]", torch="pow_ power"),
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
    "abs", lower=lambda b, x: b.abs(x), reference=np.abs, vjp=_abs_vjp,
    kinds="iufc", dtype=_magnitude_dtype, facts=CHEAP,
    face=Face("The absolute value of every element.", "[-2, 3] -> [2, 3]",
              torch="abs_ absolute_", numpy="abs absolute fabs", tf1="Abs", dtensor=True),
)  # fmt: skip
sign = elementwise(
    "sign", lower=_sign_rule, reference=np.sign, vjp=_sign_vjp,
    kinds="iufc",
    face=Face("-1, 0 or 1 by the sign; for complex numbers `x / abs(x)`, and 0 at 0.",
              "[-2.0, 0.0, 5.0] -> [-1.,  0.,  1.]", torch="sgn_ sign_", numpy="sign", tf1="Sign",
              dtensor=True, booleans=types.bool_, out=Out.EXACT),
)  # fmt: skip
floor = elementwise(
    "floor", lower=lambda b, x: b.floor(x), reference=np.floor, vjp=flat,
    face=Face("The greatest integer that is not greater than an element.",
              "[1.5, -1.5] -> [ 1., -2.]", torch="floor_", numpy="floor", tf1="Floor", dtensor=True,
              takes=Takes.ROUNDING, out=Out.EXACT),
)  # fmt: skip
ceil = elementwise(
    "ceil", lower=lambda b, x: b.ceil(x), reference=np.ceil, vjp=flat,
    face=Face("The least integer that is not less than an element.", "[1.5, -1.5] -> [ 2., -1.]",
              torch="ceil_", numpy="ceil", tf1="Ceil", dtensor=True,
              takes=Takes.ROUNDING, out=Out.EXACT),
)  # fmt: skip
trunc = elementwise(
    "trunc", lower=lambda b, x: b.trunc(x), reference=np.trunc, vjp=flat,
    face=Face("Every element without its fraction: rounded towards 0.", "[1.5, -1.5] -> [ 1., -1.]",
              torch="trunc_", numpy="trunc fix", takes=Takes.ROUNDING, out=Out.EXACT),
)  # fmt: skip
round = elementwise(
    "round", lower=lambda b, x: b.round(x), reference=np.rint, vjp=flat,
    kinds="fc",
    face=Face("The nearest integer; halves round to even.", "[0.5, 1.5, 2.4] -> [0., 2., 2.]",
              torch="round_", special="round", tf1="Rint rint", dtensor=True, takes=Takes.ROUNDING,
              out=Out.EXACT),
)  # fmt: skip

# Minimum and maximum. NaN wins; in a tie the whole gradient goes to x, as in TensorFlow.
maximum = binary(
    "maximum", lower=lambda b, x, y: b.maximum(x, y), reference=np.maximum,
    vjp=lambda g, z, x, y: _to_winner(g, greater_equal(x, y)),
    facts=CHEAP,
    face=Face("The larger of two elements, with broadcasting; NaN wins.",
              "[1, 5], [3, 4] -> [3, 5]",
              torch="maximum", numpy="maximum", tf1="Maximum", dtensor=True),
)  # fmt: skip
minimum = binary(
    "minimum", lower=lambda b, x, y: b.minimum(x, y), reference=np.minimum,
    vjp=lambda g, z, x, y: _to_winner(g, less_equal(x, y)),
    facts=CHEAP,
    face=Face("The smaller of two elements, with broadcasting; NaN wins.",
              "[1, 5], [3, 4] -> [1, 4]",
              torch="minimum", numpy="minimum", tf1="Minimum", dtensor=True),
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

"""Further functions of real numbers, exact where NumPy's are."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import numpy as np
from ml_dtypes import finfo

from weft.ir import dtype as types
from weft.ir.dtype import DType, float32
from weft.ir.node import Value
from weft.ops.declaration import (
    NO_GRADIENT,
    Array,
    Case,
    Elementwise,
    Face,
    Out,
    catalogue,
    constant_of,
    defop,
)
from weft.ops.declaration.fact import IN_FLOAT32, Autocast, autocasting
from weft.ops.declaration.numeric import FLOATS, binary, draw, elementwise, fitted, special, to_bool
from weft.ops.declaration.rule import broadcast_shape, floating
from weft.ops.elementwise.arithmetic import maximum, minimum, sign
from weft.ops.elementwise.compare import (
    equal,
    greater,
    isinf,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_or,
    select,
)
from weft.ops.elementwise.complex_number import imag, real
from weft.ops.elementwise.transcendental import log, log1p, sigmoid, sin

__all__ = [
    "deg2rad", "exp2", "fmax", "fmin", "heaviside", "isclose", "lerp", "logit", "nan_to_num",
    "rad2deg", "sinc", "xlogy",
]  # fmt: skip

_BITS: Final = {8: types.int64, 4: types.int32, 2: types.int16}


def _bits(b: Any, x: Any) -> Any:
    return b.bitcast(x, _BITS[x.dtype.size])


def _number(b: Any, value: float, like: Any) -> Any:
    return b.const(value, like.dtype)


# Signs and adjacent floats


def _negative(b: Any, x: Any) -> Any:
    bits = _bits(b, x)
    return b.less(bits, _number(b, 0, bits))


signbit = elementwise(
    "signbit", lower=_negative, reference=np.signbit, vjp=NO_GRADIENT,
    dtype=to_bool("f"),
    face=Face("Whether the sign is negative, -0 included.", "[1.0, -0.0] -> [False,  True]",
              torch="signbit", numpy="signbit"),
)  # fmt: skip


def _copysign_rule(b: Any, x: Any, y: Any) -> Any:
    return b.select(_negative(b, y), -b.abs(x), b.abs(x))


copysign = binary(
    "copysign", lower=_copysign_rule, reference=np.copysign,
    vjp=lambda g, z, x, y: (g * sign(x) * copysign(constant_of(1, x.dtype), y), None),
    kinds="f",
    face=Face("The magnitudes of the first with the signs of the second, with broadcasting.",
              "[1.0, -2.0], -3.0 -> [-1., -2.]", torch="copysign_", numpy="copysign"),
)  # fmt: skip


def _nextafter_rule(b: Any, x: Any, y: Any) -> Any:
    bits, zero = _bits(b, x), _number(b, 0, x)
    one = _number(b, 1, bits)
    outward = b.equal(b.less(x, y), b.less(zero, x))
    stepped = b.bitcast(b.select(outward, bits + one, bits - one), x.dtype)
    least = _copysign_rule(b, b.bitcast(one, x.dtype), y)
    found = b.select(b.equal(x, y), y, b.select(b.equal(x, zero), least, stepped))
    return b.select(b.equal(x, x), b.select(b.equal(y, y), found, y), x)


def _nextafter_cases() -> Iterator[Case]:
    for dtype in FLOATS:
        yield Case((draw((3, 5), dtype), draw((5,), dtype, seed=1)), differentiate=False)
    yield from special(2, FLOATS, (0.0, -0.0, 1.0, -1.0, 2.0**-14, np.inf, -np.inf, np.nan))


nextafter = defop(
    "nextafter",
    inputs="x y",
    dtype=floating,
    shape=broadcast_shape,
    reference=lambda x, y: np.where(x == y, y, np.nextafter(x, y)),  # also of zeros
    vjp=fitted(lambda g, z, x, y: (select(equal(x, y), constant_of(0, x.dtype), g), None)),
    lower=Elementwise(_nextafter_rule),
    cases=_nextafter_cases,
    partial=True,
    face=Face("The next floating-point number after the first, towards the second.",
              torch="nextafter_", numpy="nextafter"),
)  # fmt: skip

# Logarithms and powers of 2 and 10

# 1 / ln(2) and 1 / ln(10), each as a rounded number and its rounding error
_PER_LN2: Final = {
    8: (1.4426950408889634, 2.0355273740931033e-17),
    4: (1.4426950216293335, 1.9259629911266175e-08),
}
_PER_LN10: Final = {
    8: (0.4342944819032518, 1.098319650216765e-17),
    4: (0.4342944920063019, -1.0103050052231683e-08),
}
# By size: bits of the mantissa, and the bits of sqrt(1/2)
_LAYOUT: Final = {8: (52, 0x3FE6A09E667F3BCD), 4: (23, 0x3F3504F3)}


def _in_float32(rule: Any) -> Any:
    """A rule that computes half precision in float32, constants and bits included."""

    def run(b: Any, *xs: Any) -> Any:
        kind: DType = xs[0].dtype
        wide = [b.cast(x, float32) if kind.size == 2 else x for x in xs]
        y = rule(b, *wide)
        return b.cast(y, kind) if kind.size == 2 else y

    return run


def _times(b: Any, x: Any, constant: tuple[float, float]) -> Any:
    """The product with a constant in double-double precision."""
    high, low = (_number(b, c, x) for c in constant)
    product = x * high
    return product + b.fma(x, low, b.fma(x, high, -product))


@_in_float32
def _log2_rule(b: Any, x: Any) -> Any:
    """`k + log2(m)` for `x = m * 2**k` with `m` around 1, so that powers of 2 are exact."""
    width, root = _LAYOUT[x.dtype.size]
    tiny = b.less(x, _number(b, float(finfo(x.dtype).smallest_normal), x))
    bits = _bits(b, b.select(tiny, x * 2.0**width, x))
    shift = _number(b, width, bits)
    k = b.shift_right(bits - _number(b, root, bits), shift)
    m = b.bitcast(bits - b.shift_left(k, shift), x.dtype)
    k = k - b.select(tiny, shift, _number(b, 0, bits))
    found = _times(b, b.log(m), _PER_LN2[x.dtype.size]) + b.cast(k, x.dtype)
    proper = b.bit_and(b.less(_number(b, 0, x), x), b.less(x, _number(b, math.inf, x)))
    return b.select(proper, found, b.log(x))


@_in_float32
def _log10_rule(b: Any, x: Any) -> Any:
    y = b.log(x)
    finite = b.less(b.abs(y), _number(b, math.inf, x))
    return b.select(finite, _times(b, y, _PER_LN10[x.dtype.size]), y)


log2 = elementwise(
    "log2", lower=_log2_rule, reference=np.log2, vjp=lambda g, y, x: (g * (1 / math.log(2)) / x,),
    low=0.25, high=4.0, kinds="fc", facts=IN_FLOAT32,
    face=Face("The logarithm to base 2.", "[1.0, 8.0] -> [0., 3.]",
              torch="log2_", numpy="log2", dtensor=True),
)  # fmt: skip
log10 = elementwise(
    "log10", lower=_log10_rule, reference=np.log10,
    vjp=lambda g, y, x: (g * (1 / math.log(10)) / x,),
    low=0.25, high=4.0, kinds="fc", facts=IN_FLOAT32,
    face=Face("The logarithm to base 10.", "[1.0, 100.0] -> [0., 2.]",
              torch="log10_", numpy="log10"),
)  # fmt: skip


@Face(example="[1.0, 3.0] -> [2., 8.]", torch="exp2_", numpy="exp2", special="exp2")
@autocasting(Autocast.FLOAT32)
def exp2(x: Value) -> Value:
    """2 to the power of each element."""
    return catalogue.power(constant_of(2, x.dtype), x)


@_in_float32
def _cbrt_rule(b: Any, x: Any) -> Any:
    """An initial guess by logarithms, then a step of Newton's method, with one rounding."""
    size = b.abs(x)
    # The rounding error of a small cube would be subnormal, and so inexact.
    small = b.less(size, _number(b, 2.0**-60, x))
    a = b.select(small, size * 2.0**60, size)
    y = b.exp(b.log(a) * (1 / 3))
    square = y * y
    better = y - b.fma(square, y, -a) / (square * 3.0)
    better = b.select(small, better * 2.0**-20, better)
    proper = b.bit_and(b.less(_number(b, 0, x), a), b.less(a, _number(b, math.inf, x)))
    return b.select(proper, b.select(_negative(b, x), -better, better), x)


cbrt = elementwise(
    "cbrt", lower=_cbrt_rule, reference=np.cbrt, vjp=lambda g, y, x: (g / (y * y * 3),),
    low=0.25, high=4.0,
    face=Face("The cube root, negative for negative numbers.", "[8.0, -27.0] -> [ 2., -3.]",
              torch="cbrt", numpy="cbrt"),
)  # fmt: skip

# Of two numbers


@_in_float32
def _hypot_rule(b: Any, x: Any, y: Any) -> Any:
    """Scaled by the larger, so that squares neither overflow nor underflow; infinity beats NaN."""
    x, y = b.abs(x), b.abs(y)
    large, small = b.maximum(x, y), b.minimum(x, y)
    infinity, zero = _number(b, math.inf, x), _number(b, 0, x)
    ratio = small / b.select(b.equal(large, zero), _number(b, 1, x), large)
    found = large * b.sqrt(b.fma(ratio, ratio, _number(b, 1, x)))
    infinite = b.bit_or(b.equal(x, infinity), b.equal(y, infinity))
    return b.select(infinite, infinity, found)


def _hypot_vjp(g: Any, z: Any, x: Any, y: Any) -> tuple[Any, ...]:
    zero = constant_of(0, z.dtype)
    none = equal(z, zero)
    safe = select(none, constant_of(1, z.dtype), z)
    return tuple([select(none, zero, g * (v / safe)) for v in (x, y)])


hypot = binary(
    "hypot", lower=_hypot_rule, reference=np.hypot, vjp=_hypot_vjp,
    kinds="f", low=0.25,
    face=Face("`sqrt(x * x + y * y)`, without overflow, with broadcasting.",
              "[3.0, 5.0], [4.0, 12.0] -> [ 5.0000, 13.0000]", torch="hypot_", numpy="hypot"),
)  # fmt: skip


def _logaddexp_rule(b: Any, x: Any, y: Any, base: float = math.e) -> Any:
    distance = b.select(b.equal(x, y), _number(b, 0, x), b.abs(x - y))  # also for infinities
    if base == math.e:
        return b.maximum(x, y) + b.log1p(b.exp(-distance))
    ln = math.log(base)
    return b.maximum(x, y) + b.log1p(b.exp(distance * -ln)) / _number(b, ln, x)


def _logaddexp_vjp(g: Any, z: Any, x: Any, y: Any, base: float = math.e) -> tuple[Any, ...]:
    alike = logical_and(equal(x, y), isinf(x))  # their difference would be NaN
    distance = select(alike, constant_of(0, x.dtype), x - y)
    if base != math.e:
        distance = distance * math.log(base)
    return g * sigmoid(distance), g * sigmoid(-distance)


def _logaddexp_reference(x: Array, y: Array) -> Any:
    if x.dtype.kind != "c":
        return np.logaddexp(x, y)
    first = np.where(x.real >= y.real, x, y)  # then nothing overflows
    return first + np.log1p(np.exp(np.where(x.real >= y.real, y, x) - first))


def _logaddexp2_reference(x: Array, y: Array) -> Array:
    """In float64: float32's is 0 where x and y are almost -1."""
    return np.logaddexp2(x.astype(np.float64), y.astype(np.float64)).astype(x.dtype)


logaddexp = binary(
    "logaddexp", lower=_logaddexp_rule, reference=_logaddexp_reference, vjp=_logaddexp_vjp,
    kinds="fc", rtol=4e-6,
    face=Face("`log(exp(x) + exp(y))`, without overflow, with broadcasting.",
              "[0.0], [0.0] -> [0.6931]", torch="logaddexp", numpy="logaddexp"),
)  # fmt: skip
logaddexp2 = binary(
    "logaddexp2", lower=partial(_logaddexp_rule, base=2.0), reference=_logaddexp2_reference,
    vjp=partial(_logaddexp_vjp, base=2.0),
    kinds="f", rtol=4e-6,
    face=Face("`log2(2**x + 2**y)`, without overflow, with broadcasting.", "[0.0], [0.0] -> [1.]",
              torch="logaddexp2", numpy="logaddexp2"),
)  # fmt: skip


@Face(torch="fmax_", numpy="fmax")
def fmax(x: Value, y: Value) -> Value:
    """The larger one; if one is NaN, the other."""
    return _unless_nan(maximum(x, y), x, y)


@Face(torch="fmin_", numpy="fmin")
def fmin(x: Value, y: Value) -> Value:
    """The smaller one; if one is NaN, the other."""
    return _unless_nan(minimum(x, y), x, y)


def _unless_nan(z: Value, x: Value, y: Value) -> Value:
    return select(isnan(x), y, select(isnan(y), x, z)) if x.dtype.is_floating else z


@Face(torch="heaviside_", numpy="heaviside", out=Out.EXACT)
def heaviside(x: Value, y: Value) -> Value:
    """0 for negative `x`, 1 for positive, `y` where `x` is 0; NaN stays."""
    zero, one = constant_of(0, x.dtype), constant_of(1, x.dtype)
    step = select(less(x, zero), zero, select(greater(x, zero), one, x))
    return select(equal(x, zero), y, step)


@Face(example="[0.0, 2.0], [0.0, 3.0] -> [0.0000, 2.1972]", torch="xlogy_", special="xlogy")
def xlogy(x: Value, y: Value) -> Value:
    """`x * log(y)`, and 0 where `x` is 0, unless `y` is NaN.

    The derivative in `x` at 0 is `log(y)`, or 0 if that is infinite or NaN.
    """
    zero, one = constant_of(0, x.dtype), constant_of(1, x.dtype)
    without = logical_or(less_equal(y, zero), equal(y, constant_of(np.inf, y.dtype)))
    nothing = logical_and(equal(x, zero), without)
    return select(nothing, zero, x * log(select(nothing, one, y)))


def _entr_rule(b: Any, x: Any) -> Any:
    zero = _number(b, 0, x)
    least, inner = _number(b, -math.inf, x), -x * b.log(x)
    return b.select(b.less(x, zero), least, b.select(b.equal(x, zero), zero, inner))


def _entr_reference(x: Array) -> Any:
    inner = np.where(x == 0, 0, -x * np.log(np.where(x == 0, 1, x)))
    return np.where(x < 0, -np.inf, inner)


entr = elementwise(
    "entr", lower=_entr_rule, reference=_entr_reference, vjp=lambda g, y, x: (-g * (log(x) + 1.0),),
    low=0.25, high=4.0, facts=IN_FLOAT32,
    face=Face("`-x * log(x)`; 0 at 0, where its derivative is infinite, and minus infinity below.",
              torch="", special="entr", scipy="entr", wide=float32),
)  # fmt: skip


def lerp(start: Value, end: Value, weight: Any) -> Value:
    """`start + weight * (end - start)`, exact at weights 0 and 1."""
    part = weight if isinstance(weight, Value) else constant_of(weight, start.dtype)
    distance = end - start
    near = less(catalogue.abs(part), constant_of(0.5, part.dtype.real))
    return select(near, start + distance * part, end - distance * (1 - part))


# Of one number


@Face(example="[180.0, 90.0] -> [3.1416, 1.5708]", torch="deg2rad_", numpy="deg2rad radians")
def deg2rad(x: Value) -> Value:
    """Degrees as radians."""
    return x * (math.pi / 180)


@Face(example="[0.0, 1.0] -> [ 0.0000, 57.2958]", torch="rad2deg_", numpy="rad2deg degrees")
def rad2deg(x: Value) -> Value:
    """Radians as degrees."""
    return x * (180 / math.pi)


def log_odds(x: Value) -> Value:
    """`log(x / (1 - x))` in single steps, for probabilities that are clipped already."""
    return log(x / (1.0 - x))


@Face(torch="logit_", special="logit")
def logit(x: Value, epsilon: float | None = None) -> Value:
    """`log(x / (1 - x))`, the inverse of `sigmoid`; `epsilon` clips `x` to [epsilon, 1 - epsilon].

    Near 1/2, where the logarithms would cancel, it is computed as `2 * atanh(2x - 1)`. Outside of
    [0, 1] it is NaN, and so is its derivative.
    """
    if epsilon is not None:
        x = catalogue.clip(x, epsilon, 1 - epsilon)
    half, one = constant_of(0.5, x.dtype), constant_of(1, x.dtype)
    distance = x * 2 - 1
    size = catalogue.abs(distance)
    middle, outside = less(size, half), logical_or(less(x, 0), greater(x, one))
    inner = catalogue.atanh(select(middle, distance, constant_of(0, x.dtype))) * 2
    outer = select(middle, half, x)
    found = select(middle, inner, log(outer) - log1p(-outer))
    # The logarithms' derivatives are finite there, but not a root's.
    return select(outside, catalogue.sqrt(select(outside, -size, one)), found)


_SINC_SERIES: Final = 0.05
"""Below this angle, the series up to the 6th power and its derivatives are accurate to 1e-16."""


@Face(example="[0.0, 0.5] -> [1.0000, 0.6366]", torch="sinc_", numpy="sinc", special="sinc")
def sinc(x: Value) -> Value:
    """`sin(pi x) / (pi x)`; 1 at 0 with derivatives of every order; 0 at other integers."""
    angle = x * math.pi
    small = less(catalogue.abs(angle), constant_of(_SINC_SERIES, x.dtype))
    one, zero = constant_of(1, x.dtype), constant_of(0, x.dtype)
    near = select(small, angle, zero)
    s = near * near
    series = one - s * (1 / 6) * (one - s * (1 / 20) * (one - s * (1 / 42)))
    whole = catalogue.round(x)
    odd = catalogue.remainder(whole, 2)
    sine = sin((x - whole) * math.pi) * (1 - odd * 2)
    return select(small, series, sine / select(small, one, angle))


@Face(torch="nan_to_num_")
def nan_to_num(
    x: Value, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Value:
    """`x` with NaN and infinities replaced; by default infinities by the dtype's limits.

    For complex numbers, both parts are replaced.
    """
    if x.dtype.is_complex:
        parts = [nan_to_num(part(x), nan, posinf, neginf) for part in (real, imag)]
        return catalogue.complex(*parts)
    if not x.dtype.is_floating:
        return x
    largest = float(finfo(x.dtype.numpy).max)
    high = constant_of(largest if posinf is None else posinf, x.dtype)
    low = constant_of(-largest if neginf is None else neginf, x.dtype)
    finite = select(isnan(x), constant_of(nan, x.dtype), x)
    positive = greater(x, constant_of(0, x.dtype))
    return select(isinf(x), select(positive, high, low), finite)


def isclose(
    x: Value, y: Value, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Value:
    """Whether `|x - y| <= atol + rtol * |y|`; equal infinities are close."""
    same = equal(x, y)
    if not x.dtype.is_inexact:
        x, y = (catalogue.cast(v, dtype=types.float64) for v in (x, y))
    bound = catalogue.abs(y) * rtol + atol
    near = logical_and(catalogue.less_equal(catalogue.abs(x - y), bound), catalogue.isfinite(y))
    close = catalogue.logical_or(same, near)
    both = logical_and(isnan(x), isnan(y))
    return catalogue.logical_or(close, both) if equal_nan else close

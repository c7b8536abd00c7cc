"""Exponentials, logarithms and the hyperbolic functions built on them."""

from __future__ import annotations

import math

from weft.codegen.vecmath import coefficients as table
from weft.codegen.vecmath.vector import (
    Vec,
    absolute,
    at_least,
    at_most,
    fma,
    intrinsic,
    polynomial,
    power_of_two,
    scale,
    select,
    vector_math,
    whole,
    with_sign,
)

__all__ = ["cosh", "exp", "expm1", "log", "log1p", "sigmoid", "sinh", "tanh"]

# Beyond these exp is 0 or infinity, even if a result is halved (sinh, cosh).
EXP_RANGE = {"float": (-104.0, 90.0), "double": (-746.0, 711.0)}
# Beyond these tanh is 1, and expm1 is -1 or infinity, after rounding.
TANH_LIMIT = {"float": 10.0, "double": 20.0}
EXPM1_RANGE = {"float": (-18.0, 89.0), "double": (-40.0, 710.0)}


def nearest(x: Vec, factor: float) -> tuple[Vec, Vec]:
    """The integer nearest to x * factor, as an integer and as a floating value."""
    z = fma(x, factor, x.format.magic)
    return z.bits() - x.format.magic_bits, z - x.format.magic


def reduce_exp(x: Vec) -> tuple[Vec, Vec]:
    """n and r with x = n ln(2) + r, |r| <= ln(2)/2 (Cody & Waite, ln(2) in two pieces)."""
    n, k = nearest(x, 1 / math.log(2))
    high, low = x.pick(table.LN2)
    return n, fma(k, -low, fma(k, -high, x))


def expm1_fraction(r: Vec) -> Vec:
    """exp(r) - 1 for |r| <= ln(2)/2."""
    return fma(r * r, polynomial(r, r.pick(table.EXP)), r)


def exp_fraction(r: Vec) -> Vec:
    """exp(r) for |r| <= ln(2)/2."""
    return expm1_fraction(r) + 1.0


def exp_scaled(x: Vec, shift: int = 0) -> Vec:
    """exp(x) * 2**shift."""
    low, high = EXP_RANGE[x.scalar]
    n, r = reduce_exp(at_least(at_most(x, high), low))
    return scale(exp_fraction(r), n + shift if shift else n)


def exp_moderate(x: Vec) -> Vec:
    """exp(x) where the result is known to be normal."""
    n, r = reduce_exp(x)
    return exp_fraction(r) * power_of_two(n)


@vector_math
def exp(x: Vec) -> Vec:
    """e**x: Cody & Waite's reduction by ln(2), then a polynomial of degree 6 (float64: 12)."""
    return exp_scaled(x)


@vector_math
def expm1(x: Vec) -> Vec:
    """e**x - 1 as 2**n (e**r - 1) + (2**n - 1), with exp's reduction and polynomial.

    Everything is halved, so that 2**n does not overflow before the result does.
    """
    low, high = EXPM1_RANGE[x.scalar]
    n, r = reduce_exp(at_least(at_most(x, high), low))
    p = expm1_fraction(r)
    t = power_of_two(n - 1)
    y = fma(t, p, t - 0.5) * 2.0
    return with_sign(select(n.equals(0), p, y), x)


@vector_math
def sigmoid(x: Vec) -> Vec:
    """1 / (1 + e**-x), from e**-|x| so that nothing overflows and small results are precise.

    Where x < -1, q = e / (1 + e) has three roundings too many; e - e q has not, as e q is small.
    """
    low, _ = EXP_RANGE[x.scalar]
    n, r = reduce_exp(at_least(-absolute(x), low))
    fraction = expm1_fraction(r)
    p = fraction + 1.0
    e = scale(p, n)
    q = select(x < 0.0, e, 1.0) / (e + 1.0)
    lost = fraction - (p - 1.0)  # of p's rounding
    return select(x < -1.0, fma(e, lost - q, e), q)


@vector_math
def tanh(x: Vec) -> Vec:
    """Hyperbolic tangent: odd polynomial below 0.625 (Cephes' bound), 1 - 2 / (e**2x + 1) above."""
    a = absolute(x)
    z = x * x
    small = fma(a * z, polynomial(z, x.pick(table.TANH)), a)
    e = exp_moderate(at_most(a, TANH_LIMIT[x.scalar]) * 2.0)
    return with_sign(select(a < 0.625, small, 1.0 - 2.0 / (e + 1.0)), x)


@vector_math
def sinh(x: Vec) -> Vec:
    """Hyperbolic sine: odd polynomial up to 1, (e**x - e**-x) / 2 from h = e**|x| / 2 above."""
    a = absolute(x)
    z = x * x
    small = fma(x * z, polynomial(z, x.pick(table.SINH)), x)
    h = exp_scaled(a, shift=-1)
    return select(a < 1.0, small, with_sign(h - 0.25 / h, x))


@vector_math
def cosh(x: Vec) -> Vec:
    """Hyperbolic cosine: h + 1 / 4h with h = e**|x| / 2, which overflows where the result does."""
    h = exp_scaled(absolute(x), shift=-1)
    return h + 0.25 / h


def split_exponent(x: Vec) -> tuple[Vec, Vec]:
    """e and m with x = m * 2**e and sqrt(1/2) <= m < sqrt(2), for normal positive x."""
    half_root = {"float": 0x3F3504F3, "double": 0x3FE6A09E667F3BCD}[x.scalar]
    i = x.bits() - half_root
    m = (i & ((1 << x.format.mantissa) - 1)) + half_root
    return i >> x.format.mantissa, m.as_float()


def log_fraction(f: Vec, n: Vec) -> Vec:
    """log(1 + f) + n ln(2) for 1 + f in [sqrt(1/2), sqrt(2)].

    float32 uses a polynomial without a division. float64 would need 20 terms, so it uses the
    series in s = f / (2 + f), arranged as in fdlibm so that f comes in unrounded.
    """
    high, low = f.pick(table.LN2)
    if f.scalar == "float":
        z = f * f
        y = fma(n, low, polynomial(f, f.pick(table.LOG)) * f * z)
        return fma(n, high, f + fma(z, -0.5, y))
    s = f / (f + 2.0)
    z = s * s
    half = f * f * 0.5
    tail = fma(s, fma(z, polynomial(z, f.pick(table.LOG_QUOTIENT)), half), n * low)
    return fma(n, high, f - (half - tail))


@vector_math
def log(x: Vec) -> Vec:
    """Natural logarithm: exponent and mantissa by integer arithmetic, then `log_fraction`."""
    up = x.format.mantissa + 1
    tiny = x < x.format.smallest
    e, m = split_exponent(select(tiny, x * 2.0**up, x))
    y = log_fraction(m - 1.0, whole(e) - select(tiny, x.like(up), 0.0))
    y = select(x < math.inf, y, x)
    return select(x > 0.0, y, select(x.equals(0.0), -math.inf, select(x < 0.0, math.nan, x)))


@vector_math
def log1p(x: Vec) -> Vec:
    """log(1 + x): as `log` of the rounded sum, with the rounding error added to the fraction."""
    u = x + 1.0
    back = u - x
    lost = (x - (u - back)) + (1.0 - back)  # Knuth's two-sum: u + lost = 1 + x exactly
    e, m = split_exponent(u)
    down = intrinsic("smax", e.like(0) - e, e.like(-x.format.bias))  # 0 where x is huge
    f = fma(lost, power_of_two(down), m - 1.0)
    y = select(x < math.inf, log_fraction(f, whole(e)), x)
    y = select(x > -1.0, with_sign(y, x), select(x.equals(-1.0), x.like(-math.inf), math.nan))
    return select(x.differs(x), x, y)

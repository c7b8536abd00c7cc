"""Powers and roots."""

from __future__ import annotations

import math
from fractions import Fraction

from weft.codegen.vecmath import coefficients as table
from weft.codegen.vecmath.exponential import (
    EXP_RANGE,
    exp_fraction,
    nearest,
    split_exponent,
)
from weft.codegen.vecmath.vector import (
    Vec,
    absolute,
    at_least,
    at_most,
    fma,
    intrinsic,
    polynomial,
    scale,
    select,
    vector_math,
    whole,
)

__all__ = ["power", "rsqrt"]

TWO_THIRDS = 2 / 3
TWO_THIRDS_LOST = float(Fraction(2, 3) - Fraction(TWO_THIRDS))

Pair = tuple[Vec, Vec]  # an unevaluated sum of a number and its rounding error


@vector_math
def rsqrt(x: Vec) -> Vec:
    """1 / sqrt(x) by the two correctly rounded instructions."""
    return 1.0 / intrinsic("sqrt", x)


def power_single(x: Vec, y: Vec) -> Vec:
    """x**y for finite x > 0 in float32, by float64: error 2**-30, where 2**-24 is needed."""
    wide, exponent = x.convert("fpext", "double"), y.convert("fpext", "double")
    e, m = split_exponent(wide)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    log = fma(whole(e), math.log(2), s * fma(z, polynomial(z, table.LOG_QUOTIENT["float"]), 2.0))
    t = at_least(at_most(exponent * log, 100.0), -120.0)
    n, k = nearest(t, 1 / math.log(2))
    r = fma(k, -math.log(2), t)
    p = fma(r * r, polynomial(r, table.EXP["float"]), r) + 1.0
    return (p.bits() + (n << 52)).as_float().convert("fptrunc", "float")


def quick_sum(a: Vec, b: Vec) -> Pair:
    """a + b and its rounding error, for |a| >= |b|."""
    total = a + b
    return total, b - (total - a)


def halves(x: Vec) -> Pair:
    """x as a sum of numbers of 26 bits, whose products are exact."""
    high = (x.bits() & ~((1 << 27) - 1)).as_float()
    return high, x - high


def product(a: Vec, b: Vec) -> Pair:
    """a * b and its rounding error (Dekker); without a fused operation, which x86-64-v2 lacks."""
    p = a * b
    (ah, al), (bh, bl) = halves(a), halves(b)
    return p, fma(al, bl, fma(al, bh, fma(ah, bl, fma(ah, bh, -p))))


def multiply(a: Pair, b: Pair) -> Pair:
    """The product of two pairs."""
    p, lost = product(a[0], b[0])
    return quick_sum(p, lost + fma(a[0], b[1], a[1] * b[0]))


def add(a: Pair, b: Pair) -> Pair:
    """The sum of two pairs, |a| >= |b|."""
    total, lost = quick_sum(a[0], b[0])
    return quick_sum(total, lost + (a[1] + b[1]))


def log_pair(x: Vec) -> Pair:
    """log(x) for x > 0 to about 2**-65: the first two terms of the series in s are pairs."""
    tiny = x < x.format.smallest
    e, m = split_exponent(select(tiny, x * 2.0**54, x))
    k = whole(e) - select(tiny, x.like(54.0), 0.0)
    f, d = m - 1.0, m + 1.0
    d_lost = m - (d - 1.0)
    s = f / d
    p, p_lost = product(s, d)
    s_pair = s, (((f - p) - p_lost) - s * d_lost) / d
    z = multiply(s_pair, s_pair)
    cube = multiply(z, s_pair)
    series = polynomial(z[0], table.LOG_SERIES["double"])
    third = multiply(cube, (x.like(TWO_THIRDS), x.like(TWO_THIRDS_LOST)))
    tail = cube[0] * z[0] * series
    log_m = add((s_pair[0] * 2.0, s_pair[1] * 2.0), quick_sum(third[0], third[1] + tail))
    high, low = table.LN2["double"]
    log_2 = k * high, k * low
    return add(quick_sum(*log_2), log_m)


def power_double(x: Vec, y: Vec) -> Vec:
    """x**y for finite x > 0 in float64: exp(y log(x)), the argument a pair."""
    log, log_lost = log_pair(x)
    t, lost = product(y, log)
    least, most = EXP_RANGE["double"]
    lost = select((t > least) & (t < most), fma(y, log_lost, lost), 0.0)
    t = at_least(at_most(t, most), least)
    n, k = nearest(t, 1 / math.log(2))
    high, low = table.LN2["double"]
    return scale(exp_fraction(fma(k, -low, fma(k, -high, t)) + lost), n)


@vector_math
def power(x: Vec, y: Vec) -> Vec:
    """x**y with C's results for zeros, infinities and negative bases.

    float32 is computed in float64; float64 uses the logarithm to 2**-65.
    """
    a = absolute(x)
    finite = power_single(a, y) if x.scalar == "float" else power_double(a, y)
    vanishes = a.equals(0.0) ^ (y < 0.0)  # a is 0 or infinite here
    value = select((a > 0.0) & (a < math.inf), finite, select(vanishes, x.like(0.0), math.inf))
    is_whole, is_odd = intrinsic("trunc", y).equals(y), ~intrinsic("trunc", y * 0.5).equals(y * 0.5)
    negative = x.bits() < 0
    value = select(negative & is_whole & is_odd, -value, value)
    value = select((x < 0.0) & (x > -math.inf) & ~is_whole, math.nan, value)
    value = select(a.equals(1.0) & absolute(y).equals(math.inf), 1.0, value)
    value = select(x.differs(x) | y.differs(y), x + y, value)
    return select(x.equals(1.0) | y.equals(0.0), 1.0, value)

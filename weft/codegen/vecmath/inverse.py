"""Inverse trigonometric functions."""

from __future__ import annotations

import math

from weft.codegen.vecmath import coefficients as table
from weft.codegen.vecmath.vector import (
    Vec,
    absolute,
    fma,
    intrinsic,
    polynomial,
    select,
    vector_math,
    with_sign,
)

__all__ = ["acos", "asin", "atan", "atan2"]

TAN_EIGHTH = math.sqrt(2) - 1  # tan(pi/8); its inverse is tan(3 pi/8)


def arc_sine(a: Vec) -> tuple[Vec, Vec, Vec]:
    """Whether a > 1/2, t and c for 0 <= a <= 1: asin(a) = t + c, or pi/2 - 2 (t + c).

    Where a is large, t = sqrt((1 - a) / 2), from asin(a) = pi/2 - 2 asin(t).
    """
    large = a > 0.5
    z = select(large, (1.0 - a) * 0.5, a * a)
    t = select(large, intrinsic("sqrt", z), a)
    return large, t, t * z * polynomial(z, a.pick(table.ASIN))


@vector_math
def asin(x: Vec) -> Vec:
    """Arc sine: odd polynomial up to 1/2, complement above; NaN outside [-1, 1]."""
    large, t, c = arc_sine(absolute(x))
    high, low = x.pick(table.HALF_PI_FULL)
    # pi/4 - 2t is exact or small, so that the doubled roundings of t + c stay out
    complement = ((high / 2 - t * 2.0) - (c * 2.0 - low)) + high / 2
    return with_sign(select(large, complement, t + c), x)


@vector_math
def acos(x: Vec) -> Vec:
    """Arc cosine from `asin`'s polynomial: 2 (t + c), pi - 2 (t + c), or pi/2 -+ (t + c)."""
    large, t, c = arc_sine(absolute(x))
    high, low = x.pick(table.HALF_PI_FULL)
    negative = x < 0.0
    double = (t + c) * 2.0
    far = select(negative, (high - t) * 2.0 - (c - low) * 2.0, double)
    near = high - (with_sign(t, x) + (with_sign(c, x) - low))
    return select(large, far, near)


def arc_tangent(y: Vec, x: Vec) -> Vec:
    """atan(y / x) for y, x >= 0, with one division.

    Above tan(3 pi/8) it is pi/2 - atan(x / y), above tan(pi/8) pi/4 + atan((y - x) / (y + x)), so
    that the polynomial sees at most tan(pi/8) (Cephes' reduction).
    """
    high, low = x.pick(table.HALF_PI_FULL)
    steep, middle = y > x * (1 / TAN_EIGHTH), y > x * TAN_EIGHTH
    top = select(steep, -x, select(middle, y - x, y))
    bottom = select(steep, y, select(middle, y + x, x))
    t = top / bottom
    base = select(steep, high, select(middle, x.like(high / 2), 0.0))
    rest = select(steep, low, select(middle, x.like(low / 2), 0.0))
    z = t * t
    return base + (t + fma(t * z, polynomial(z, x.pick(table.ATAN)), rest))


@vector_math
def atan(x: Vec) -> Vec:
    """Arc tangent: see `arc_tangent`."""
    return with_sign(arc_tangent(absolute(x), x.like(1.0)), x)


@vector_math
def atan2(y: Vec, x: Vec) -> Vec:
    """The angle of the point (x, y), with C's results for zeros and infinities."""
    a, b = absolute(y), absolute(x)
    big = 2.0 ** (x.format.bias - 2)
    shrink = select((a > big) | (b > big), a.like(0.25), 1.0)  # so that y + x does not overflow
    both = a.equals(math.inf) & b.equals(math.inf)
    a, b = select(both, 1.0, a * shrink), select(both, 1.0, b * shrink)
    none = a.equals(0.0) & b.equals(0.0)
    angle = arc_tangent(a, select(none, 1.0, b))
    high, low = (2.0 * v for v in x.pick(table.HALF_PI_FULL))
    angle = select(x.bits() < 0, high - (angle - low), angle)
    angle = select(x.differs(x), x, angle)
    return with_sign(angle, y)

"""Trigonometric functions."""

from __future__ import annotations

import math

from weft.codegen.builder import Reg, float_text
from weft.codegen.vecmath import coefficients as table
from weft.codegen.vecmath.vector import (
    Vec,
    absolute,
    fma,
    intrinsic,
    polynomial,
    rarely,
    select,
    vector_math,
)

# Up to here the multiple of pi/2 has 21 bits, so that its products with the pieces are exact.
DIRECT = 1.0e6
# Digits of 2/pi: 128 (1024) bits of exponent, 30 (62) of cancellation, and those of the result.
DIGITS = {"float": 9, "double": len(table.TWO_OVER_PI)}


def reduce_direct(x: Vec) -> tuple[Vec, Vec]:
    """n (its low bits) and r with x = n pi/2 + r, by Cody & Waite's method.

    float32 does it in float64, so that r is correctly rounded: a few instructions more than short
    pieces in float32 would take, and half the error.
    """
    double = as_double(x)
    magic = double.format.magic
    z = double * (2 / math.pi) + magic
    n, r = z - magic, double
    pieces = table.HALF_PI["double"]
    if x.scalar == "float":
        pieces = (pieces[0], pieces[1] + pieces[2])
    for piece in pieces:
        r = fma(n, -piece, r)
    return quadrant_and_rest(x, z, r)


def as_double(x: Vec) -> Vec:
    """x in float64."""
    return x if x.scalar == "double" else x.convert("fpext", "double")


def quadrant_and_rest(x: Vec, z: Vec, r: Vec) -> tuple[Vec, Vec]:
    """The integer in the low bits of z, and r, in the size of x."""
    if x.scalar == "double":
        return z.bits(), r
    return z.bits().convert("trunc", "i32"), r.convert("fptrunc", "float")


def reduce_huge(x: Vec) -> tuple[Vec, Vec]:
    """The same for any x, after Payne & Hanek, without a table by exponent.

    x * 2/pi is summed digit by digit of 2/pi (24 bits each, so that products with half of x are
    exact), dropping multiples of 4 from each product and integers from the sum. Digits too high to
    matter drop out as exact zeros. The sum is kept in two numbers by Knuth's two-sum.
    """
    f = x.f
    scaled = as_double(x) * 2.0**-128  # the digits carry 2**128
    parts = [scaled]
    if x.scalar == "double":
        high = (scaled.bits() & ~((1 << 27) - 1)).as_float()
        parts = [high, scaled - high]
    zero = scaled.like(0.0).reg
    with f.loop(0, DIGITS[x.scalar], carried=[zero, zero, zero]) as loop:
        s, e, n = (Vec(f, reg) for reg in loop.carried)
        digit = f.load("double", f.offset(digits_of_two_over_pi(x), loop.index, "double"), 8)
        for part in parts:
            p = part * Vec(f, f.splat(digit, x.lanes))
            p = p - nearest_integer(p * 0.25) * 4.0
            total = s + p
            back = total - s
            e = e + ((s - (total - back)) + (p - back))
            turns = nearest_integer(total)
            s, n = total - turns, n + turns
        loop.next = [s.reg, e.reg, n.reg]
    s, e, n = (Vec(f, reg) for reg in loop.results)
    high, low = table.HALF_PI_FULL["double"]
    r = fma(s, high, fma(s, low, e * high))
    return quadrant_and_rest(x, n + n.format.magic, r)


def nearest_integer(x: Vec) -> Vec:
    """x rounded, halves to even."""
    return intrinsic("roundeven", x)


def digits_of_two_over_pi(x: Vec) -> Reg:
    """Address of the digits of 2**128 * 2/pi, a constant of the module."""
    values = ", ".join(f"double {float_text(v, 'double')}" for v in table.TWO_OVER_PI)
    type_ = f"[{len(table.TWO_OVER_PI)} x double]"
    x.f.declarations.add(f"@two_over_pi = private unnamed_addr constant {type_} [{values}]")
    return Reg("ptr", "@two_over_pi")


def reduce_angle(x: Vec) -> tuple[Vec, Vec]:
    """The quadrant n (its low bits) and r, |r| <= pi/4; lanes that are huge take the slow way."""
    n, r = rarely(absolute(x) > DIRECT, reduce_direct(x), lambda: reduce_huge(x))
    return n, r


def sine_in_quadrant(n: Vec, r: Vec) -> Vec:
    """sin(n pi/2 + r): sine or cosine of r by n's low bit, the sign by the next."""
    z = r * r
    sine = fma(r * z, polynomial(z, r.pick(table.SIN)), r)
    cosine = fma(z * z, polynomial(z, r.pick(table.COS)), fma(z, -0.5, 1.0))
    y = select((n & 1).equals(0), sine, cosine)
    return (y.bits() ^ ((n >> 1) << (r.format.width - 1))).as_float()


@vector_math
def sin(x: Vec) -> Vec:
    """Sine: polynomials of degree 7 and 8 (float64: 15 and 16) on [-pi/4, pi/4]."""
    n, r = reduce_angle(x)
    return sine_in_quadrant(n, r)


@vector_math
def cos(x: Vec) -> Vec:
    """Cosine: the sine one quadrant on."""
    n, r = reduce_angle(x)
    return sine_in_quadrant(n + 1, r)


@vector_math
def tan(x: Vec) -> Vec:
    """Tangent: t = tan(r) or -1 / t by the quadrant, an odd polynomial of degree 15 (31)."""
    n, r = reduce_angle(x)
    z = r * r
    t = fma(r * z, polynomial(z, r.pick(table.TAN)), r)
    return select((n & 1).equals(0), t, -1.0 / t)

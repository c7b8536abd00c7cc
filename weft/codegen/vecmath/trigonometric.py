"""Trigonometric functions."""

from __future__ import annotations

import math
from collections.abc import Sequence

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
    with_sign,
)

__all__ = ["cos", "sin", "tan"]

# Up to here the multiple of pi/2 has 21 bits, so that its products with the pieces are exact.
DIRECT = 1.0e6


def reduce_direct(x: Vec, pieces: Sequence[float]) -> tuple[Vec, Vec]:
    """z (n in its low bits) and r with x = n pi/2 + r, by Cody & Waite's method in float64."""
    z = x * (2 / math.pi) + x.format.magic
    n, r = z - x.format.magic, x
    for piece in pieces:
        r = fma(n, -piece, r)
    return z, r


def reduce_huge(x: Vec, digits: int, split: bool) -> tuple[Vec, Vec]:
    """The same for any x, after Payne & Hanek, without a table by exponent.

    x * 2/pi is summed digit by digit of 2/pi (24 bits each, so that products with a float32, or
    with half of x, are exact), dropping multiples of 4 from each product and integers from the
    sum. Digits too high to matter drop out as exact zeros. The sum is kept in two numbers by
    Knuth's two-sum.
    """
    f = x.f
    parts = [x * 2.0**-128]  # the digits carry 2**128
    if split:
        high = (parts[0].bits() & ~((1 << 27) - 1)).as_float()
        parts = [high, parts[0] - high]
    zero = x.like(0.0).reg
    with f.loop(0, digits, carried=[zero, zero, zero]) as loop:
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
    return n + x.format.magic, fma(s, high, fma(s, low, e * high))


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
    """The quadrant n (its low bits) and r, both in 64 bits; |r| <= pi/4.

    Huge lanes take the slow path. float32 is reduced in float64 too: a few instructions more than
    short pieces in float32 would take, and r comes out correctly rounded.
    """
    pieces, digits, split = table.HALF_PI["double"], len(table.TWO_OVER_PI), True
    if x.scalar == "float":
        # 128 bits of exponent, 30 of cancellation and 24 of the result: 8 digits, one to spare
        pieces, digits, split = (pieces[0], pieces[1] + pieces[2]), 9, False
        x = x.convert("fpext", "double")
    direct = reduce_direct(x, pieces)
    z, r = rarely(absolute(x) > DIRECT, direct, lambda: reduce_huge(x, digits, split))
    return z.bits(), r


def sine_in_quadrant(x: Vec, shift: int) -> Vec:
    """sin(x + shift pi/2): sine or cosine of r by n's low bit, the sign by the next."""
    n, r = reduce_angle(x)
    if x.scalar == "float":
        n, r = n.convert("trunc", "i32"), r.convert("fptrunc", "float")
    n = n + shift if shift else n
    z = r * r
    sine = with_sign(fma(r * z, polynomial(z, r.pick(table.SIN)), r), r)  # -0 stays
    cosine = fma(z * z, polynomial(z, r.pick(table.COS)), fma(z, -0.5, 1.0))
    y = select((n & 1).equals(0), sine, cosine)
    return (y.bits() ^ ((n >> 1) << (r.format.width - 1))).as_float()


@vector_math
def sin(x: Vec) -> Vec:
    """Sine: polynomials of degree 7 and 8 (float64: 15 and 16) on [-pi/4, pi/4]."""
    return sine_in_quadrant(x, 0)


@vector_math
def cos(x: Vec) -> Vec:
    """Cosine: the sine one quadrant later."""
    return sine_in_quadrant(x, 1)


@vector_math
def tan(x: Vec) -> Vec:
    """Tangent: t = tan(r) or -1 / t by the quadrant, an odd polynomial of degree 15 (31).

    All of it in float64, as three roundings in float32 would be too many.
    """
    n, r = reduce_angle(x)
    z = r * r
    t = fma(r * z, polynomial(z, x.pick(table.TAN)), r)
    y = select((n & 1).equals(0), t, -1.0 / t)
    return y.convert("fptrunc", "float") if x.scalar == "float" else y

"""Division with an integer quotient: remainders are exact, however large the quotient."""

from __future__ import annotations

from weft.codegen.vecmath.vector import (
    Vec,
    absolute,
    intrinsic,
    rarely,
    select,
    vector_math,
    with_sign,
)

__all__ = ["floor_divide", "fmod", "remainder"]

# The quotient of floats has up to 277 bits, of doubles 2098; a step takes 25 of them.
STEPS = {"float": 12, "double": 86}


def reduce_step(r: Vec, y: Vec) -> Vec:
    """r minus the multiple of y > 0 given by the first 26 bits of r / y, truncated.

    Their products with the halves of y (26 and 27 bits) are exact, and so are the differences.
    """
    quotient = r / y
    far = absolute(quotient) >= 2.0**900  # it may be infinite: divide at another scale
    down, up = select(far, r.like(2.0**-600), 1.0), select(far, r.like(2.0**600), 1.0)
    r, y = r * down, y * up
    q = ((r / y).bits() & ~((1 << 27) - 1)).as_float()
    q = select(absolute(quotient) < 2.0**52, intrinsic("trunc", q), q)
    high = (y.bits() & ~((1 << 27) - 1)).as_float()
    return ((r - q * high) - q * (y - high)) * up


def remainder_of(x: Vec, y: Vec, most: int) -> Vec:
    """x - y * trunc(x / y) in so many steps, y > 0; NaN where x is infinite or y is 0."""
    f = x.f

    def steps() -> tuple[Vec, ...]:
        with f.loop(0, most, carried=[first.reg]) as loop:
            loop.next = [reduce_step(Vec(f, loop.carried[0]), y).reg]
        return (Vec(f, loop.results[0]),)

    first = reduce_step(x, y)
    (r,) = rarely(absolute(first) >= y, (first,), steps)
    r = select((r.bits() ^ x.bits()) < 0, select(r.equals(0.0), r, r + with_sign(y, x)), r)
    return with_sign(r, x)


@vector_math
def fmod(x: Vec, y: Vec) -> Vec:
    """x - y * trunc(x / y), exactly, with the sign of x (C's fmod)."""
    return modulo(x, y)


def modulo(x: Vec, y: Vec) -> Vec:
    """C's fmod, in float64 for float32 too."""
    type_, most = x.scalar, STEPS[x.scalar]
    if type_ == "float":
        x, y = x.convert("fpext", "double"), y.convert("fpext", "double")
    a = absolute(y)
    r = select(absolute(x) < a, x, remainder_of(x, a, most))
    return r.convert("fptrunc", "float") if type_ == "float" else r


def signs_differ(a: Vec, b: Vec) -> Vec:
    """Lanes where exactly one number is negative."""
    return (a < 0.0) ^ (b < 0.0)


@vector_math
def remainder(x: Vec, y: Vec) -> Vec:
    """The remainder with the sign of y, as NumPy's: fmod, plus y where the signs differ."""
    r = modulo(x, y)
    moved = select(signs_differ(r, y), r + y, r)
    return select(r.equals(0.0), with_sign(r, y), moved)


@vector_math
def floor_divide(x: Vec, y: Vec) -> Vec:
    """floor(x / y) from the exact remainder, as NumPy's; x / y where y is 0."""
    r = modulo(x, y)
    quotient = (x - r) / y
    quotient = select(signs_differ(r, y) & r.differs(0.0), quotient - 1.0, quotient)
    down = intrinsic("floor", quotient)
    near = select(quotient - down > 0.5, down + 1.0, down)
    near = select(quotient.equals(0.0), with_sign(x.like(0.0), x / y), near)
    return select(y.equals(0.0), x / y, near)

"""Prints `weft/codegen/vecmath/coefficients.py`: minimax polynomials for vector math.

Run `python tools/minimax.py > weft/codegen/vecmath/coefficients.py` (needs mpmath; ten seconds),
then `ruff format` on it.

Each fit finds a polynomial p of given length for which `weight(x) * |p(x) - f(x)|` is small over an
interval: least squares at Chebyshev points, within a bit of the minimax error. Coefficients are
rounded to the target's type one by one, lowest first, and the rest are fitted again each time, so
that they compensate for the rounding of the first ones, which matter most. Comments in the output
give the remaining error as a power of two.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from mpmath import mp, mpf

mp.dps = 400
Real = Callable[[mpf], mpf]


@dataclass(frozen=True)
class Fit:
    """A function to fit on [low, high], the weight of its error, and coefficients per type."""

    name: str
    function: Real
    weight: Real
    low: mpf
    high: mpf
    lengths: dict[str, int]
    comment: str


def least_squares(f: list[mpf], w: list[mpf], xs: list[mpf], powers: range) -> list[mpf]:
    """Coefficients of the powers that fit the samples f at xs best, in weighted least squares."""
    columns = [[wi * x**p for wi, x in zip(w, xs, strict=True)] for p in powers]
    goal = [wi * fi for wi, fi in zip(w, f, strict=True)]
    normal = [[mp.fdot(a, b) for b in columns] for a in columns]
    return list(mp.lu_solve(mp.matrix(normal), mp.matrix([mp.fdot(a, goal) for a in columns])))


def rounded(value: mpf, type_: str) -> float:
    """The value in the target's type, as a Python float."""
    return struct.unpack("f", struct.pack("f", value))[0] if type_ == "float" else float(value)


def solve(fit: Fit, type_: str) -> tuple[list[float], float]:
    """Rounded coefficients, lowest power first, and log2 of the largest weighted error."""
    length = fit.lengths[type_]
    size = 10 * length
    middle, half = (fit.high + fit.low) / 2, (fit.high - fit.low) / 2
    xs = [middle - half * mp.cos(mp.pi * (i + mpf(1) / 2) / size) for i in range(size)]
    f, w = [fit.function(x) for x in xs], [fit.weight(x) for x in xs]
    left, done = list(f), []
    for k in range(length):
        c = rounded(least_squares(left, w, xs, range(k, length))[0], type_)
        done.append(c)
        left = [v - c * x**k for v, x in zip(left, xs, strict=True)]
    return done, float(mp.log(max(abs(e * wi) for e, wi in zip(left, w, strict=True)), 2))


def odd(f: Real) -> Real:
    """P where f(x) = x + x**3 * P(x*x)."""
    return lambda z: (f(mp.sqrt(z)) - mp.sqrt(z)) / mp.sqrt(z) ** 3


def odd_weight(f: Real) -> Real:
    """The weight that makes errors of P relative to f."""
    return lambda z: abs(mp.sqrt(z) ** 3 / f(mp.sqrt(z)))


def odd_fit(name: str, f: Real, high: mpf, single: int, double: int, interval: str) -> Fit:
    """A fit of f(x) = x + x**3 * P(x*x) on [-high, high]."""
    text = f"{name}(x) = x + x**3 * P(x*x), |x| <= {interval}"
    lengths = {"float": single, "double": double}
    return Fit(name.upper(), odd(f), odd_weight(f), mpf(0), high**2, lengths, text)


HALF_LN2 = mp.log(2) / 2 * mpf("1.0001")
ROOT = mp.sqrt(2)
EIGHTH_TURN = mp.pi / 4 * mpf("1.0001")
TAN_EIGHTH = mp.tan(mp.pi / 8)
S_LIMIT = ((ROOT - 1) / (ROOT + 1)) ** 2


def log_of_s(z: mpf) -> mpf:
    """P where log(1 + f) = 2s + s**3 * P(s*s), s = f / (2 + f)."""
    s = mp.sqrt(z)
    return (mp.log((1 + s) / (1 - s)) - 2 * s) / s**3


FITS = [
    Fit("EXP", lambda r: (mp.expm1(r) - r) / r**2, lambda r: abs(r**2 / mp.expm1(r)),
        -HALF_LN2, HALF_LN2, {"float": 5, "double": 11},
        "exp(r) = 1 + r + r*r * P(r), |r| <= ln(2)/2; errors relative to exp(r) - 1"),
    Fit("LOG", lambda f: (mp.log1p(f) - f + f**2 / 2) / f**3, lambda f: abs(f**3 / mp.log1p(f)),
        1 / ROOT - 1, ROOT - 1, {"float": 8},
        "log(1 + f) = f - f*f/2 + f**3 * P(f), sqrt(1/2) <= 1 + f <= sqrt(2)"),
    Fit("LOG_QUOTIENT", log_of_s, lambda z: z / 2, mpf(0), S_LIMIT * mpf("1.001"),
        {"float": 4, "double": 7},
        "log(1 + f) = 2s + s**3 * P(s*s), s = f / (2 + f), on the same interval"),
    Fit("LOG_SERIES", lambda z: (log_of_s(z) - mpf(2) / 3) / z, lambda z: z**2 / 2, mpf(0),
        S_LIMIT * mpf("1.001"), {"double": 8},
        "log(1 + f) = 2s + 2/3 s**3 + s**5 * P(s*s)"),
    odd_fit("sin", mp.sin, EIGHTH_TURN, 3, 7, "pi/4"),
    Fit("COS", lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, lambda z: z**2, mpf(0),
        EIGHTH_TURN**2, {"float": 3, "double": 7},
        "cos(x) = 1 - x*x/2 + x**4 * P(x*x), |x| <= pi/4"),
    odd_fit("tan", mp.tan, EIGHTH_TURN, 7, 15, "pi/4"),
    odd_fit("asin", mp.asin, mpf("0.5"), 5, 13, "1/2"),
    odd_fit("atan", mp.atan, TAN_EIGHTH * mpf("1.0001"), 5, 11, "tan(pi/8)"),
    odd_fit("sinh", mp.sinh, mpf(1), 4, 7, "1"),
    odd_fit("tanh", mp.tanh, mpf("0.625"), 5, 12, "0.625"),
    Fit("ERF", lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1,
        lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)), mpf(0), mpf(1), {"float": 7, "double": 15},
        "erf(x) = x + x * P(x*x), |x| <= 1"),
    Fit("ERFC_LOG", lambda t: mp.log(mp.erfc(t + 2)), lambda t: mp.erfc(t + 2),
        mpf(-1), mpf(2), {"float": 7},
        "log(erfc(x)) = P(x - 2), 1 <= x <= 4; errors relative to erf(x)"),
    Fit("ERFC_LOG_WIDE", lambda t: mp.log(mp.erfc(t + 2)), lambda t: mp.erfc(t + 2),
        mpf(-1), mpf(4), {"double": 22},
        "the same for 1 <= x <= 6"),
]  # fmt: skip


@dataclass(frozen=True)
class Pieces:
    """A constant as a sum of short numbers, so that small integers times them are exact."""

    name: str
    value: mpf
    bits: dict[str, int]
    count: int
    comment: str

    def cut(self, type_: str) -> list[float]:
        """The number in pieces, all but the last of `bits` bits."""
        left, done = self.value, []
        for _ in range(self.count - 1):
            unit = mpf(2) ** (mp.floor(mp.log(abs(left), 2)) + 1 - self.bits[type_])
            done.append(float(mp.nint(left / unit) * unit))
            left -= done[-1]
        return [*done, rounded(left, type_)]


PIECES = [
    Pieces("LN2", mp.log(2), {"float": 14, "double": 40}, 2, "n of 9 (12) bits is exact"),
    Pieces("HALF_PI", mp.pi / 2, {"double": 32}, 4, "n of 21 bits"),
    Pieces("HALF_PI_FULL", mp.pi / 2, {"float": 24, "double": 53}, 2, "and the rounding error"),
]
DIGIT_BITS = 24


def two_over_pi() -> list[float]:
    """2/pi in digits of 24 bits each, enough for the fraction of x * 2/pi for any double x."""
    left, digits = 2 / mp.pi, []
    for k in range(1, 50):
        unit = mpf(2) ** (-DIGIT_BITS * k)
        digits.append(mp.floor(left / unit) * unit)
        left -= digits[-1]
    return [
        float(d * mpf(2) ** 128) for d in digits
    ]  # scaled, because the last ones would underflow


def table(name: str, comment: str, rows: dict[str, tuple[list[float], str]]) -> None:
    """Print one table by type."""
    print(f"\n# {comment}\n{name}: Final[Coefficients] = {{")
    for type_, (values, note) in rows.items():
        print(f'    "{type_}": (  # {note}' if note else f'    "{type_}": (')
        print("".join(f"        {v!r},\n" for v in values), end="")
        print("    ),")
    print("}")


def main() -> None:
    """Print the module."""
    print('"""Constants of the vector maths, lowest power first; printed by tools/minimax.py."""')
    print("\nfrom __future__ import annotations\n\nfrom typing import Final")
    print("\nCoefficients = dict[str, tuple[float, ...]]  # by LLVM type")
    for fit in FITS:
        solved = {type_: solve(fit, type_) for type_ in fit.lengths}
        rows = {t: (values, f"2**{error:.1f}") for t, (values, error) in solved.items()}
        table(fit.name, fit.comment, rows)
    for pieces in PIECES:
        table(pieces.name, pieces.comment, {t: (pieces.cut(t), "") for t in pieces.bits})
    print("\n# 2**128 * 2/pi in digits of 24 bits\nTWO_OVER_PI: Final = (")
    print("".join(f"    {v!r},\n" for v in two_over_pi()), end="")
    print(")")


if __name__ == "__main__":
    main()

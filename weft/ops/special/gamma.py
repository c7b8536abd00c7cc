"""The logarithm of the gamma function and its derivatives, computed in float64.

float32 and half precision are rounded once from it. In float64, measured against 40 digits on (0,
1000), errors are within 4 ulp for `lgamma`, 7 ulp for `polygamma`, and 20 ulp of the largest term
for `digamma`. They are larger near the zeros of `digamma` and, below 0, of `lgamma`, where terms
cancel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from weft.errors import DTypeError
from weft.ir.dtype import DType, float64
from weft.ir.node import Value
from weft.ops.declaration import Array, Case, Elementwise, Face, catalogue, constant_of, defop
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.fact import IN_FLOAT32
from weft.ops.declaration.fast_reference import on_whole_arrays
from weft.ops.declaration.numeric import FLOATS, draw
from weft.ops.declaration.rule import broadcast_shape, floating
from weft.ops.elementwise.compare import greater, greater_equal, less, logical_and, select
from weft.ops.elementwise.transcendental import erfc

__all__ = ["betaln", "log_ndtr", "ndtr"]


# The Bernoulli numbers B2, B4, ... B18 as fractions: a quotient with an integer is rounded once.
_BERNOULLI: Final = (
    (1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6), (-3617, 510),
    (43867, 798),
)  # fmt: skip


def _bernoulli(k: int, times: int = 1, over: int = 1) -> float:
    """The Bernoulli number B`2k`, times one integer over another."""
    numerator, denominator = _BERNOULLI[k - 1]
    return numerator * times / (denominator * over)


def _number(b: Any, value: float) -> Any:
    return b.const(value, float64)


def _polynomial(b: Any, coefficients: Any, x: Any) -> Any:
    """`c[0] + c[1] * x + ...` by Horner's rule."""
    total = _number(b, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = b.fma(total, x, _number(b, c))
    return total


def in_float64(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A scalar rule that computes in float64 and rounds once."""

    def run(b: Any, x: Any, **attrs: Any) -> Any:
        return b.cast(rule(b, b.cast(x, float64), **attrs), x.dtype)

    return run


# lgamma

# lgamma(2 + t) / t for -1/2 <= t <= 1/2, interpolated at Chebyshev nodes with 60 digits; the
# relative error is 2.1e-17.
_NEAR_TWO: Final = (
    0.42278433509846713, 0.3224670334241132, -0.06735230105319563, 0.02058080842778338,
    -0.007385551028935545, 0.002890510330865901, -0.0011927539009983087, 0.0005096695196526673,
    -0.00022315497746292723, 9.945761692157133e-05, -4.4923727564247656e-05, 2.050601970174762e-05,
    -9.45628851510172e-06, 4.3828545383846665e-06, -1.9743106888421067e-06, 9.242852225162277e-07,
    -5.811277768921246e-07, 2.7475390051909663e-07,
)  # fmt: skip
# lgamma(x) - (x - 1/2) * log(x) + x - log(2 pi) / 2 in powers of 1 / x**2, times 1 / x (Stirling)
_STIRLING: Final = tuple(_bernoulli(k, 1, 2 * k * (2 * k - 1)) for k in range(1, 10))
_HALF_LOG_TAU: Final = 0.5 * math.log(2 * math.pi)
_FAR: Final = 8.5  # from here on Stirling's series has an error of 1e-17
_DOWN: Final = 6  # steps from below it into [1.5, 2.5]


def _lgamma_positive(b: Any, x: Any) -> Any:
    """For `x >= 0`."""
    one = _number(b, 1)
    # Reduce by factors x - 1, x - 2, ... into [1.5, 2.5], or extend by x and x + 1.
    y, product = x, one
    for _ in range(_DOWN):
        high = b.less(_number(b, 2.5), y)
        y = b.select(high, y - 1.0, y)
        product = b.select(high, product * y, product)
    small, tiny = b.less(y, _number(b, 1.5)), b.less(y, _number(b, 0.5))
    t = b.select(tiny, y, b.select(small, y - 1.0, y - 2.0))
    divisor = b.select(tiny, y * (y + 1.0), b.select(small, y, one))
    # One of the two is 1, so a single logarithm suffices, shared with the other branch.
    close = b.less(x, _number(b, _FAR))
    z = b.maximum(x, one)
    logarithm = b.log(b.select(close, b.select(small, divisor, product), z))
    near = t * _polynomial(b, _NEAR_TWO, t) + b.select(small, -logarithm, logarithm)
    inverse = 1.0 / z
    series = inverse * _polynomial(b, _STIRLING, inverse * inverse)
    far = b.fma(z - 0.5, logarithm - 1.0, series + (_HALF_LOG_TAU - 0.5))
    return b.select(close, near, far)


@in_float64
def _lgamma_rule(b: Any, x: Any) -> Any:
    """Below 0 by the reflection formula; infinite at integers up to 0."""
    a, zero, infinity = b.abs(x), _number(b, 0), _number(b, math.inf)
    positive = _lgamma_positive(b, a)
    sine = b.abs(b.sin((a - b.round(a)) * math.pi))
    reflected = b.log(math.pi / (sine * a)) - positive
    # Near 0 the two agree to 20 digits, and the product would underflow.
    found = b.select(b.less(x, _number(b, -1e-20)), reflected, positive)
    pole = b.bit_and(b.less_equal(x, zero), b.equal(b.floor(x), x))
    infinite = b.bit_or(pole, b.equal(a, infinity))
    return b.select(infinite, infinity, found)


def _each(function: Callable[..., float]) -> Callable[..., Array]:
    """A reference from a function of one Python number."""

    def run(x: Array, **attrs: Any) -> Array:
        found = [function(float(v), **attrs) for v in x.reshape(-1)]
        return np.array(found, np.float64).reshape(x.shape).astype(x.dtype)

    return run


def _lgamma_reference(x: float) -> float:
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):  # at a pole; of the largest numbers
        return math.inf


def _cases(**attrs: Any) -> Iterator[Case]:
    for dtype in FLOATS:
        yield Case((draw((3, 5), dtype, 0.25, 4),), attrs, rtol=4e-6)
    for dtype in FLOATS:
        wide = np.array([1e-4, 0.3, 1.0, 1.25, 2.0, 5.75, 8.5, 11.0, 40.0, 0.0, np.nan])
        below = np.array([-0.25, -0.75, -1.375, -2.625, -9.25, -30.5, -1.0, -20.0])
        x = np.concatenate([wide, below]).astype(dtype.numpy)
        yield Case((x,), attrs, rtol=1e-5, differentiate=False)
    yield Case((draw((), float64, 0.5, 2),), attrs)
    yield Case((draw((2, 0), float64),), attrs)


lgamma = defop(
    "lgamma",
    inputs="x",
    dtype=floating,
    shape=broadcast_shape,
    reference=_each(_lgamma_reference),
    vjp=lambda g, y, x: (g * digamma(x),),
    lower=Elementwise(_lgamma_rule),
    cases=lambda: _cases(),
    partial=True,
    fast=on_whole_arrays(_lgamma_rule),
    facts=IN_FLOAT32,
    face=Face("The logarithm of the absolute value of the gamma function.",
              "[1.0, 5.0] -> [0.0000, 3.1781]",
              torch="lgamma_", tf1="Lgamma", special="gammaln", scipy="gammaln loggamma"),
)  # fmt: skip

# digamma and polygamma

_STEPS: Final = 10  # shift up to at least this before the asymptotic series
# Of digamma(z) - log(z) + 1 / (2 z), in powers of 1 / z**2 from the first
_DIGAMMA: Final = tuple(_bernoulli(k, -1, 2 * k) for k in range(1, 9))


def _cotangent(b: Any, x: Any) -> Any:
    """The cotangent of pi times `x`, after range reduction."""
    angle = (x - b.round(x)) * math.pi
    return b.cos(angle) / b.sin(angle)


@in_float64
def _digamma_rule(b: Any, x: Any) -> Any:
    """Below 0 by reflection at 1/2: -inf at 0, NaN at the other poles."""
    zero, one = _number(b, 0), _number(b, 1)
    below = b.less(x, zero)
    y = b.select(below, 1.0 - x, x)
    # The sum of 1 / y, 1 / (y + 1), ... as one fraction
    top, bottom = zero, one
    for _ in range(_STEPS):
        low = b.less(y, _number(b, _STEPS))
        top = b.select(low, b.fma(top, y, bottom), top)
        bottom = b.select(low, bottom * y, bottom)
        y = b.select(low, y + 1.0, y)
    inverse = 1.0 / y
    square = inverse * inverse
    series = square * _polynomial(b, _DIGAMMA, square) - inverse * 0.5
    found = b.log(y) + series - top / bottom
    found = b.select(below, found - _cotangent(b, x) * math.pi, found)
    pole = b.bit_and(below, b.equal(b.floor(x), x))
    return b.select(pole, _number(b, math.nan), found)


def _inverse_power(x: float, n: int) -> float:
    """`x**-n`, infinite where it overflows."""
    try:
        return x**-n
    except OverflowError:
        return math.copysign(math.inf, x) ** n


def _ascent(x: float, n: int) -> float:
    """The `n`-th derivative of digamma at any `x`, by recurrence from large arguments."""
    if math.isnan(x) or x == -math.inf:
        return math.nan
    if x == math.inf:
        return math.copysign(0, (-1) ** (n + 1)) if n else x
    if x <= 0 and x == math.floor(x):
        if n == 0:
            return math.nan if x else -math.copysign(math.inf, x)
        return math.inf if n % 2 else -math.inf
    sign, terms = (-1) ** (n + 1) * math.factorial(n), list[float]()
    while x < 40:
        terms.append(sign * _inverse_power(x, n + 1))
        x += 1
    terms += [math.log(x), -0.5 / x] if n == 0 else []
    terms += [sign * x**-n / n, sign * x ** -(n + 1) / 2] if n else []
    for k in range(1, 7):
        rising = math.prod(range(2 * k, 2 * k + n)) / (2 * k)
        terms.append((-1) ** (n + 1) * _bernoulli(k) * rising * x ** -(2 * k + n))
    return math.fsum(terms) or math.copysign(0, sign)


digamma = defop(
    "digamma",
    inputs="x",
    dtype=floating,
    shape=broadcast_shape,
    reference=_each(lambda x: _ascent(x, 0)),
    vjp=lambda g, y, x: (g * polygamma(x, n=1),),
    lower=Elementwise(_digamma_rule),
    cases=lambda: _cases(),
    partial=True,
    fast=on_whole_arrays(_digamma_rule),
    facts=IN_FLOAT32,
    face=Face("The derivative of `lgamma`.", "[1.0, 2.0] -> [-0.5772,  0.4228]",
              torch="digamma_", tf1="Digamma", special="digamma psi", scipy="digamma psi"),
)  # fmt: skip


def _cotangent_slope(n: int) -> list[int]:
    """The `n`-th derivative of cot(pi x) over pi**n, as coefficients of powers of cot(pi x)."""
    found = [0, 1]
    for _ in range(n):
        slope = [k * c for k, c in enumerate(found)][1:]
        found = [-c for c in [*slope, 0, 0]]
        for k, c in enumerate(slope):
            found[k + 2] -= c
    return found


def _whole_power(x: Any, n: int) -> Any:
    """`x**n` for an integer `n >= 1`, by squaring."""
    if n == 1:
        return x
    half = _whole_power(x, n // 2)
    return half * half * x if n % 2 else half * half


def _zeta(b: Any, y: Any, n: int) -> Any:
    """The sum of 1 / (y + k)**(n + 1) over all k from 0, for positive `y` (Euler, Maclaurin)."""
    steps = _STEPS + n // 2
    total = _number(b, 0)
    for _ in range(steps):
        low = b.less(y, _number(b, steps))
        total = b.select(low, total + _whole_power(1.0 / y, n + 1), total)
        y = b.select(low, y + 1.0, y)
    inverse = 1.0 / y
    factors = [
        _bernoulli(k, math.prod(range(n + 1, n + 2 * k)), math.factorial(2 * k))
        for k in range(1, 10)
    ]
    series = b.fma(inverse * inverse, _polynomial(b, factors, inverse * inverse), inverse * 0.5)
    return total + _whole_power(inverse, n) * (series + 1 / n)


@in_float64
def _polygamma_rule(b: Any, x: Any, n: int) -> Any:
    """Below 0 by reflection at 1/2; infinite at the poles."""
    if n == 0:
        return _digamma_rule(b, x)
    sign = 1.0 if n % 2 else -1.0
    below = b.less(x, _number(b, 0))
    zeta = _zeta(b, b.select(below, 1.0 - x, b.abs(x)), n) * (sign * math.factorial(n))
    slope = _polynomial(b, [float(c) for c in _cotangent_slope(n)], _cotangent(b, x))
    reflected = zeta * -sign - slope * math.pi ** (n + 1)
    found = b.select(below, reflected, zeta)
    finite = b.less(_number(b, -math.inf), x)
    pole = b.bit_and(b.bit_and(below, finite), b.equal(b.floor(x), x))
    return b.select(pole, _number(b, sign * math.inf), found)


def _polygamma_dtype(x: DType, *, n: int) -> DType:
    if not 0 <= n <= MOST:
        raise DTypeError(f"n: expected 0 <= n <= {MOST}, got {n}")
    return floating(x)


MOST: Final = 20
"""The highest order of `polygamma`; beyond it, values leave the range of float32."""


def _polygamma_cases() -> Iterator[Case]:
    for n in (0, 1, 2, 5):
        yield from _cases(n=n)


polygamma = defop(
    "polygamma",
    inputs="x",
    attrs={"n": REQUIRED},
    dtype=_polygamma_dtype,
    shape=broadcast_shape,
    reference=_each(_ascent),
    vjp=lambda g, y, x, *, n: (g * polygamma(x, n=n + 1),),
    lower=Elementwise(_polygamma_rule),
    cases=_polygamma_cases,
    partial=True,
    fast=on_whole_arrays(_polygamma_rule),
    facts=IN_FLOAT32,
)
"""The `n`-th derivative of `digamma`, for `n` up to 20."""

# Composites


@Face(torch="", scipy="betaln", wide=float64)
def betaln(x: Value, y: Value) -> Value:
    """The logarithm of the absolute value of the beta function."""
    swapped = less(x, y)  # and not maximum and minimum, whose gradients in a tie go both to x
    large, small = select(swapped, y, x), select(swapped, x, y)
    far = logical_and(greater_equal(large, _FAR), greater(small, 0.0))
    finite = less(large, math.inf)
    plain = lgamma(x) + lgamma(y) - lgamma(x + y)
    b = select(logical_and(far, finite), large, _FAR)
    a = select(far, small, 1.0)
    return select(far, select(finite, lgamma(a) + _lgamma_step(a, b), -math.inf), plain)


def _lgamma_step(a: Value, b: Value) -> Value:
    """`lgamma(b) - lgamma(a + b)` for positive `a` and large `b`, without cancellation."""
    total = a + b
    rest = _stirling_rest(b) - _stirling_rest(total)
    return rest - (b - 0.5) * catalogue.log1p(a / b) - a * (catalogue.log(total) - 1.0)


def _stirling_rest(x: Value) -> Value:
    """The correction term of Stirling's series."""
    inverse = 1.0 / x
    square, total = inverse * inverse, constant_of(_STIRLING[-1], x.dtype)
    for c in reversed(_STIRLING[:-1]):
        total = total * square + c
    return inverse * total


@Face(torch="", special="ndtr", scipy="ndtr", wide=float64)
def ndtr(x: Value) -> Value:
    """The normal cumulative distribution function, accurate in both tails."""
    return erfc(x * -math.sqrt(0.5)) * constant_of(0.5, x.dtype)


@Face(torch="", special="log_ndtr", scipy="log_ndtr", wide=float64)
def log_ndtr(x: Value) -> Value:
    """The logarithm of `ndtr`, accurate near 0 and 1."""
    root = constant_of(math.sqrt(0.5), x.dtype)
    far, right = less(x, _TAIL), greater(x, 0.0)
    # Not the magnitude of x, whose derivative at 0 counts as 0.
    tail = erfc(select(far, 0.0, select(right, x, -x)) * root) * 0.5
    near = select(right, catalogue.log1p(-tail), catalogue.log(select(right, 1.0, tail)))
    return select(far, _log_tail(select(far, x, _TAIL)), near)


_TAIL: Final = -20.0  # below it seven terms of the series have an error of 4e-16


def _log_tail(x: Value) -> Value:
    """`log_ndtr` for large negative `x`, by the series of erfcx (Abramowitz and Stegun, 7.1.23)."""
    inverse = 1.0 / (x * x)
    series = constant_of(1, x.dtype)
    for k in (11, 9, 7, 5, 3, 1):
        series = 1.0 - series * inverse * float(k)
    scale = catalogue.log(-x * math.sqrt(2 * math.pi))
    return x * 0.5 * -x - scale + catalogue.log(series)

"""Modified Bessel functions of the first kind, order 0 and 1, computed in float64.

float32 and half precision are rounded once from it. In float64 errors are at most 8 ulp, measured
against 40 digits up to 1000.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from weft.ir.dtype import float32, float64
from weft.ir.node import Value
from weft.ops.declaration import Array, Case, Elementwise, Face, Op, constant_of, defop
from weft.ops.declaration.fast_reference import on_whole_arrays
from weft.ops.declaration.numeric import FLOATS, draw
from weft.ops.declaration.rule import broadcast_shape, floating
from weft.ops.elementwise.arithmetic import abs, sign
from weft.ops.elementwise.compare import greater, isinf, select
from weft.ops.elementwise.transcendental import exp
from weft.ops.special.gamma import in_float64

# Chebyshev coefficients, computed with 50 digits, in t = x / 4 - 1 for x up to 8 and in t = 16 / x
# - 1 beyond: of exp(-x) I0(x) and exp(-x) I1(x) / x near, and of exp(-x) sqrt(x) I(x) far.
_I0_NEAR: Final = (
    0.33839763720473803, -0.3046826723431984, 0.17162090152220877, -0.09490109704804764,
    0.04930528423967071, -0.02373741480589947, 0.010546460394594998, -0.004324309995050576,
    0.0016394756169413357, -0.0005763755745385824, 0.00018850288509584165, -5.754195010082104e-05,
    1.6448448070728896e-05, -4.4167383584587505e-06, 1.1173875391201037e-06, -2.670793853940612e-07,
    6.046995022541919e-08, -1.300025009986248e-08, 2.6598237246823866e-09, -5.189795601635263e-10,
    9.675809035373237e-11, -1.726826291441556e-11, 2.95505266312964e-12, -4.856446783111929e-13,
    7.676185498604936e-14, -1.1685332877993451e-14, 1.715391285555133e-15, -2.431279846547955e-16,
    3.3307945188222384e-17, -4.4153416464793395e-18, 5.669178006921496e-19,
)  # fmt: skip
_I0_FAR: Final = (
    0.4022452055070544, 0.0033691164782556943, 6.889758346916825e-05, 2.8913705208347567e-06,
    2.0489185894690638e-07, 2.266668990498178e-08, 3.3962320257083865e-09, 4.94060238822497e-10,
    1.1889147107846439e-11, -3.1499165279632416e-11, -1.3215811840447713e-11,
    -1.7941785315068062e-12, 7.180124451383666e-13, 3.8527783827421426e-13, 1.54008621752141e-14,
    -4.150569347287222e-14, -9.554846698828307e-15, 3.811680669352621e-15, 1.7725601330565245e-15,
    -3.425485619677142e-16, -2.827623980516646e-16, 3.461222867695658e-17, 4.465621420302078e-17,
    -4.8305044859640105e-18, -7.233180488043844e-18, 9.921475415657038e-19, 1.1936508909418693e-18,
)  # fmt: skip
_I1_NEAR: Final = (
    0.12629359322181682, -0.17641651835783406, 0.1026436586898471, -0.05294598120809499,
    0.024726449030626516, -0.010564084894626197, 0.004156422944312888, -0.0015135724506312532,
    0.0005122859561685758, -0.00016176081582589674, 4.781565107550054e-05, -1.3273163656039436e-05,
    3.4702513081376785e-06, -8.568720264695455e-07, 2.0032947535521353e-07, -4.445059128796328e-08,
    9.381537386495773e-09, -1.8872497517228294e-09, 3.625590281552117e-10, -6.663489723502027e-11,
    1.1736186298890901e-11, -1.9839743977649436e-12, 3.223793365945575e-13, -5.042185504727912e-14,
    7.600684294735408e-15, -1.1055969477353862e-15, 1.5536319577362005e-16, -2.111421214358166e-17,
    2.7779141127610464e-18, -3.541581772542136e-19,
)  # fmt: skip
_I1_FAR: Final = (
    0.38928811750914005, -0.009761097491361469, -0.00011058893876262371, -3.882564808877691e-06,
    -2.512236237870209e-07, -2.6314688468895196e-08, -3.835380385964237e-09, -5.589743462196584e-10,
    -1.8974958123505413e-11, 3.2526035830154884e-11, 1.4125807436613782e-11, 2.0356285441470896e-12,
    -7.198551776245908e-13, -4.0835511110921974e-13, -2.1015418427726643e-14,
    4.2724400167119517e-14, 1.0420276984128802e-14, -3.814403072437007e-15, -1.8803547755107805e-15,
    3.30820231092085e-16, 2.9626289976460157e-16, -3.209525921991637e-17, -4.6503053684947827e-17,
    4.414348323093937e-18, 7.517296311011398e-18, -9.314178870907263e-19, -1.2421932752759928e-18,
)  # fmt: skip


def _chebyshev(b: Any, coefficients: Sequence[float], t: Any) -> Any:
    """The sum of Chebyshev polynomials by Clenshaw's recurrence."""
    last, before = b.const(0, float64), b.const(0, float64)
    twice = t * 2.0
    for c in reversed(coefficients[1:]):
        last, before = b.fma(twice, last, b.const(c, float64) - before), last
    return b.fma(t, last, b.const(coefficients[0], float64) - before)


def _rule(order: int, *, grown: bool = False, over_x: bool = False) -> Callable[..., Any]:
    """The rule of exp(-|x|) I(x), or of I(x), and of its quotient by x, which is even."""
    near, far = ((_I0_NEAR, _I0_FAR), (_I1_NEAR, _I1_FAR))[order]

    def scaled(b: Any, x: Any) -> Any:
        a, eight = b.abs(x), b.const(8, float64)
        small = _chebyshev(b, near, b.minimum(a, eight) * 0.25 - 1.0)
        large = b.maximum(a, eight)
        big = _chebyshev(b, far, 16.0 / large - 1.0) / b.sqrt(large)
        if over_x:
            big = big / large
        elif order:
            small, big = small * x, b.select(b.less(x, -eight), -big, big)
        return b.select(b.less(eight, a), big, small)

    def rule(b: Any, x: Any) -> Any:
        found = scaled(b, x)
        if not grown:
            return found
        growth = b.exp(b.abs(x) * 0.5)  # in two steps, as exp(|x|) overflows before the product
        whole, infinity = found * growth * growth, b.const(math.inf, float64)
        signed = x * infinity if order and not over_x else infinity
        return b.select(b.equal(growth, infinity), signed, whole)

    return in_float64(rule)


def _series(x: float, order: int) -> float:
    """exp(-|x|) I(x) by its power series, whose terms have one sign, or for large x by Hankel's."""
    if not math.isfinite(x):
        return math.nan if math.isnan(x) else math.copysign(0, x) if order else 0.0
    a, terms = math.fabs(x), [1.0]
    if a < 30:
        for k in range(1, 120):
            terms.append(terms[-1] * (a / 2) ** 2 / (k * (k + order)))
        total = math.fsum(terms) * math.exp(-a) * (a / 2) ** order
    else:
        for k in range(1, 25):
            terms.append(-terms[-1] * (4 * order - (2 * k - 1) ** 2) / (k * 8 * a))
        total = math.fsum(terms) / (math.sqrt(2 * math.pi) * math.sqrt(a))
    return math.copysign(total, x) if order else total


def _grown(function: Callable[[float], float]) -> Callable[[float], float]:
    """`exp(|x|)` times the function; the product may be finite where the factor is not."""

    def grown(x: float) -> float:
        y, growth = function(x), math.exp(min(math.fabs(x), _OVERFLOW) / 2)
        return math.copysign(math.inf, y) if math.fabs(x) > _OVERFLOW else y * growth * growth

    return grown


_OVERFLOW: Final = 1400.0  # exp(|x| / 2) is finite up to here, and I(x) is infinite


_HALF: Final = 1e-150  # below it, I1(x) / x is 1/2, and x or x * x may have few digits


def _over_x(function: Callable[[float], float]) -> Callable[[float], float]:
    def quotient(x: float) -> float:
        if math.fabs(x) < _HALF:
            return 0.5
        return math.fabs(function(x) / x if math.isfinite(x) else function(x))

    return quotient


def _reference(function: Callable[[float], float]) -> Callable[[Array], Array]:
    def reference(x: Array) -> Array:
        found = [function(float(v)) for v in x.reshape(-1)]
        with np.errstate(over="ignore"):
            return np.array(found, np.float64).reshape(x.shape).astype(x.dtype)

    return reference


def _cases() -> Iterator[Case]:
    wide = np.array([0.0, -0.0, 1e-4, 7.9, 8.0, -8.1, 30.0, -200.0, 1e4, np.inf, -np.inf, np.nan])
    for dtype in FLOATS:
        yield Case((draw((3, 5), dtype, 0.25, 4),), rtol=4e-6)
        yield Case((wide.astype(dtype.numpy),), rtol=4e-6, differentiate=False)
    yield Case((draw((2, 4), float64, -20, 20),))
    yield Case((draw((), float64),))
    yield Case((draw((2, 0), float64),))


# I1 / I0 = 1 - 1 / (2a) - ... for large a = |x|, where the difference of the two would cancel: the
# coefficients of 1 / a, ..., 1 / a**6 (from DLMF 10.40.1), and by size of the dtype the least a.
_RATIO: Final = (0.5, 0.125, 0.125, 0.1953125, 0.40625, 1.0478515625)
_LEAST: Final = {8: 600.0, 4: 30.0, 2: 8.0}


def _difference(x: Value, larger: Value) -> tuple[Value, Value]:
    """Where x is large, and there `larger - |i1e|` of `larger = i0e`."""
    a = abs(x)
    far = greater(a, constant_of(_LEAST[x.dtype.size], x.dtype))
    inverse = 1.0 / select(far, a, constant_of(1, x.dtype))
    series = constant_of(_RATIO[-1], x.dtype)
    for c in reversed(_RATIO[:-1]):
        series = series * inverse + c
    return far, larger * inverse * series


# I2(x) = I0(x) - 2 I1(x) / x cancels near 0: there its series, the sum of s**k / (k! (k + 2)!) with
# s = x * x / 4, whose further terms are below 1e-19.
_I2_NEAR: Final = 2.0
_I2_SERIES: Final = tuple(1 / (4 * math.factorial(k) * math.factorial(k + 2)) for k in range(13))


def _i2_over_x(x: Value, zeroth: Op, first: Op) -> Value:
    """`I2(x) / x` from I0 and I1 over x, which may both be scaled by exp(-|x|)."""
    far = greater(abs(x), constant_of(_I2_NEAR, x.dtype))
    large = select(far, x, constant_of(_I2_NEAR, x.dtype))
    top = zeroth(large)
    rest = select(isinf(top), sign(x) * top, (top - first(large) * 2.0) / large)
    small = select(far, constant_of(0, x.dtype), x)
    s, series = small * small * 0.25, constant_of(_I2_SERIES[-1], x.dtype)
    for c in reversed(_I2_SERIES[:-1]):
        series = series * s + c
    series = small * series
    return select(far, rest, series if first is i1_over_x else series * exp(-abs(small)))


def _i1_vjp(g: Value, y: Value, x: Value) -> tuple[Value]:
    """`i0 - i1 / x` as a sum of positive terms: `i1 / x + i2`."""
    return (g * (i1_over_x(x) + x * _i2_over_x(x, i0, i1_over_x)),)


def _i1_over_x_vjp(g: Value, y: Value, x: Value) -> tuple[Value]:
    return (g * _i2_over_x(x, i0, i1_over_x),)


def _i0e_vjp(g: Value, y: Value, x: Value) -> tuple[Value]:
    far, apart = _difference(x, y)
    return (g * select(far, -sign(x) * apart, i1e(x) - sign(x) * y),)


def _i1e_vjp(g: Value, y: Value, x: Value) -> tuple[Value]:
    larger = i0e(x)
    far, apart = _difference(x, larger)
    return (g * (select(far, apart, larger - sign(x) * y) - i1e_over_x(x)),)


def _i1e_over_x_vjp(g: Value, y: Value, x: Value) -> tuple[Value]:
    return (g * (_i2_over_x(x, i0e, i1e_over_x) - y * sign(x)),)


def _bessel(
    name: str, function: Callable[[float], float], vjp: Callable[..., tuple[Value]], rule: Any,
    face: Face | None = None,
) -> Op:  # fmt: skip
    return defop(
        name, inputs="x", dtype=floating, shape=broadcast_shape, reference=_reference(function),
        vjp=vjp, lower=Elementwise(rule), cases=_cases, partial=True, fast=on_whole_arrays(rule),
        face=face,
    )  # fmt: skip


i0 = _bessel(
    "i0", _grown(lambda x: _series(x, 0)), lambda g, y, x: (g * i1(x),), _rule(0, grown=True),
    face=Face("The modified Bessel function of the first kind of order 0.",
              "[0.0, 1.0] -> [1.0000, 1.2661]",
              torch="i0_", special="i0 modified_bessel_i0", scipy="i0", wide=float32),
)  # fmt: skip
i1 = _bessel(
    "i1", _grown(lambda x: _series(x, 1)), _i1_vjp, _rule(1, grown=True),
    face=Face("The modified Bessel function of the first kind of order 1.",
              torch="", special="i1 modified_bessel_i1", scipy="i1", wide=float32),
)  # fmt: skip
i1_over_x = _bessel(
    "i1_over_x", _grown(_over_x(lambda x: _series(x, 1))), _i1_over_x_vjp,
    _rule(1, grown=True, over_x=True),
)  # fmt: skip
"""`i1(x) / x`, and 1/2 at 0."""
i0e = _bessel(
    "i0e", lambda x: _series(x, 0), _i0e_vjp, _rule(0),
    face=Face("`i0(x) * exp(-abs(x))`.", torch="", special="i0e", scipy="i0e", wide=float32),
)  # fmt: skip
i1e = _bessel(
    "i1e", lambda x: _series(x, 1), _i1e_vjp, _rule(1),
    face=Face("`i1(x) * exp(-abs(x))`.", torch="", special="i1e", scipy="i1e", wide=float32),
)  # fmt: skip
i1e_over_x = _bessel(
    "i1e_over_x", _over_x(lambda x: _series(x, 1)), _i1e_over_x_vjp, _rule(1, over_x=True)
)
"""`exp(-|x|) * i1(x) / x`, and 1/2 at 0."""

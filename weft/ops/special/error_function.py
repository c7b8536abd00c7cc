"""The inverse error function."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from weft.ir.dtype import float32, float64
from weft.ir.node import Value
from weft.ops.declaration import Array, Case, Elementwise, Face, catalogue, defop
from weft.ops.declaration.fact import IN_FLOAT32
from weft.ops.declaration.numeric import FLOATS, draw, widened
from weft.ops.declaration.rule import broadcast_shape, floating

# Giles, "Approximating the erfinv function" (GPU Computing Gems, 2012): x times a polynomial in w =
# -log(1 - x**2) for each range: (upper bound of w, whether of its root, center, coefficients).
SINGLE: Final = (
    (5.0, False, 2.5, (
        2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
        -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
    )),
    (math.inf, True, 3.0, (
        -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
        -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
    )),
)  # fmt: skip
DOUBLE: Final = (
    (6.25, False, 3.125, (
        -3.6444120640178196996e-21, -1.685059138182016589e-19, 1.2858480715256400167e-18,
        1.115787767802518096e-17, -1.333171662854620906e-16, 2.0972767875968561637e-17,
        6.6376381343583238325e-15, -4.0545662729752068639e-14, -8.1519341976054721522e-14,
        2.6335093153082322977e-12, -1.2975133253453532498e-11, -5.4154120542946279317e-11,
        1.051212273321532285e-09, -4.1126339803469836976e-09, -2.9070369957882005086e-08,
        4.2347877827932403518e-07, -1.3654692000834678645e-06, -1.3882523362786468719e-05,
        0.0001867342080340571352, -0.00074070253416626697512, -0.0060336708714301490533,
        0.24015818242558961693, 1.6536545626831027356,
    )),
    (16.0, True, 3.25, (
        2.2137376921775787049e-09, 9.0756561938885390979e-08, -2.7517406297064545428e-07,
        1.8239629214389227755e-08, 1.5027403968909827627e-06, -4.013867526981545969e-06,
        2.9234449089955446044e-06, 1.2475304481671778723e-05, -4.7318229009055733981e-05,
        6.8284851459573175448e-05, 2.4031110387097893999e-05, -0.0003550375203628474796,
        0.00095328937973738049703, -0.0016882755560235047313, 0.0024914420961078508066,
        -0.0037512085075692412107, 0.005370914553590063617, 1.0052589676941592334,
        3.0838856104922207635,
    )),
    (math.inf, True, 5.0, (
        -2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09,
        -3.7894654401267369937e-09, 7.6157012080783393804e-09, -1.4960026627149240478e-08,
        2.9147953450901080826e-08, -6.7711997758452339498e-08, 2.2900482228026654717e-07,
        -9.9298272942317002539e-07, 4.5260625972231537039e-06, -1.9681778105531670567e-05,
        7.5995277030017761139e-05, -0.00021503011930044477347, -0.00013871931833623122026,
        1.0103004648645343977, 4.8499064014085844221,
    )),
)  # fmt: skip


def _erfinv_rule(b: Any, x: Any) -> Any:
    ranges = DOUBLE if x.dtype is float64 else SINGLE
    w = -b.log((1.0 - x) * (1.0 + x))
    root = b.sqrt(b.maximum(w, b.const(0.0, x.dtype)))
    found: Any = None
    for limit, rooted, center, coefficients in reversed(ranges):
        t = (root if rooted else w) - center
        total: Any = b.const(coefficients[0], x.dtype)
        for c in coefficients[1:]:
            total = b.fma(total, t, b.const(c, x.dtype))
        below = None if found is None else b.less(w, b.const(limit, x.dtype))
        found = total if below is None else b.select(below, total, found)
    infinite = b.equal(b.abs(x), b.const(1.0, x.dtype))
    return b.select(infinite, x * math.inf, found * x)


def _inverse(x: float) -> float:
    """Newton's method on the logarithm of the complement, which is accurate near 1."""
    if not -1 < x < 1:
        return math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    rest = 1 - abs(x)
    y = abs(x) * HALF_SQRT_PI if rest > 0.5 else math.sqrt(-math.log(rest))
    for _ in range(60):
        tail = math.erfc(y)
        wrong = (math.erf(y) - abs(x)) if rest > 0.5 else tail * math.log(rest / tail)
        step = wrong * math.exp(y * y) * HALF_SQRT_PI
        y -= step
        if abs(step) <= 1e-17 * y:
            break
    return math.copysign(y, x)


HALF_SQRT_PI: Final = math.sqrt(math.pi) / 2


@widened
def _erfinv_reference(x: Array) -> Array:
    found = [_inverse(float(v)) for v in x.reshape(-1)]
    return np.array(found, np.float64).reshape(x.shape).astype(x.dtype)


def _fast_erfinv(x: Array) -> Array:
    """The compiled form on arrays; further ranges are computed only where needed."""
    flat = x.reshape(-1)
    ranges = DOUBLE if x.dtype == np.float64 else SINGLE
    with np.errstate(divide="ignore", invalid="ignore"):
        w = -np.log((1 - flat) * (1 + flat))
        found = _polynomial(w, *ranges[0][1:])
        for (below, *_), (_, *form) in itertools.pairwise(ranges):
            far = np.flatnonzero(w >= below)
            found[far] = _polynomial(w[far], *form)
        found *= flat
    ends = np.flatnonzero(np.abs(flat) == 1)
    found[ends] = np.copysign(np.inf, flat[ends])
    return found.reshape(x.shape)


def _polynomial(w: Array, rooted: Any, center: Any, coefficients: Any) -> Array:
    t = (np.sqrt(w) if rooted else w) - w.dtype.type(center)
    found = np.full_like(t, coefficients[0])
    for c in coefficients[1:]:
        found *= t
        found += w.dtype.type(c)
    return found


def _erfinv_vjp(g: Value, y: Value, x: Value) -> tuple[Value]:
    return (g * catalogue.exp(y * y) * HALF_SQRT_PI,)


def _erfinv_cases() -> Iterator[Case]:
    for dtype in FLOATS:
        yield Case((draw((3, 21), dtype, -0.9, 0.9),), rtol=2e-2 if dtype.size == 2 else 3e-6)
    for dtype in (float32, float64):
        edges = [0.0, -0.0, 1.0, -1.0, 1.5, -2.0, math.nan, 0.999999, -0.9999999, 1e-30]
        yield Case((np.array(edges, dtype.numpy),), rtol=3e-6, differentiate=False)


erfinv = defop(
    "erfinv",
    inputs="x",
    dtype=floating,
    shape=broadcast_shape,
    reference=_erfinv_reference,
    vjp=_erfinv_vjp,
    lower=Elementwise(_erfinv_rule),
    cases=_erfinv_cases,
    partial=True,
    fast=_fast_erfinv,
    facts=IN_FLOAT32,
    face=Face("The inverse of `erf`.", "[0.0, 0.5] -> [0.0000, 0.4769]",
              torch="erfinv_", special="erfinv", scipy="erfinv"),
)  # fmt: skip

"""Special functions computed by SciPy, if installed, with gradients."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from weft.ir.node import Value
from weft.ir.shape import broadcast, known
from weft.ops.boundary.host import call
from weft.ops.boundary.routine import routine
from weft.ops.declaration import Face, catalogue, constant_of
from weft.ops.random.gamma import log_gamma_slope
from weft.ops.special.gamma import betaln

Slope = Callable[..., Value]


def _number(value: float, like: Value) -> Value:
    return constant_of(np.array(value, like.dtype.numpy))


def hosted(name: str, *xs: Value) -> Value:
    """A function of `scipy.special` on graph values, which broadcast."""
    _function(name)  # where SciPy is absent, it says so here
    shape = known(broadcast(*[known(x.shape) for x in xs]))

    wide = all([known(x.shape) == shape for x in xs])
    kind = (xs[0].dtype, shape)
    return call(
        _computed.of(name), *xs, types_of=[kind], gradient=_of_hosted.of(name), title=name,
        wide=wide,
    )[0]  # fmt: skip


@routine
def _of_hosted(name: str, g: Any, y: Any, *xs: Value) -> list[Value | None]:
    found = [None if s is None else g[0] * s(y[0], *xs) for s in HOSTED[name].slopes]
    return [
        None if v is None else catalogue.sum_to(v, shape=known(x.shape))
        for v, x in zip(found, xs, strict=True)
    ]


def _function(name: str) -> Any:
    return getattr(importlib.import_module("scipy.special"), name)


@routine
def _computed(name: str, *arrays: Any) -> Any:
    return _function(name)(*arrays)


def _adjacent_orders(name: str, sign: int) -> Slope:
    """Half the difference (or sum) of the functions of adjacent orders."""

    def slope(y: Value, n: Value, x: Value) -> Value:
        lower, upper = hosted(name, n - 1, x), hosted(name, n + 1, x)
        return (lower - upper if sign < 0 else lower + upper) * _number(0.5, x)

    return slope


def _second(name: str, first: str) -> Slope:
    """The derivative of the function of order 1: half the difference of those of orders 0 and 2."""

    def slope(y: Value, x: Value) -> Value:
        return (hosted(first, x) - hosted(name, _number(2, x), x)) * _number(0.5, x)

    return slope


def _scaled(y: Value, n: Value, x: Value) -> Value:
    return y * (n / x - catalogue.sign(x)) + hosted("ive", n + 1, x)


def _beta_density(y: Value, a: Value, b: Value, x: Value) -> Value:
    power = (a - 1) * catalogue.log(x) + (b - 1) * catalogue.log1p(-x)
    return catalogue.exp(power - betaln(a, b))


def _gamma_density(y: Value, a: Value, x: Value) -> Value:
    return catalogue.exp((a - 1) * catalogue.log(x) - x - catalogue.lgamma(a))


def _gamma_slope(y: Value, a: Value, x: Value) -> Value:
    """The derivative by the shape: minus the density, times that of the quantile."""
    zero = _number(0, x)
    inside = catalogue.logical_and(
        catalogue.greater(x, zero), catalogue.less(x, _number(math.inf, x))
    )
    log = catalogue.log(catalogue.select(inside, x, _number(1, x)))
    mass = catalogue.exp(a * log - x - catalogue.lgamma(a))
    return catalogue.select(inside, -mass * log_gamma_slope(log, a), zero)


def _erfc_slope(y: Value, x: Value) -> Value:
    return catalogue.exp(y * y) * _number(-math.sqrt(math.pi) / 2, x)


_DOUBLE_FACTORIALS: Final = tuple(math.prod(range(1, 2 * k, 2)) for k in range(1, 7))
_ERFCX_FAR: Final = {8: 50.0, 4: 10.0, 2: 10.0}
"""By size of the dtype: beyond it, six terms of the series are exact and the difference is not."""


def _erfcx_slope(y: Value, x: Value) -> Value:
    """`2 * (x * y - 1 / sqrt(pi))`, for large x by its series in `1 / (2 * x * x)`."""
    far = catalogue.greater(x, _number(_ERFCX_FAR[x.dtype.size], x))
    inverse = 1.0 / catalogue.select(far, x, _number(1, x))
    t, series = inverse * inverse * 0.5, _number(0, x)
    for k, c in reversed(list(enumerate(_DOUBLE_FACTORIALS))):
        series = (series + (-c if k % 2 == 0 else c)) * t
    scale = _number(1 / math.sqrt(math.pi), x)
    return catalogue.select(far, series * scale, x * y - scale) * _number(2, x)


def _bell(x: Value) -> Value:
    return catalogue.exp(-x * x) * _number(2 / math.sqrt(math.pi), x)


def _owens_by_a(y: Value, h: Value, a: Value) -> Value:
    rest = a * a + 1
    return catalogue.exp(-h * h * rest * 0.5) / (rest * _number(2 * math.pi, h))


def _owens_by_h(y: Value, h: Value, a: Value) -> Value:
    bell = catalogue.exp(-h * h * 0.5) * _number(-0.5 / math.sqrt(2 * math.pi), h)
    return bell * catalogue.erf(a * h * _number(math.sqrt(0.5), h))


class Hosted(NamedTuple):
    """A function of `scipy.special`.

    Attributes:
        slopes: derivatives with respect to each argument, `None` if there is no formula.
    """

    slopes: tuple[Slope | None, ...]
    face: Face


HOSTED: Final[Mapping[str, Hosted]] = {
    "j0": Hosted(
        (lambda y, x: -hosted("j1", x),),
        Face("The Bessel function of the first kind of order 0.", special="bessel_j0", scipy="j0"),
    ),
    "j1": Hosted(
        (_second("jv", "j0"),),
        Face("The Bessel function of the first kind of order 1.", special="bessel_j1", scipy="j1"),
    ),
    "jv": Hosted(
        (None, _adjacent_orders("jv", -1)),
        Face("The Bessel function of the first kind of a real order.", scipy="jv jn"),
    ),
    "y0": Hosted(
        (lambda y, x: -hosted("y1", x),),
        Face("The Bessel function of the second kind of order 0.", special="bessel_y0", scipy="y0"),
    ),
    "y1": Hosted(
        (_second("yv", "y0"),),
        Face("The Bessel function of the second kind of order 1.", special="bessel_y1", scipy="y1"),
    ),
    "yv": Hosted(
        (None, _adjacent_orders("yv", -1)),
        Face("The Bessel function of the second kind of a real order.", scipy="yv yn"),
    ),
    "iv": Hosted(
        (None, _adjacent_orders("iv", 1)),
        Face("The modified Bessel function of the first kind of a real order.", scipy="iv"),
    ),
    "ive": Hosted(
        (None, _scaled), Face("`iv(v, x) * exp(-abs(x))`.", scipy="ive"),
    ),
    "betainc": Hosted(
        (None, None, _beta_density),
        Face("The distribution function of `beta` at `x`, after a and b.", scipy="betainc"),
    ),
    "gammainc": Hosted(
        (_gamma_slope, _gamma_density),
        Face("The distribution function of the gamma distribution of shape a, at `x`.",
             special="gammainc igamma", scipy="gammainc"),
    ),
    "gammaincc": Hosted(
        (
            lambda y, a, x: -_gamma_slope(y, a, x),
            lambda y, a, x: -_gamma_density(y, a, x),
        ),
        Face("1 minus `gammainc`.", special="gammaincc igammac", scipy="gammaincc"),
    ),
    "erfcinv": Hosted(
        (_erfc_slope,), Face("The inverse of `erfc`.", scipy="erfcinv"),
    ),
    "erfcx": Hosted(
        (_erfcx_slope,),
        Face("`exp(x * x) * erfc(x)`, without overflow.", special="erfcx", scipy="erfcx"),
    ),
    "k0": Hosted(
        (lambda y, x: -hosted("k1", x),),
        Face("The modified Bessel function of the second kind of order 0.",
             special="modified_bessel_k0", scipy="k0"),
    ),
    "k1": Hosted(
        (lambda y, x: -hosted("k0", x) - y / x,),
        Face("The modified Bessel function of the second kind of order 1.",
             special="modified_bessel_k1", scipy="k1"),
    ),
    "ndtri": Hosted(
        (lambda y, x: catalogue.exp(y * y / 2) * _number(math.sqrt(2 * math.pi), x),),
        Face("The inverse of `ndtr`.", special="ndtri", scipy="ndtri"),
    ),
    "zeta": Hosted(
        (None, lambda y, x, q: -x * hosted("zeta", x + 1, q)),
        Face("Hurwitz' zeta function: the sum of `(k + q) ** -x` for k from 0.",
             special="zeta", scipy="zeta"),
    ),
    "expi": Hosted(
        (lambda y, x: catalogue.exp(x) / x,),
        Face("The exponential integral Ei.", scipy="expi"),
    ),
    "exp1": Hosted(
        (lambda y, x: -catalogue.exp(-x) / x,),
        Face("The exponential integral E1.", scipy="exp1"),
    ),
    "expn": Hosted(
        (None, lambda y, n, x: -hosted("expn", n - 1, x)),
        Face("The exponential integral of an integer order, which is the first.", scipy="expn"),
    ),
    "dawsn": Hosted(
        (lambda y, x: 1 - 2 * x * y,), Face("Dawson's integral.", scipy="dawsn"),
    ),
    "spence": Hosted(
        (lambda y, x: catalogue.log(x) / (1 - x),),
        Face("The dilogarithm of `1 - x`, as SciPy counts.", scipy="spence"),
    ),
    "hyp1f1": Hosted(
        (None, None, lambda y, a, b, x: a / b * hosted("hyp1f1", a + 1, b + 1, x)),
        Face("The confluent hypergeometric function of a and b at `x`.", scipy="hyp1f1"),
    ),
    "hyp2f1": Hosted(
        (
            None, None, None,
            lambda y, a, b, c, x: a * b / c * hosted("hyp2f1", a + 1, b + 1, c + 1, x),
        ),
        Face("The hypergeometric function of a, b and c at `x`.", scipy="hyp2f1"),
    ),
    "owens_t": Hosted(
        (_owens_by_h, _owens_by_a), Face("Owen's T function of h and a.", scipy="owens_t"),
    ),
    "erf": Hosted(
        (lambda y, x: _bell(x),), Face("The error function of complex numbers."),
    ),
    "erfc": Hosted(
        (lambda y, x: -_bell(x),), Face("1 minus the error function of complex numbers."),
    ),
}  # fmt: skip

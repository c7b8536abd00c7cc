"""Special functions composed of others."""

from __future__ import annotations

import math

import numpy as np

from weft.ir.dtype import float64
from weft.ir.node import Value
from weft.ops.declaration import Face, catalogue, constant_of
from weft.ops.declaration.memory_check import check_room
from weft.ops.declaration.rule import concrete
from weft.ops.shape.creation import iota
from weft.ops.special.gamma import betaln

__all__ = [
    "beta", "boxcox", "boxcox1p", "comb", "factorial", "gamma", "gammasgn", "kl_div",
    "multigammaln", "poch", "rel_entr", "rgamma", "xlog1py",
]  # fmt: skip


def _number(value: float, like: Value) -> Value:
    return constant_of(np.array(value, like.dtype.numpy))


@Face(torch="", scipy="gammasgn")
def gammasgn(x: Value) -> Value:
    """The sign of `gamma`."""
    below = catalogue.floor(x)
    odd = catalogue.not_equal(catalogue.remainder(below, _number(2, x)), _number(0, x))
    negative = catalogue.logical_and(catalogue.less(x, _number(0, x)), odd)
    return catalogue.select(negative, _number(-1, x), _number(1, x))


@Face(torch="", scipy="gamma", wide=float64)
def gamma(x: Value) -> Value:
    """The gamma function: `(x - 1)!` for integers."""
    found = _gamma_sign_at(x) * catalogue.exp(catalogue.lgamma(x))
    below = catalogue.less(x, _number(0, x))
    pole = catalogue.logical_and(below, catalogue.equal(catalogue.floor(x), x))
    return catalogue.select(pole, _number(math.nan, x), found)


def _gamma_sign_at(x: Value) -> Value:
    """The sign of `gamma`; at 0 it is the sign of the zero."""
    zero = catalogue.equal(x, _number(0, x))
    return catalogue.select(zero, catalogue.copysign(_number(1, x), x), gammasgn(x))


@Face(torch="", scipy="rgamma", wide=float64)
def rgamma(x: Value) -> Value:
    """1 divided by `gamma`."""
    return gammasgn(x) * catalogue.exp(-catalogue.lgamma(x))


@Face(torch="", scipy="beta", wide=float64)
def beta(x: Value, y: Value) -> Value:
    """`gamma(x) * gamma(y) / gamma(x + y)`."""
    return _sign_of_three(x, y) * catalogue.exp(betaln(x, y))


def _sign_of_three(x: Value, y: Value) -> Value:
    return gammasgn(x) * gammasgn(y) * gammasgn(x + y)


def multigammaln(a: Value, *, d: int) -> Value:
    """The logarithm of the multivariate gamma function of `d` dimensions."""
    wide = (*concrete(a), d)
    check_room("multigammaln", wide, a.dtype)
    steps = iota(shape=(d,), dtype=a.dtype) * _number(0.5, a)
    terms = catalogue.lgamma(catalogue.expand_dims(a, axis=-1) - steps)
    total = catalogue.sum(terms, axes=(len(wide) - 1,))
    return total + _number(0.25 * d * (d - 1) * math.log(math.pi), a)


@Face(torch="", special="xlog1py", scipy="xlog1py")
def xlog1py(x: Value, y: Value) -> Value:
    """`x * log1p(y)`, and 0 where `x` is 0, unless `y` is NaN."""
    zero = _number(0, x)
    infinite = catalogue.equal(y, _number(math.inf, y))
    without = catalogue.logical_or(catalogue.less_equal(y, _number(-1, y)), infinite)
    none = catalogue.logical_and(catalogue.equal(x, zero), without)
    return catalogue.select(none, zero * x, x * catalogue.log1p(catalogue.select(none, zero, y)))


@Face(torch="", scipy="factorial", wide=float64)
def factorial(n: Value) -> Value:
    """The factorial: the gamma function of `n + 1`, and 0 for negative numbers."""
    return catalogue.select(catalogue.less(n, _number(0, n)), _number(0, n), gamma(n + 1))


@Face(torch="", scipy="comb", wide=float64)
def comb(n: Value, k: Value) -> Value:
    """The number of ways to choose `k` of `n`."""
    parts = [catalogue.lgamma(v + 1) for v in (n, k, n - k)]
    outside = [catalogue.less(n, k), *[catalogue.less(v, _number(0, v)) for v in (n, k)]]
    none = catalogue.logical_or(outside[0], catalogue.logical_or(outside[1], outside[2]))
    return catalogue.select(none, _number(0, n), catalogue.exp(parts[0] - parts[1] - parts[2]))


@Face(torch="", scipy="poch", wide=float64)
def poch(z: Value, m: Value) -> Value:
    """The rising factorial: `gamma(z + m) / gamma(z)`."""
    sizes = catalogue.lgamma(z + m) - catalogue.lgamma(z)
    found = gammasgn(z + m) * gammasgn(z) * catalogue.exp(sizes)
    return catalogue.select(catalogue.equal(m, _number(0, m)), _number(1, z), found)


def _of_positives(x: Value, y: Value, found: Value, at_zero: Value) -> Value:
    """`found` for positive numbers, `at_zero` where `x` is 0, and infinity elsewhere."""
    zero = _number(0, x)
    positive = catalogue.logical_and(catalogue.greater(x, zero), catalogue.greater(y, zero))
    none = catalogue.logical_and(catalogue.equal(x, zero), catalogue.greater_equal(y, zero))
    return catalogue.select(positive, found, catalogue.select(none, at_zero, _number(math.inf, x)))


def _log_ratio(x: Value, y: Value) -> Value:
    positive = [
        catalogue.select(catalogue.greater(v, _number(0, v)), v, _number(1, v)) for v in (x, y)
    ]
    return catalogue.log(positive[0] / positive[1])


@Face(torch="", scipy="rel_entr")
def rel_entr(x: Value, y: Value) -> Value:
    """`x * log(x / y)`, the terms of the relative entropy; 0 where `x` is 0."""
    return _of_positives(x, y, x * _log_ratio(x, y), _number(0, x))


@Face(torch="", scipy="kl_div")
def kl_div(x: Value, y: Value) -> Value:
    """`x * log(x / y) - x + y`, and `y` where `x` is 0."""
    return _of_positives(x, y, x * _log_ratio(x, y) - x + y, y)


@Face(torch="", scipy="boxcox")
def boxcox(x: Value, lmbda: Value) -> Value:
    """`(x ** lmbda - 1) / lmbda`, which is `log(x)` for 0."""
    return _powers(catalogue.log(x), lmbda)


@Face(torch="", scipy="boxcox1p")
def boxcox1p(x: Value, lmbda: Value) -> Value:
    """`boxcox` of `1 + x`."""
    return _powers(catalogue.log1p(x), lmbda)


def _powers(log: Value, lmbda: Value) -> Value:
    flat = catalogue.equal(lmbda, _number(0, lmbda))
    power = catalogue.select(flat, _number(1, lmbda), lmbda)
    near = log + lmbda * log * log * _number(0.5, lmbda)  # has the slope at 0
    return catalogue.select(flat, near, catalogue.expm1(power * log) / power)

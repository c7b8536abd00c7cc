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

__all__ = ["beta", "gamma", "gammasgn", "multigammaln", "rgamma", "xlog1py"]


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

"""Distributions with a location and a scale, from their standard forms, as graph nodes."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Final, NamedTuple

from weft.ir.node import Value
from weft.ops.declaration import catalogue, constant_of
from weft.ops.elementwise.piecewise_activation import log_sigmoid
from weft.ops.shape.creation import full_like

__all__: list[str] = []
Formula = Callable[[Value], Value]


class Standard(NamedTuple):
    """A distribution at location 0 and scale 1."""

    log_density: Formula
    cumulative: Formula
    quantile: Formula


def _from_zero(z: Value, y: Value, below: float) -> Value:
    """`y` where z >= 0, and a number elsewhere."""
    return catalogue.select(catalogue.less(z, 0.0), full_like(y, below), y)


def _two_sided(z: Value) -> Value:
    tail = catalogue.exp(-catalogue.abs(z)) / 2.0
    return catalogue.select(catalogue.less(z, 0.0), tail, 1.0 - tail)


def _log1m(q: Value) -> Value:
    return catalogue.log1p(-q)


STANDARD: Final = {
    "laplace": Standard(
        lambda z: -catalogue.abs(z) - math.log(2),
        _two_sided,
        lambda q: -catalogue.sign(q - 0.5) * _log1m(2.0 * catalogue.abs(q - 0.5)),
    ),
    "logistic": Standard(
        lambda z: log_sigmoid(z) + log_sigmoid(-z),
        lambda z: catalogue.sigmoid(z),
        lambda q: catalogue.log(q) - _log1m(q),
    ),
    "cauchy": Standard(
        lambda z: -catalogue.log1p(z * z) - math.log(math.pi),
        lambda z: catalogue.atan(z) / math.pi + 0.5,
        lambda q: catalogue.tan(math.pi * (q - 0.5)),
    ),
    "expon": Standard(
        lambda z: _from_zero(z, -z, -math.inf),
        lambda z: _from_zero(z, -catalogue.expm1(-z), 0.0),
        lambda q: -_log1m(q),
    ),
    "uniform": Standard(
        lambda z: _from_zero(z, _from_zero(1.0 - z, z * 0.0, -math.inf), -math.inf),
        lambda z: catalogue.minimum(catalogue.maximum(z, 0.0), 1.0),
        lambda q: q * 1.0,
    ),
    "gumbel_r": Standard(
        lambda z: -z - catalogue.exp(-z),
        lambda z: catalogue.exp(-catalogue.exp(-z)),
        lambda q: -catalogue.log(-catalogue.log(q)),
    ),
    "gumbel_l": Standard(
        lambda z: z - catalogue.exp(z),
        lambda z: -catalogue.expm1(-catalogue.exp(z)),
        lambda q: catalogue.log(-_log1m(q)),
    ),
}


def _density(kind: Standard, x: Value, loc: Value, scale: Value) -> Value:
    return kind.log_density((x - loc) / scale) - catalogue.log(scale)


def _cumulative(kind: Standard, x: Value, loc: Value, scale: Value) -> Value:
    return kind.cumulative((x - loc) / scale)


def _quantile(kind: Standard, q: Value, loc: Value, scale: Value) -> Value:
    return kind.quantile(q) * scale + loc


FUNCTIONS: Final = {
    "logpdf": _density,
    "pdf": lambda *given: catalogue.exp(_density(*given)),
    "cdf": _cumulative,
    "sf": lambda *given: 1.0 - _cumulative(*given),
    "logcdf": lambda *given: catalogue.log(_cumulative(*given)),
    "logsf": lambda *given: _log1m(_cumulative(*given)),
    "ppf": _quantile,
    "isf": lambda kind, q, *given: _quantile(kind, 1.0 - q, *given),
}
"""The functions of a distribution, of (x, loc, scale)."""


def function(kind: str, name: str) -> Callable[..., Value]:
    """A function of a distribution of this name."""
    return functools.partial(FUNCTIONS[name], STANDARD[kind])


def pareto(x: Value, b: Value) -> Value:
    """The log density of the Pareto distribution with shape `b`, from 1 on."""
    return _from_zero(x - 1.0, catalogue.log(b) - (b + 1.0) * catalogue.log(x), -math.inf)


def bernoulli(k: Value, p: Value) -> Value:
    """The log probability of 0 or 1, at `k`."""
    found = catalogue.select(catalogue.greater(k, 0.5), catalogue.log(p), _log1m(p))
    outside = catalogue.not_equal((k - 0.5) * (k - 0.5), 0.25)
    return catalogue.select(outside, full_like(found, -math.inf), found)


def geometric(k: Value, p: Value) -> Value:
    """The log probability that the first success is that of trial `k`."""
    return _from_zero(k - 1.0, (k - 1.0) * _log1m(p) + catalogue.log(p), -math.inf)


def placed(x: Value, *rest: Value, density: Callable[..., Value], exp: bool) -> Value:
    """A log density for shapes, or its exponential, with a location and a scale, the last two."""
    *shapes, loc, scale = rest
    found = density((x - loc) / scale, *shapes) - catalogue.log(scale)
    return catalogue.exp(found) if exp else found


def in_support(x: Value, loc: Value, scale: Value, *, high: float) -> Value:
    """What lies at `x` of location 0 and scale 1, between 0 and `high`."""
    limits = [constant_of(limit, x.dtype) for limit in (0, high)]
    return catalogue.minimum(catalogue.maximum((x - loc) / scale, limits[0]), limits[1])

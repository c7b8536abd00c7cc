"""Log densities, for numbers of one floating-point dtype."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from weft.ir.dtype import float64
from weft.ir.node import Value
from weft.ops.declaration import catalogue, constant_of
from weft.ops.declaration.rule import concrete
from weft.ops.linalg import factorization, inversion
from weft.ops.reduction.statistic import in_float32, in_wider
from weft.ops.special.composite import xlog1py
from weft.ops.special.gamma import betaln as exact_betaln
from weft.ops.special.real import xlogy

_LOG_TURN: Final = math.log(2 * math.pi)
_TINY: Final = 1e6 * 2.0**-52
"""Eigenvalues up to this fraction of the largest one count as 0, as in SciPy."""

gammaln: Final = in_float32(lambda x: catalogue.lgamma(x))
betaln: Final = in_wider(float64, exact_betaln)
_xlogy: Final = in_float32(xlogy)
_xlog1py: Final = in_float32(xlog1py)


def normal(away: Value, scale: Value) -> Value:
    """The normal distribution with this deviation, at this distance from the mean."""
    return catalogue.square(away / scale) * -0.5 - 0.5 * _LOG_TURN - catalogue.log(scale)


def student(away: Value, df: Value, scale: Value) -> Value:
    """Student's t distribution with `df` degrees of freedom, at this distance from the center."""
    z = away / scale
    total = gammaln((df + 1.0) / 2.0) - gammaln(df / 2.0) - catalogue.log(df * math.pi) / 2.0
    return total - (df + 1.0) / 2.0 * catalogue.log1p(z * z / df) - catalogue.log(scale)


def beta(x: Value, a: Value, b: Value) -> Value:
    """The beta distribution with shapes `a` and `b`."""
    return _xlogy(a - 1.0, x) + _xlog1py(b - 1.0, -x) - betaln(a, b)


def gamma(x: Value, a: Value) -> Value:
    """The gamma distribution with shape `a` and rate 1."""
    return _xlogy(a - 1.0, x) - x - gammaln(a)


def chi2(x: Value, df: Value) -> Value:
    """The chi-squared distribution with `df` degrees of freedom."""
    half = df / 2.0
    return (half - 1.0) * catalogue.log(x) - x / 2.0 - gammaln(half) - half * math.log(2)


def poisson(k: Value, mu: Value) -> Value:
    """The Poisson distribution with mean `mu`, at `k`."""
    return _xlogy(k, mu) - gammaln(k + 1.0) - mu


def within(
    density: Callable[..., Value], low: float, high: float, whole: bool = False
) -> Callable[..., Value]:
    """A log density that is minus infinity outside [low, high], or for what is not `whole`."""

    def of(x: Value, *shapes: Value) -> Value:
        limits = [constant_of(limit, x.dtype) for limit in (low, high)]
        outside = catalogue.logical_or(
            catalogue.less(x, limits[0]), catalogue.greater(x, limits[1])
        )
        if whole:
            outside = catalogue.logical_or(outside, catalogue.not_equal(x, catalogue.floor(x)))
        found = density(catalogue.select(outside, constant_of(low + 1, x.dtype), x), *shapes)
        return catalogue.select(outside, constant_of(-math.inf, found.dtype), found)

    return of


beta_within: Final = within(beta, 0, 1)
gamma_within: Final = within(gamma, 0, math.inf)
chi2_within: Final = within(chi2, 0, math.inf)
poisson_within: Final = within(poisson, 0, math.inf, whole=True)


def dirichlet(x: Value, alpha: Value) -> Value:
    """The Dirichlet distribution, with parts along the last axis."""
    whole = gammaln(catalogue.sum(alpha, axes=(-1,))) - catalogue.sum(gammaln(alpha), axes=(-1,))
    return whole + catalogue.sum(_xlogy(alpha - 1.0, x), axes=(-1,))


def normal_of_several(away: Value, covariances: Value) -> Value:
    """The multivariate normal distribution of rows, at these distances from the mean."""
    size = concrete(away)[-1]
    solved = inversion.solve(covariances, catalogue.transpose(away, perm=(1, 0)))
    distance = catalogue.sum(away * catalogue.transpose(solved, perm=(1, 0)), axes=(-1,))
    return (distance + inversion.slogdet(covariances)[1] + size * _LOG_TURN) * -0.5


def singular_normal(away: Value, covariances: Value) -> Value:
    """`normal_of_several` for singular covariances: directions without variance are ignored."""
    values, vectors = factorization.eigh(covariances, "L")
    values, vectors = (catalogue.stop_gradient(v) for v in (values, vectors))
    there = catalogue.greater(values, catalogue.max(values) * _TINY)
    zero, one = constant_of(0, values.dtype), constant_of(1, values.dtype)
    safe = catalogue.select(there, values, one)
    turned = catalogue.matmul(away, vectors)
    distances = catalogue.select(there, turned * turned / safe, zero)
    rank = catalogue.sum(catalogue.cast(there, dtype=values.dtype))
    rest = catalogue.sum(catalogue.log(safe)) + rank * _LOG_TURN
    return (catalogue.sum(distances, axes=(-1,)) + rest) * -0.5


def entropy_of_several(covariances: Value) -> Any:
    """The entropy of the multivariate normal distribution."""
    size = concrete(covariances)[-1]
    return (inversion.slogdet(covariances)[1] + size * (1 + _LOG_TURN)) * 0.5


def normal_cross_entropy(away: Value, scale: Value, other: Value) -> Value:
    """Minus the mean of the log density of a normal distribution under another one.

    Args:
        away: between the means.
        scale: the deviation of the one that values come from.
        other: that of the one whose density is meant.
    """
    return catalogue.square(scale / other) * 0.5 - normal(away, other)


def uniform(x: Value, low: Value, high: Value) -> Value:
    """The uniform distribution from `low` to `high`, which does not count."""
    inside = catalogue.logical_and(catalogue.greater_equal(x, low), catalogue.less(x, high))
    return catalogue.select(inside, -catalogue.log(high - low), constant_of(-math.inf, x.dtype))

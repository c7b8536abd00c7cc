"""Student's t distribution."""

from __future__ import annotations

from typing import Any

from weft.eager.tensor.dispatch import recorded
from weft.numpy.convert import alike, floats
from weft.numpy.elementwise import exp, log
from weft.numpy.searching import where
from weft.ops.random import density
from weft.scipy.special import betainc

__all__ = ["cdf", "logcdf", "logpdf", "pdf"]


def logpdf(x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The log density for `df` degrees of freedom."""
    return _logpdf(*alike(floats(x) - loc, floats(df), floats(scale)))


_logpdf = recorded(density.student)


def pdf(x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The density for `df` degrees of freedom."""
    return exp(logpdf(x, df, loc, scale))


def cdf(x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The cumulative distribution function; not differentiable in `df`."""
    y, n, s = alike(floats(x) - loc, floats(df), floats(scale))
    z = y / s
    square = z * z
    # The smaller of x and 1 - x keeps its digits.
    inner = where(square < n, square / (n + square), n / (n + square))
    half = floats(0.5)
    near = betainc(half, n / 2, where(square < n, inner, 0.5))
    far = betainc(n / 2, half, where(square < n, 0.5, inner))
    tail = where(square < n, 0.5 - near / 2, far / 2)
    return where(z < 0, tail, 1 - tail)


def logcdf(x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The logarithm of `cdf`."""
    return log(cdf(x, df, loc, scale))

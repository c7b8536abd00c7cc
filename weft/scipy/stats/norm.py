"""The normal distribution."""

from __future__ import annotations

from typing import Any

from weft.eager.tensor.dispatch import recorded
from weft.numpy.convert import alike, floats
from weft.numpy.elementwise import exp
from weft.ops.random import density
from weft.scipy.special import log_ndtr, ndtr, ndtri

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def _standard(x: Any, loc: Any, scale: Any) -> Any:
    return (floats(x) - loc) / floats(scale)


def logpdf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The log density."""
    return _logpdf(*alike(floats(x) - loc, floats(scale)))


_logpdf = recorded(density.normal)


def pdf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The density."""
    return exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The cumulative distribution function."""
    return ndtr(_standard(x, loc, scale))


def sf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The survival function, `1 - cdf`."""
    return ndtr(-_standard(x, loc, scale))


def logcdf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The logarithm of `cdf`."""
    return log_ndtr(_standard(x, loc, scale))


def logsf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The logarithm of `sf`."""
    return log_ndtr(-_standard(x, loc, scale))


def ppf(q: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The quantile function, the inverse of `cdf`."""
    return ndtri(q) * floats(scale) + loc


def isf(q: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The inverse of `sf`."""
    return ppf(q, loc, -floats(scale))

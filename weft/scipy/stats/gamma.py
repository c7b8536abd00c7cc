"""The gamma distribution with rate 1."""

from __future__ import annotations

from typing import Any

from weft.numpy.convert import alike, floats
from weft.numpy.elementwise import exp, log
from weft.scipy.special import gammainc, gammaln

__all__ = ["cdf", "logpdf", "pdf"]


def logpdf(x: Any, a: Any) -> Any:
    """The logarithm of the density of the shape `a`."""
    y, b = alike(floats(x), floats(a))
    return (b - 1) * log(y) - y - gammaln(b)


def pdf(x: Any, a: Any) -> Any:
    """The density of the shape `a`."""
    return exp(logpdf(x, a))


def cdf(x: Any, a: Any) -> Any:
    """The probability of at most `x`; its gradient is by `x` only."""
    return gammainc(a, x)

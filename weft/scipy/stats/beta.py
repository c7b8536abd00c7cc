"""The beta distribution."""

from __future__ import annotations

from typing import Any

from weft.numpy.convert import alike, floats
from weft.numpy.elementwise import exp, log, log1p
from weft.scipy.special import betainc, betaln

__all__ = ["cdf", "logpdf", "pdf"]


def logpdf(x: Any, a: Any, b: Any) -> Any:
    """The logarithm of the density of the shapes `a` and `b`."""
    y, p, q = alike(floats(x), floats(a), floats(b))
    return (p - 1) * log(y) + (q - 1) * log1p(-y) - betaln(p, q)


def pdf(x: Any, a: Any, b: Any) -> Any:
    """The density of the shapes `a` and `b`."""
    return exp(logpdf(x, a, b))


def cdf(x: Any, a: Any, b: Any) -> Any:
    """The probability of at most `x`; its gradient is by `x` only."""
    return betainc(a, b, x)

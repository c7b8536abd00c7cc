"""The chi-squared distribution: of sums of squares of normal numbers."""

from __future__ import annotations

import math
from typing import Any

from weft.numpy.convert import alike, floats
from weft.numpy.elementwise import exp, log
from weft.scipy.special import gammainc, gammaln

__all__ = ["cdf", "logpdf", "pdf"]


def logpdf(x: Any, df: Any) -> Any:
    """The logarithm of the density of `df` degrees of freedom."""
    y, n = alike(floats(x), floats(df))
    half = n / 2
    return (half - 1) * log(y) - y / 2 - gammaln(half) - half * math.log(2)


def pdf(x: Any, df: Any) -> Any:
    """The density of `df` degrees of freedom."""
    return exp(logpdf(x, df))


def cdf(x: Any, df: Any) -> Any:
    """The probability of at most `x`; its gradient is by `x` only."""
    return gammainc(floats(df) / 2, floats(x) / 2)

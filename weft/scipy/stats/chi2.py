"""The chi-squared distribution."""

from __future__ import annotations

from typing import Any

from weft.eager.tensor.dispatch import recorded
from weft.numpy.convert import alike, floats
from weft.numpy.elementwise import exp
from weft.ops.random import density
from weft.scipy.special import gammainc

__all__ = ["cdf", "logpdf", "pdf"]


def logpdf(x: Any, df: Any) -> Any:
    """The log density for `df` degrees of freedom."""
    return _logpdf(*alike(floats(x), floats(df)))


_logpdf = recorded(density.chi2)


def pdf(x: Any, df: Any) -> Any:
    """The density for `df` degrees of freedom."""
    return exp(logpdf(x, df))


def cdf(x: Any, df: Any) -> Any:
    """The cumulative distribution function; differentiable in `x` only."""
    return gammainc(floats(df) / 2, floats(x) / 2)

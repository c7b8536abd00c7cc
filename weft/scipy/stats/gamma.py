"""The gamma distribution with rate 1."""

from __future__ import annotations

from typing import Any

from weft.eager.tensor.dispatch import recorded
from weft.numpy.convert import alike, floats
from weft.numpy.elementwise import exp
from weft.ops.random import density
from weft.scipy.special import gammainc

__all__ = ["cdf", "logpdf", "pdf"]


def logpdf(x: Any, a: Any) -> Any:
    """The log density for shape `a`."""
    return _logpdf(*alike(floats(x), floats(a)))


_logpdf = recorded(density.gamma)


def pdf(x: Any, a: Any) -> Any:
    """The density for shape `a`."""
    return exp(logpdf(x, a))


def cdf(x: Any, a: Any) -> Any:
    """The cumulative distribution function; differentiable in `x` only."""
    return gammainc(a, x)

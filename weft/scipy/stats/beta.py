"""The beta distribution."""

from __future__ import annotations

from typing import Any

from weft.eager.tensor.dispatch import recorded
from weft.numpy.convert import alike, floats
from weft.numpy.elementwise import exp
from weft.ops.random import density
from weft.scipy.special import betainc

__all__ = ["cdf", "logpdf", "pdf"]


def logpdf(x: Any, a: Any, b: Any) -> Any:
    """The log density for shapes `a` and `b`."""
    return _logpdf(*alike(floats(x), floats(a), floats(b)))


_logpdf = recorded(density.beta)


def pdf(x: Any, a: Any, b: Any) -> Any:
    """The density for shapes `a` and `b`."""
    return exp(logpdf(x, a, b))


def cdf(x: Any, a: Any, b: Any) -> Any:
    """The cumulative distribution function; differentiable in `x` only."""
    return betainc(a, b, x)

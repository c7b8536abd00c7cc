"""The Poisson distribution."""

from __future__ import annotations

from typing import Any

from weft.eager.tensor.dispatch import recorded
from weft.numpy.convert import alike, floats
from weft.numpy.elementwise import exp, floor
from weft.ops.random import density
from weft.scipy.special import gammaincc

__all__ = ["cdf", "logpmf", "pmf"]


def logpmf(k: Any, mu: Any) -> Any:
    """The log probability of `k` events for mean `mu`."""
    return _logpmf(*alike(floats(k), floats(mu)))


_logpmf = recorded(density.poisson_within)


def pmf(k: Any, mu: Any) -> Any:
    """The probability of `k` events for mean `mu`."""
    return exp(logpmf(k, mu))


def cdf(k: Any, mu: Any) -> Any:
    """The cumulative distribution function; differentiable in `mu` only."""
    below: Any = floor(floats(k))
    return gammaincc(below + 1, mu)

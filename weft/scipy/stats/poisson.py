"""The Poisson distribution: of the number of events."""

from __future__ import annotations

from typing import Any

from weft.eager.tensor.dispatch import recorded
from weft.numpy.convert import alike, floats
from weft.numpy.elementwise import exp, floor
from weft.ops.random import density
from weft.scipy.special import gammaincc

__all__ = ["cdf", "logpmf", "pmf"]


def logpmf(k: Any, mu: Any) -> Any:
    """The logarithm of the probability of `k` events where `mu` are expected."""
    return _logpmf(*alike(floats(k), floats(mu)))


_logpmf = recorded(density.poisson)


def pmf(k: Any, mu: Any) -> Any:
    """The probability of `k` events where `mu` are expected."""
    return exp(logpmf(k, mu))


def cdf(k: Any, mu: Any) -> Any:
    """The probability of at most `k` events; its gradient is by `mu` only."""
    below: Any = floor(floats(k))
    return gammaincc(below + 1, mu)

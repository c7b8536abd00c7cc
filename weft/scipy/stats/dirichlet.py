"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.numpy.convert import alike, floats, hosted
from weft.numpy.elementwise import exp, log
from weft.numpy.statistical import sum
from weft.scipy.special import gammaln

__all__ = ["logpdf", "pdf", "rvs"]


def logpdf(x: Any, alpha: Any) -> Any:
    """The logarithm of the density at parts `x`, which lie along the first axis."""
    y, a = alike(floats(x), floats(alpha))
    whole: Any = gammaln(sum(a))
    return whole - sum(gammaln(a)) + sum(((a - 1) * log(y).T).T, 0)


def pdf(x: Any, alpha: Any) -> Any:
    """The density at parts `x`."""
    return exp(logpdf(x, alpha))


def rvs(alpha: Any, size: Any = 1) -> Any:
    """Random parts, from NumPy's generator."""
    return hosted(lambda a: np.random.dirichlet(a, size), floats(alpha))

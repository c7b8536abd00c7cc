"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.eager.tensor.dispatch import recorded
from weft.numpy.convert import alike, floats, hosted
from weft.numpy.elementwise import exp
from weft.numpy.manipulation import moveaxis
from weft.ops.random import density

__all__ = ["logpdf", "pdf", "rvs"]


def logpdf(x: Any, alpha: Any) -> Any:
    """The log density at `x`, whose parts lie along the first axis."""
    return _logpdf(*alike(moveaxis(floats(x), 0, -1), floats(alpha)))


_logpdf = recorded(density.dirichlet)


def pdf(x: Any, alpha: Any) -> Any:
    """The density at `x`, whose parts lie along the first axis."""
    return exp(logpdf(x, alpha))


def rvs(alpha: Any, size: Any = 1) -> Any:
    """Random samples, from NumPy's generator."""
    return hosted(lambda a: np.random.dirichlet(a, size), floats(alpha))

"""The chi-squared distribution."""

from __future__ import annotations

import math
from typing import Any

from weft.eager.tensor.dispatch import recorded
from weft.numpy.convert import alike, floats
from weft.ops.random import density, standard
from weft.scipy.special import gammainc

__all__ = ["cdf", "logpdf", "pdf"]

_density, _place = recorded(standard.placed), recorded(standard.in_support)


def logpdf(x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The log density for `df` degrees of freedom."""
    given = alike(floats(x), floats(df), floats(loc), floats(scale))
    return _density(*given, density=density.chi2_within, exp=False)


def pdf(x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The density for `df` degrees of freedom."""
    given = alike(floats(x), floats(df), floats(loc), floats(scale))
    return _density(*given, density=density.chi2_within, exp=True)


def cdf(x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The cumulative distribution function; differentiable in `x` only."""
    return gammainc(
        floats(df) / 2, _place(*alike(floats(x), floats(loc), floats(scale)), high=math.inf) / 2
    )

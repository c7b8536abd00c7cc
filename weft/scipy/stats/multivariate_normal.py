"""The normal distribution of several variables."""

from __future__ import annotations

import math
from typing import Any

from weft.numpy.convert import floats
from weft.numpy.creation import eye
from weft.numpy.elementwise import exp, log
from weft.numpy.linalg import eigh, slogdet
from weft.numpy.linalg import solve as solve_system
from weft.numpy.manipulation import ndim
from weft.numpy.product import matmul
from weft.numpy.searching import where
from weft.numpy.statistical import sum

__all__ = ["entropy", "logpdf", "pdf"]

_LOG = math.log(2 * math.pi)
_TINY = 1e6 * 2.0**-52  # eigenvalues up to this part of the largest one count as 0, as in SciPy


def _matrix(cov: Any, size: int) -> Any:
    """A covariance given as a matrix, as variances, or as one variance."""
    c: Any = floats(cov)
    return c if ndim(c) == 2 else c * eye(size, dtype=c.dtype)


def logpdf(x: Any, mean: Any = 0.0, cov: Any = 1.0, allow_singular: bool = False) -> Any:
    """The logarithm of the density; the variables lie along the last axis.

    Args:
        allow_singular: directions in which nothing varies do not count; it looks at `cov`.
    """
    away: Any = floats(x) - mean
    size = away.shape[-1] if away.ndim else 1
    away = away if away.ndim else away.reshape((1,))
    c = _matrix(cov, size)
    if allow_singular:
        return _singular(away, c)
    flat: Any = away.reshape((-1, size))
    solved: Any = solve_system(c, flat.T)
    distance: Any = sum(flat * solved.T, -1)
    found: Any = (distance + slogdet(c).logabsdet + size * _LOG) * -0.5
    return found.reshape(away.shape[:-1])


def _singular(away: Any, cov: Any) -> Any:
    values, vectors = eigh(cov)
    values = values.detach()
    there: Any = values > values.max() * _TINY
    safe: Any = where(there, values, 1.0)
    turned: Any = matmul(away, vectors.detach())
    distance: Any = sum(where(there, turned * turned / safe, 0.0), -1)
    rank = sum(there.astype(cov.dtype))
    return (distance + sum(log(safe)) + rank * _LOG) * -0.5


def pdf(x: Any, mean: Any = 0.0, cov: Any = 1.0, allow_singular: bool = False) -> Any:
    """The density; the variables lie along the last axis."""
    return exp(logpdf(x, mean, cov, allow_singular))


def entropy(mean: Any = None, cov: Any = 1.0) -> Any:
    """The entropy, which does not depend on the mean."""
    size = 1 if mean is None or not ndim(mean) else len(mean)
    c = _matrix(cov, size)
    found: Any = slogdet(c).logabsdet
    return (found + c.shape[-1] * (1 + _LOG)) * 0.5

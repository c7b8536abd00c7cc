"""The multivariate normal distribution."""

from __future__ import annotations

from typing import Any

from weft.eager.functions.linalg.lapack import by_lapack
from weft.eager.tensor.dispatch import recorded
from weft.numpy.convert import alike, floats
from weft.numpy.creation import eye
from weft.numpy.elementwise import exp
from weft.numpy.manipulation import ndim
from weft.ops.random import density

__all__ = ["entropy", "logpdf", "pdf"]

_logpdf = by_lapack(density.normal_of_several)
_singular = recorded(density.singular_normal)
_entropy = recorded(density.entropy_of_several)


def _matrix(cov: Any, size: int) -> Any:
    """A covariance matrix, from a matrix, variances, or one variance."""
    c: Any = floats(cov)
    return c if ndim(c) == 2 else c * eye(size, dtype=c.dtype)


def logpdf(x: Any, mean: Any = 0.0, cov: Any = 1.0, allow_singular: bool = False) -> Any:
    """The log density; the variables lie along the last axis.

    Args:
        allow_singular: ignore directions without variance.
    """
    away: Any = floats(x) - mean
    size = away.shape[-1] if away.ndim else 1
    away = away if away.ndim else away.reshape((1,))
    c = _matrix(cov, size)
    run = _singular if allow_singular else _logpdf
    return run(*alike(away.reshape((-1, size)), c)).reshape(away.shape[:-1])


def pdf(x: Any, mean: Any = 0.0, cov: Any = 1.0, allow_singular: bool = False) -> Any:
    """The density; the variables lie along the last axis."""
    return exp(logpdf(x, mean, cov, allow_singular))


def entropy(mean: Any = None, cov: Any = 1.0) -> Any:
    """The entropy, which does not depend on the mean."""
    size = 1 if mean is None or not ndim(mean) else len(mean)
    c = _matrix(cov, size)
    return _entropy(c)

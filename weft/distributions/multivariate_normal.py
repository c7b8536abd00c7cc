"""Normal distributions of vectors."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Final

import weft.eager.functions.api as wf
from weft import linalg
from weft.distributions import constraints
from weft.distributions.distribution import Distribution
from weft.distributions.utils import lazy_property
from weft.errors import ArgumentError

__all__ = ["LowRankMultivariateNormal", "MultivariateNormal"]
WAYS: Final = ("covariance_matrix", "precision_matrix", "scale_tril")


def times(matrix: Any, vector: Any) -> Any:
    """Products of matrices and vectors."""
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def squared(matrix: Any) -> Any:
    """The sum of the squares of the elements of matrices: the trace of `m @ m.mT`."""
    return (matrix**2).sum((-2, -1))


def distance(tril: Any, x: Any) -> Any:
    """The squared Mahalanobis distance: `x @ inverse(tril @ tril.mT) @ x`."""
    return squared(linalg.solve_triangular(tril, x.unsqueeze(-1), upper=False))


def half_log_det(tril: Any) -> Any:
    """The logarithm of the determinant of lower triangular matrices."""
    return tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def tril_of_precision(precision: Any) -> Any:
    """The Cholesky factor of the inverse, from that of the matrix with both axes reversed."""
    flipped = linalg.cholesky(precision.flip((-2, -1))).flip((-2, -1)).mT
    one = wf.eye(precision.shape[-1], dtype=precision.dtype)
    return linalg.solve_triangular(flipped, one, upper=False)


class OfCovariance(Distribution):
    """A distribution whose matrix is given in one of three ways."""

    _rank = 1
    scale_tril = lazy_property(lambda d: d._wide(d._unbroadcasted_scale_tril))
    covariance_matrix = lazy_property(
        lambda d: d._wide(d._unbroadcasted_scale_tril @ d._unbroadcasted_scale_tril.mT)
    )
    precision_matrix = lazy_property(
        lambda d: d._wide(wf.cholesky_inverse(d._unbroadcasted_scale_tril))
    )

    def _wide(self, matrix: Any) -> Any:
        return matrix.expand((*self._batch_shape, *matrix.shape[-2:]))

    def _keep(self, name: str, matrix: Any, batch_shape: Any) -> None:
        """Keep the matrix that is given, and its Cholesky factor."""
        roots = {"scale_tril": lambda x: x, "precision_matrix": tril_of_precision}
        root = roots.get(name, linalg.cholesky)
        self._unbroadcasted_scale_tril = root(matrix)
        vars(self)[name] = matrix.expand((*batch_shape, *matrix.shape[-2:]))

    def _one(self, *given: Any) -> tuple[str, Any]:
        """The one of `WAYS` in which the matrix is given, and the matrix."""
        found = [(name, m) for name, m in zip(WAYS, given, strict=True) if m is not None]
        if len(found) != 1 or found[0][1].ndim < 2:
            raise ArgumentError.here(
                f"{type(self).__name__}: expected one of {', '.join(WAYS)}, of rank 2 or more"
            )
        return found[0]


class MultivariateNormal(OfCovariance):
    """The normal distribution of vectors, with a matrix given in one of three ways.

    >>> import weft as wf
    >>> d = wf.distributions.MultivariateNormal(wf.zeros(2), wf.eye(2))
    >>> d.log_prob(wf.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }  # fmt: skip
    support, has_rsample = constraints.real_vector, True
    mean = mode = property(lambda self: self.loc)
    variance = property(
        lambda d: (d._unbroadcasted_scale_tril**2).sum(-1).expand(d._extended_shape())
    )

    def __init__(
        self, loc: Any, covariance_matrix: Any = None, precision_matrix: Any = None,
        scale_tril: Any = None, validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        name, matrix = self._one(covariance_matrix, precision_matrix, scale_tril)
        if loc.ndim < 1 or loc.shape[-1:] * 2 != matrix.shape[-2:]:
            raise ArgumentError.here(
                f"MultivariateNormal: expected loc (..., n) and {name} (..., n, n), got "
                f"{tuple(loc.shape)} and {tuple(matrix.shape)}"
            )
        loc, matrix = self._sound(validate_args, **{"loc": loc, name: matrix}).values()
        batch = wf.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self.loc = loc.expand((*batch, loc.shape[-1]))
        self._keep(name, matrix, batch)
        self._shaped(batch, loc.shape[-1:])

    def _draw(self, shape: Any) -> Any:
        noise = wf.randn(shape, dtype=self.loc.dtype)
        return self.loc + times(self._unbroadcasted_scale_tril, noise)

    def _log_prob(self, value: Any) -> Any:
        tril = self._unbroadcasted_scale_tril
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + distance(tril, value - self.loc)) - half_log_det(tril)

    def _entropy(self) -> Any:
        constant = 0.5 * self._event_shape[0] * math.log(2 * math.pi * math.e)
        return (constant + half_log_det(self._unbroadcasted_scale_tril)).expand(self._batch_shape)


class LowRankMultivariateNormal(Distribution):
    """The normal distribution with the covariance `cov_factor @ cov_factor.mT + diag(cov_diag)`.

    Everything is computed by matrices of the size of its rank.
    """

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support, has_rsample = constraints.real_vector, True
    mean = mode = property(lambda self: self.loc)
    variance = property(lambda self: (self.cov_factor**2).sum(-1) + self.cov_diag)
    covariance_matrix = lazy_property(
        lambda d: d.cov_factor @ d.cov_factor.mT + d.cov_diag.diag_embed()
    )
    precision_matrix = lazy_property(
        lambda d: (1 / d.cov_diag).diag_embed() - d._solved().mT @ d._solved()
    )
    scale_tril = lazy_property(lambda d: linalg.cholesky(d.covariance_matrix))

    def __init__(
        self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None
    ) -> None:
        event = loc.shape[-1:]
        fits = loc.ndim and cov_factor.ndim > 1 and cov_factor.shape[-2:-1] == event
        if not fits or cov_diag.shape[-1:] != event:
            raise ArgumentError.here(
                "LowRankMultivariateNormal: expected loc (..., n), cov_factor (..., n, m) and "
                f"cov_diag (..., n), got {tuple(loc.shape)}, {tuple(cov_factor.shape)} and "
                f"{tuple(cov_diag.shape)}"
            )
        loc, factor, diag = self._sound(
            validate_args, loc=loc, cov_factor=cov_factor, cov_diag=cov_diag
        ).values()
        batch = wf.broadcast_shapes(loc.shape[:-1], factor.shape[:-2], diag.shape[:-1])
        self.loc, self.cov_diag = loc.expand((*batch, *event)), diag.expand((*batch, *event))
        self.cov_factor = factor.expand((*batch, *factor.shape[-2:]))
        scaled = factor.mT / diag.unsqueeze(-2)
        one = wf.eye(factor.shape[-1], dtype=factor.dtype)
        self._capacitance_tril = linalg.cholesky(scaled @ factor + one)
        self._shaped(batch, event)

    def _scaled(self) -> Any:
        return self.cov_factor.mT / self.cov_diag.unsqueeze(-2)

    def _solved(self) -> Any:
        return linalg.solve_triangular(self._capacitance_tril, self._scaled(), upper=False)

    def _log_det(self) -> Any:
        return 2 * half_log_det(self._capacitance_tril) + self.cov_diag.log().sum(-1)

    def _distance(self, x: Any) -> Any:
        near = distance(self._capacitance_tril, times(self._scaled(), x))
        return (x**2 / self.cov_diag).sum(-1) - near

    def _draw(self, shape: Any) -> Any:
        wide = wf.randn((*shape[:-1], self.cov_factor.shape[-1]), dtype=self.loc.dtype)
        noise = self.cov_diag.sqrt() * wf.randn(shape, dtype=self.loc.dtype)
        return self.loc + times(self.cov_factor, wide) + noise

    def _log_prob(self, value: Any) -> Any:
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + self._log_det() + self._distance(value - self.loc))

    def _entropy(self) -> Any:
        constant = self._event_shape[0] * math.log(2 * math.pi * math.e)
        return 0.5 * (constant + self._log_det())

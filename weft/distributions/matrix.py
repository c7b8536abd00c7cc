"""Distributions of matrices."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import weft.eager.functions.api as wf
from weft import linalg
from weft.distributions import constraints, draw
from weft.distributions.distribution import Distribution, ExponentialFamily
from weft.distributions.interval import Beta
from weft.distributions.multivariate_normal import OfCovariance, half_log_det, squared
from weft.distributions.utils import broadcast_all
from weft.errors import ArgumentError
from weft.special import multigammaln

__all__ = ["LKJCholesky", "Wishart"]


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices dim x dim; uniform for a concentration of 1.

    Source: Lewandowski et al., "Generating random correlation matrices based on vines and extended
    onion method", 2009.
    """

    concentration: Any
    arg_constraints: ClassVar[Any] = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ArgumentError.here(f"LKJCholesky: expected dim of 2 or more, got {dim}")
        self.dim = dim
        self._take(validate_args, concentration=concentration)
        self._shaped(self._batch_shape, (dim, dim))

    def _draw(self, shape: Any) -> Any:
        c = self.concentration.unsqueeze(-1)
        row = (wf.arange(self.dim, dtype=c.dtype) - 1).clamp(min=0)
        beta: Any = Beta(row / 2 + 0.5, c + (self.dim - 2 - row) / 2, validate_args=False)
        length = beta._draw(shape[:-1]).unsqueeze(-1)
        noise = wf.randn(shape, dtype=c.dtype).tril(-1)
        tiny = wf.finfo(c.dtype).tiny
        rows = length.sqrt() * noise / (noise**2).sum(-1, True).clamp(min=tiny).sqrt()
        return rows + (1 - (rows**2).sum(-1)).clamp(min=tiny).sqrt().diag_embed()

    def _log_prob(self, value: Any) -> Any:
        n, c = self.dim - 1, self.concentration
        order = 2 * (c.unsqueeze(-1) - 1) + wf.arange(n - 1, -1, -1, dtype=c.dtype)
        free = (order * value.diagonal(dim1=-2, dim2=-1)[..., 1:].log()).sum(-1)
        a = c + n / 2
        return free - 0.5 * n * math.log(math.pi) - multigammaln(a - 0.5, n) + a.lgamma() * n


class Wishart(ExponentialFamily, OfCovariance):
    """Sums of `df` products `x @ x.mT` of normally distributed vectors, if `df` is whole."""

    support, has_rsample = constraints.positive_definite, True
    _mean_carrier_measure = 0.0
    _size = property(lambda self: self._event_shape[-1])

    @property
    def arg_constraints(self) -> Any:
        """Where each parameter lies."""
        definite = constraints.positive_definite
        return {
            "covariance_matrix": definite, "precision_matrix": definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self._size - 1),
        }  # fmt: skip

    def __init__(
        self, df: Any, covariance_matrix: Any = None, precision_matrix: Any = None,
        scale_tril: Any = None, validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        name, matrix = self._one(covariance_matrix, precision_matrix, scale_tril)
        self._shaped((), matrix.shape[-2:])
        df, matrix = self._sound(validate_args, **{"df": df, name: matrix}).values()
        batch = wf.broadcast_shapes(matrix.shape[:-2], getattr(df, "shape", ()))
        self.df = broadcast_all(df, matrix.new_zeros(batch))[0]
        self._keep(name, matrix, batch)
        self._shaped(batch, matrix.shape[-2:])

    def _degrees(self) -> Any:
        return self.df.unsqueeze(-1) - wf.arange(self._size, dtype=self.df.dtype)

    @property
    def mean(self) -> Any:
        """`df` times the covariance."""
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Any:
        """NaN for `df` up to n + 1."""
        factor = self.df - self._size - 1
        return wf.where(factor > 0, factor, math.nan)[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Any:
        """The variance of each element."""
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        spread = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df[..., None, None] * (v**2 + spread)

    def _draw(self, shape: Any) -> Any:
        # Bartlett's decomposition
        half = self._degrees() / 2
        eps = wf.finfo(half.dtype).eps
        roots = (2 * draw.log_gamma(half, shape[:-1]).exp()).sqrt().clamp(min=eps)
        noise = wf.randn(shape, dtype=half.dtype).tril(-1) + roots.diag_embed()
        root = self._unbroadcasted_scale_tril @ noise
        return root @ root.mT

    def _log_prob(self, value: Any) -> Any:
        n, tril = self._size, self._unbroadcasted_scale_tril
        root = linalg.cholesky(value)
        near = squared(linalg.solve_triangular(tril, root, upper=False)) / 2
        free = (self.df - n - 1) * half_log_det(root) - near
        whole = self.df * (n * math.log(2) / 2 + half_log_det(tril))
        return free - whole - multigammaln(self.df / 2, n)

    def _entropy(self) -> Any:
        n, tril = self._size, self._unbroadcasted_scale_tril
        means = (self._degrees() / 2).digamma().sum(-1)
        whole = (n + 1) * (n * math.log(2) / 2 + half_log_det(tril)) + self.df * n / 2
        return whole + multigammaln(self.df / 2, n) - (self.df - n - 1) / 2 * means

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return -self.precision_matrix / 2, (self.df - self._size - 1) / 2

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        half = y + (self._size + 1) / 2
        return half * (self._size * math.log(2) - linalg.slogdet(-2 * x)[1]) + multigammaln(
            half, self._size
        )

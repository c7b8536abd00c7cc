"""Transforms of vectors and matrices."""

from __future__ import annotations

import math
from typing import Any

import weft.eager.functions.api as wf
from weft import linalg
from weft.distributions import constraints
from weft.distributions.transforms.scalar import clipped_sigmoid
from weft.distributions.transforms.transform import Alike
from weft.distributions.utils import formula, tril_matrix_to_vec, vec_to_tril_matrix
from weft.errors import ShapeError

__all__ = [
    "CorrCholeskyTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform",
    "SoftmaxTransform", "StickBreakingTransform",
]  # fmt: skip


def _fits(good: bool, expected: str, shape: Any) -> None:
    if not good:
        raise ShapeError.here(f"transform: expected {expected}, got {tuple(shape)}")


def _vectors(shape: Any, more: int = 0) -> Any:
    _fits(len(shape) > 0, "vectors", shape)
    return (*shape[:-1], shape[-1] + more)


def _after_one(x: Any) -> Any:
    """The elements along the last axis, moved by one, after a 1."""
    return wf.cat([wf.ones_like(x[..., :1]), x[..., :-1]], -1)


class CorrCholeskyTransform(Alike):
    """Vectors of n (n - 1) / 2 numbers as Cholesky factors of correlation matrices n x n.

    Tanh makes partial correlations of the numbers (Lewandowski et al., 2009); each row of a factor
    is a stick that these break.
    """

    domain, codomain, bijective = constraints.real_vector, constraints.corr_cholesky, True

    def _call(self, x: Any) -> Any:
        eps = wf.finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.tanh().clamp(min=-1 + eps, max=1 - eps), -1)
        rest = (1 - r**2).sqrt().cumprod(-1)
        return (r + wf.eye(r.shape[-1], dtype=r.dtype)) * _after_one(rest)

    def _inverse(self, y: Any) -> Any:
        rest = _after_one(1 - (y * y).cumsum(-1))
        t = tril_matrix_to_vec(y, -1) / tril_matrix_to_vec(rest, -1).sqrt()
        return (t.log1p() - (-t).log1p()) / 2

    def _log_slope(self, x: Any, y: Any) -> Any:
        rest = tril_matrix_to_vec(1 - (y * y).cumsum(-1), -2)
        slopes = x + wf.softplus(-2 * x) - math.log(2.0)
        return 0.5 * rest.log().sum(-1) - 2 * slopes.sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        """The shape of matrices for vectors of this shape."""
        count = shape[-1] if len(shape) else 0
        n = round((0.25 + 2 * count) ** 0.5 + 0.5)
        good = len(shape) > 0 and n * (n - 1) // 2 == count
        _fits(good, "n (n - 1) / 2 elements for matrices n x n", shape)
        return (*shape[:-1], n, n)

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of vectors for matrices of this shape."""
        _fits(len(shape) > 1 and shape[-1] == shape[-2], "square matrices", shape)
        return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)


class SoftmaxTransform(Alike):
    """Softmax along the last axis; its inverse is the logarithm."""

    domain, codomain = constraints.real_vector, constraints.simplex
    _call = formula(lambda t, x: wf.softmax(x, -1))
    _inverse = formula(lambda t, y: y.log())
    forward_shape = inverse_shape = formula(lambda t, shape: _vectors(shape))


def _shifts(x: Any) -> Any:
    """Logarithms of how many parts are left, so that zeros give equal shares."""
    return wf.arange(x.shape[-1], 0, -1, dtype=x.dtype).log()


class StickBreakingTransform(Alike):
    """Vectors of n numbers as n + 1 shares: each breaks its part of what is left of a stick."""

    domain, codomain, bijective = constraints.real_vector, constraints.simplex, True
    forward_shape = formula(lambda t, shape: _vectors(shape, 1))
    inverse_shape = formula(lambda t, shape: _vectors(shape, -1))

    def _call(self, x: Any) -> Any:
        z = clipped_sigmoid(x - _shifts(x))
        one = wf.ones_like(z[..., :1])
        return wf.cat([z, one], -1) * wf.cat([one, (1 - z).cumprod(-1)], -1)

    def _inverse(self, y: Any) -> Any:
        part = y[..., :-1]
        rest = (1 - part.cumsum(-1)).clamp(min=wf.finfo(y.dtype).tiny)
        return part.log() - rest.log() + _shifts(part)

    def _log_slope(self, x: Any, y: Any) -> Any:
        moved = x - _shifts(x)
        return (y[..., :-1].log() - moved - wf.softplus(-moved)).sum(-1)


def _with_diagonal(x: Any, change: Any) -> Any:
    return x.tril(-1) + change(x.diagonal(dim1=-2, dim2=-1)).diag_embed()


class LowerCholeskyTransform(Alike):
    """Square matrices as lower triangular ones with a positive diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky
    _call = formula(lambda t, x: _with_diagonal(x, wf.exp))
    _inverse = formula(lambda t, y: _with_diagonal(y, wf.log))


class PositiveDefiniteTransform(Alike):
    """Square matrices as positive definite ones."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite
    _inverse = formula(lambda t, y: _with_diagonal(linalg.cholesky(y), wf.log))

    def _call(self, x: Any) -> Any:
        root = _with_diagonal(x, wf.exp)
        return root @ root.mT

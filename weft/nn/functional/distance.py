"""Distances and similarities of vectors."""

from __future__ import annotations

from typing import Any

from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import recorded
from weft.errors import ArgumentError, ShapeError
from weft.ir.shape import show
from weft.nn.functional.common import promoted, refuse_complex
from weft.ops.reduction import distance as formulas

__all__ = ["cosine_similarity", "normalize", "pairwise_distance", "pdist"]

_pairwise_distance = recorded(formulas.pairwise_distance)


def pairwise_distance(
    x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Any:
    """The p-norm of `x1 - x2 + eps` along the last dimension.

    Args:
        x1, x2: (N, D) or (D); shapes that broadcast.
        p: the exponent of the norm.
        eps: is added to the differences, so that the gradient is defined where they are 0.
        keepdim: keep the last dimension, with size 1.
    """
    xs = promoted(x1, x2)
    return _pairwise_distance(*xs, p=float(p), eps=float(eps), keepdim=bool(keepdim))


_cosine_similarity = recorded(formulas.cosine_similarity)


def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """`x1 . x2 / (|x1| * |x2|)` along a dimension, with norms of at least `eps`.

    Args:
        x1, x2: shapes that broadcast.
        dim: the dimension of the vectors.
        eps: the least norm, so that no division by 0 occurs.
    """
    return _cosine_similarity(*promoted(x1, x2), dim=dim, eps=float(eps))


_normalize = recorded(formulas.normalize)


def normalize(input: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Any:
    """`x` divided by its p-norm along a dimension, which counts as `eps` at least.

    Args:
        input: any shape.
        p: the exponent of the norm.
        dim: the dimension of the vectors.
        eps: the least norm, so that no division by 0 occurs.
    """
    return _normalize(input, p=float(p), dim=dim, eps=float(eps))


_pdist = recorded(formulas.pdist)


def pdist(input: Any, p: float = 2.0) -> Any:
    """The p-norms of the differences of all pairs of rows, in the order (0, 1), (0, 2), ...

    Args:
        input: (N, D).
        p: the exponent of the norm.

    Raises:
        DTypeError: the input is complex.
        ShapeError: the input is not a matrix.
        ArgumentError: `p` is negative.
    """
    if not p >= 0:
        raise ArgumentError.here(f"pdist: expected p >= 0, got {p}")
    if len(dims_of(input)) != 2:
        raise ShapeError.here(f"pdist: expected a matrix, got shape {show(dims_of(input))}")
    refuse_complex("pdist", input)
    return _pdist(input, p=float(p))

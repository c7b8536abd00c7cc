"""Distances and similarities of vectors, as modules."""

from __future__ import annotations

from typing import Any

from weft.nn.functional import distance as F
from weft.nn.layer.base import Layer, layer

__all__ = ["CosineSimilarity", "PairwiseDistance"]


@layer(F.cosine_similarity)
class CosineSimilarity(Layer):
    """`x1 . x2 / (|x1| * |x2|)` along a dimension, with norms of at least `eps`."""

    dim: int = 1
    eps: float = 1e-8
    _shown = ""


class PairwiseDistance(Layer):
    """The p-norm of `x1 - x2 + eps` along the last dimension.

    Args:
        p: the exponent of the norm.
        eps: is added to the differences, so that the gradient is defined where they are 0.
        keepdim: keep the last dimension, with size 1.
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Any, x2: Any) -> Any:
        """The distances."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)

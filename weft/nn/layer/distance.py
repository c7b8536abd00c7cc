"""Distances and similarities of vectors, as modules."""

from __future__ import annotations

from dataclasses import InitVar
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


@layer(F.pairwise_distance)
class PairwiseDistance(Layer):
    """The p-norm of `x1 - x2 + eps` along the last dimension."""

    p: InitVar[float] = 2.0
    eps: float = 1e-6
    keepdim: bool = False
    _shown = ""

    def __post_init__(self, p: float) -> None:
        self.norm = p

    def forward(self, x1: Any, x2: Any) -> Any:
        """The distances."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)

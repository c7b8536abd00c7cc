"""Dropout layers: active in training only."""

from __future__ import annotations

from weft.errors import ArgumentError
from weft.nn.functional.dropout import (
    alpha_dropout,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
)
from weft.nn.layer.base import Layer, layer, options

__all__ = [
    "AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout",
]  # fmt: skip


@options
class _Dropout(Layer):
    p: float = 0.5
    inplace: bool = False
    _shown = "p=, inplace="

    def __post_init__(self) -> None:
        if not 0 <= self.p <= 1:
            raise ArgumentError.here(
                f"{type(self).__name__}: expected a probability p from 0 to 1, got {self.p}"
            )


@layer(dropout)
class Dropout(_Dropout):
    """Zeroes elements with probability `p` in training, and scales the others by 1 / (1 - p)."""


@layer(dropout1d)
class Dropout1d(_Dropout):
    """Zeroes whole channels of (N, C, L) or (C, L)."""


@layer(dropout2d)
class Dropout2d(_Dropout):
    """Zeroes whole channels of (N, C, H, W)."""


@layer(dropout3d)
class Dropout3d(_Dropout):
    """Zeroes whole channels of (N, C, D, H, W) or (C, D, H, W)."""


@layer(alpha_dropout)
class AlphaDropout(_Dropout):
    """Dropout that keeps mean and variance, for networks with `SELU`."""


@layer(feature_alpha_dropout)
class FeatureAlphaDropout(_Dropout):
    """`AlphaDropout` of whole channels."""

"""Dropout layers: active in training only."""

from __future__ import annotations

from typing import Any

from weft.errors import ArgumentError
from weft.ir.node import at_user_line
from weft.nn.functional import plain as F
from weft.nn.module.module import Module


class _Dropout(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ArgumentError(
                f"{type(self).__name__}: expected a probability p from 0 to 1, got {p}"
                f"{at_user_line()}"
            )
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        """The probability."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """Zeroes elements with probability `p` in training, and scales the others by 1 / (1 - p)."""

    def forward(self, input: Any) -> Any:
        """The input, with elements left out in training."""
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_Dropout):
    """Zeroes whole channels of (N, C, L) or (C, L)."""

    def forward(self, input: Any) -> Any:
        """The input, with channels left out in training."""
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_Dropout):
    """Zeroes whole channels of (N, C, H, W)."""

    def forward(self, input: Any) -> Any:
        """The input, with channels left out in training."""
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_Dropout):
    """Zeroes whole channels of (N, C, D, H, W) or (C, D, H, W)."""

    def forward(self, input: Any) -> Any:
        """The input, with channels left out in training."""
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_Dropout):
    """Dropout that keeps mean and variance, for networks with `SELU`."""

    def forward(self, input: Any) -> Any:
        """The input, with elements left out in training."""
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_Dropout):
    """`AlphaDropout` of whole channels."""

    def forward(self, input: Any) -> Any:
        """The input, with channels left out in training."""
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)

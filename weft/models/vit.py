"""ViT: an image as a sequence of patches."""

from __future__ import annotations

import weft.eager.functions.api as wf
from weft import nn
from weft.eager.functions.api import Tensor
from weft.models.transformer import Block


class ViT(nn.Module):
    """Dosovitskiy et al., "An Image is Worth 16x16 Words", 2021.

    Images (N, channels, size, size) to logits (N, classes); the default is ViT-B/16, 86.6 million
    parameters for 1,000 classes.

    Args:
        patch: height and width of a patch; divides `size`.
    """

    def __init__(
        self, size: int = 224, patch: int = 16, classes: int = 1000, layers: int = 12,
        heads: int = 12, width: int = 768, channels: int = 3, dropout: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.patches = nn.Conv2d(channels, width, patch, patch)
        self.token = nn.Parameter(wf.zeros(1, 1, width))
        self.positions = nn.Parameter(wf.randn(1, (size // patch) ** 2 + 1, width) * 0.02)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.Sequential(*[Block(width, heads, dropout) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of images."""
        y = self.patches(x).flatten(2).transpose(1, 2)
        token = self.token.expand(y.shape[0], -1, -1)
        y = self.drop(wf.cat([token, y], 1) + self.positions)
        return self.head(self.norm(self.blocks(y))[:, 0])

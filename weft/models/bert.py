"""A BERT-style encoder."""

from __future__ import annotations

import weft.eager.functions.api as wf
from weft import nn
from weft.eager.functions.api import Tensor
from weft.models.transformer import Block
from weft.nn import functional as F


class BERT(nn.Module):
    """Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers", 2019.

    Tokens (N, L) of `segments` (N, L) to states (N, L, width); `words` and `classes` turn these
    into logits of masked words and of whole sequences.

    Args:
        segments: the number of segment types.
        classes: of sequences; 2 for next sentence prediction.
    """

    def __init__(
        self, vocabulary: int = 30522, context: int = 512, layers: int = 12, heads: int = 12,
        width: int = 768, dropout: float = 0.1, segments: int = 2, classes: int = 2,
    ) -> None:  # fmt: skip
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.segments = nn.Embedding(segments, width)
        self.norm, self.drop = nn.LayerNorm(width, eps=1e-12), nn.Dropout(dropout)
        blocks = [Block(width, heads, dropout, first=False) for _ in range(layers)]
        self.blocks = nn.ModuleList(blocks)
        self.pool = nn.Linear(width, width)
        self.classifier = nn.Linear(width, classes)
        self.transform, self.last = nn.Linear(width, width), nn.LayerNorm(width, eps=1e-12)
        self.bias = nn.Parameter(wf.zeros(vocabulary))
        for module in (self.tokens, self.positions, self.segments):
            nn.init.normal_(module.weight, std=0.02)

    def forward(
        self, ids: Tensor, segments: Tensor | None = None, seen: Tensor | None = None
    ) -> Tensor:
        """The states; `seen` (N, L) is false for padding."""
        positions = wf.arange(ids.shape[1])
        x = self.tokens(ids) + self.positions(positions)
        if segments is not None:
            x = x + self.segments(segments)
        x = self.drop(self.norm(x))
        mask = None if seen is None else seen[:, None, None, :]
        for block in self.blocks:
            x = block(x, mask)
        return x

    def words(self, states: Tensor) -> Tensor:
        """Logits of the words at each position, with the embedding's weights."""
        x = self.last(F.gelu(self.transform(states)))
        return F.linear(x, self.tokens.weight, self.bias)

    def classes(self, states: Tensor) -> Tensor:
        """Logits of sequences, from the state of their first token."""
        return self.classifier(wf.tanh(self.pool(states[:, 0])))

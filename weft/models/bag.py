"""A bag-of-words text classifier."""

from __future__ import annotations

from weft import nn
from weft.eager.functions.api import Tensor


class BagOfEmbeddings(nn.Module):
    """Joulin et al., "Bag of Tricks for Efficient Text Classification", 2017 (fastText).

    Words (N, L), or (L,) with the offsets (N,) of texts, to logits (N, classes): the mean of the
    words' embeddings through one linear layer.

    Args:
        padding: a word that is not counted.
    """

    def __init__(
        self, vocabulary: int, width: int, classes: int, padding: int | None = None
    ) -> None:
        super().__init__()
        self.embedding = nn.EmbeddingBag(vocabulary, width, mode="mean", padding_idx=padding)
        self.linear = nn.Linear(width, classes)

    def forward(self, words: Tensor, offsets: Tensor | None = None) -> Tensor:
        """The texts' logits."""
        return self.linear(self.embedding(words, offsets))

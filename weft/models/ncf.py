"""NeuMF: recommendation from two pairs of embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import weft.eager.functions.api as wf
from weft import nn
from weft.eager.functions.api import Tensor


class NeuMF(nn.Module):
    """He et al., "Neural Collaborative Filtering", 2017: matrix factorization beside a perceptron.

    Users and items (N,) to logits (N,).

    Args:
        factors: width of the embeddings that are multiplied.
        hidden: widths of the perceptron; the first is that of both its embeddings concatenated.
    """

    def __init__(
        self, users: int = 138493, items: int = 26744, factors: int = 64,
        hidden: Sequence[int] = (256, 256, 128, 64),
    ) -> None:  # fmt: skip
        super().__init__()
        self.mu, self.mi = nn.Embedding(users, factors), nn.Embedding(items, factors)
        half = hidden[0] // 2
        self.lu, self.li = nn.Embedding(users, half), nn.Embedding(items, half)
        layers: list[nn.Module] = []
        for a, b in pairwise(hidden):
            layers += [nn.Linear(a, b), nn.ReLU()]
        self.mlp = nn.Sequential(*layers)
        self.out = nn.Linear(factors + hidden[-1], 1)

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        """Logits of the pairs."""
        product = self.mu(users) * self.mi(items)
        deep = self.mlp(wf.cat([self.lu(users), self.li(items)], -1))
        return self.out(wf.cat([product, deep], -1))[:, 0]

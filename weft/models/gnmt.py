"""GNMT: translation by recurrent layers with attention."""

from __future__ import annotations

from typing import cast

import weft.eager.functions.api as wf
from weft import nn
from weft.eager.functions.api import Tensor
from weft.nn import functional as F


class GNMT(nn.Module):
    """Wu et al., "Google's Neural Machine Translation System", 2016, in the layout of version 2.

    The encoder is one bidirectional layer and three more; the decoder four layers, of which the
    first asks by normalised additive attention (Bahdanau et al., 2015) and all others hear the
    answer. Layers from the third on are added to their input. Encoder and decoder share the
    embedding; training is with the true previous words.

    Args:
        vocabulary: number of words.
        width: of all layers.
    """

    def __init__(self, vocabulary: int = 32000, width: int = 1024, dropout: float = 0.2) -> None:
        super().__init__()
        self.emb = nn.Embedding(vocabulary, width)
        self.e1 = nn.LSTM(width, width, bidirectional=True, batch_first=True)
        self.e2 = nn.LSTM(2 * width, width, batch_first=True)
        self.e3 = nn.ModuleList([nn.LSTM(width, width, batch_first=True) for _ in range(2)])
        self.d1 = nn.LSTM(width, width, batch_first=True)
        self.d2 = nn.ModuleList([nn.LSTM(2 * width, width, batch_first=True) for _ in range(3)])
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, width, bias=False)
        self.v = nn.Parameter(wf.randn(width) / width**0.5)
        self.g = nn.Parameter(wf.ones(1))
        self.b = nn.Parameter(wf.zeros(width))
        self.out = nn.Linear(width, vocabulary)
        self.drop = nn.Dropout(dropout)

    def encode(self, source: Tensor) -> Tensor:
        """What the decoder attends to: (N, S, width) for words (N, S)."""
        x = self.e2(self.drop(self.e1(self.drop(self.emb(source)))[0]))[0]
        for layer in self.e3:
            x = x + layer(self.drop(x))[0]
        return x

    def attend(self, y: Tensor, x: Tensor) -> Tensor:
        """The mean of `x` for each step of `y`, weighted by how well they go together."""
        sums = wf.tanh(self.q(y)[:, :, None] + self.k(x)[:, None] + self.b)
        scores = sums @ (self.g * self.v / self.v.norm())
        return F.softmax(scores, dim=-1) @ x

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits (N, T, vocabulary) of the words after each of `target` (N, T)."""
        x = self.encode(source)
        y = self.d1(self.drop(self.emb(target)))[0]
        c = self.attend(y, x)
        for i, layer in enumerate(self.d2):
            z = cast(Tensor, layer(wf.cat([self.drop(y), c], -1))[0])
            y = z if i == 0 else y + z
        return self.out(y)

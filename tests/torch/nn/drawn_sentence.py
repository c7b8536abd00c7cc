"""Random networks on sequences (N, T, D), built equally from `torch.nn` and `weft.nn`."""

from __future__ import annotations

import numpy as np
from drawn_stack import Draws

LAYERS = []


class Sentences(Draws):
    """An embedding, layers that keep N and T, and a score for each word at each position."""

    def __init__(self, seed, layers):
        self.rng = np.random.default_rng(seed)
        self.words, self.batch = self.int(3, 40), self.pick(1, 2, 3, 5)
        self.length, width = self.pick(1, 2, 5, 9, 17), self.pick(4, 8, 12, 16, 20)
        self.inputs = self.rng.integers(0, self.words, (self.batch, self.length))
        self.labels = self.rng.integers(0, self.words, self.batch * self.length)
        self.labels[self.rng.random(self.labels.shape) < 0.2] = -100  # which the loss leaves out
        words, first = self.words, width
        padding = self.pick(None, 0)
        self.layers = [lambda nn: nn.Embedding(words, first, padding_idx=padding)]
        while len(self.layers) < layers + 1:
            made = self.pick(*LAYERS)(self, width)
            if made is not None:
                layer, width = made
                self.layers.append(layer)
        last = width
        self.layers += [lambda nn: nn.Linear(last, words), lambda nn: nn.Flatten(0, 1)]

    def make(self, nn):
        """The network of `torch.nn` or `weft.nn`."""
        return nn.Sequential(*[layer(nn) for layer in self.layers])


def drawn(function):
    """Register a function from (network, width) to (layer, width), or None."""
    LAYERS.append(function)
    return function


@drawn
def linear(s, d):
    out, bias = s.pick(3, 4, 8, 16, 33), s.flag()
    return lambda nn: nn.Linear(d, out, bias=bias), out


@drawn
def activation(s, d):
    name = s.pick("ReLU", "GELU", "SiLU", "Tanh", "Softplus", "LeakyReLU", "LogSoftmax")
    if name == "LogSoftmax":
        return lambda nn: nn.LogSoftmax(-1), d
    return lambda nn: getattr(nn, name)(), d


@drawn
def normalization(s, d):
    if d < 4:
        return None
    if s.flag():
        return lambda nn: nn.RMSNorm(d, eps=1e-5), d
    return lambda nn: nn.LayerNorm(d), d


@drawn
def recurrent(s, d):
    kind, hidden, layers = s.pick("LSTM", "GRU", "RNN"), s.pick(3, 8, 17), s.pick(1, 1, 2)
    both, bias = s.flag(), s.flag()

    def make(nn):
        class First(nn.Module):
            def __init__(self):
                super().__init__()
                self.cells = getattr(nn, kind)(
                    d, hidden, layers, bias=bias, batch_first=True, bidirectional=both
                )

            def forward(self, x):
                return self.cells(x)[0]

        return First()

    return make, hidden * (1 + both)


@drawn
def attention(s, d):
    heads = s.pick(*[h for h in (1, 2, 4) if d % h == 0])
    causal, bias = s.flag(), s.flag()

    def make(nn):
        class Attention(nn.Module):
            def __init__(self):
                super().__init__()
                self.attention = nn.MultiheadAttention(d, heads, bias=bias, batch_first=True)

            def forward(self, x):
                size = x.shape[1]
                mask = nn.Transformer.generate_square_subsequent_mask(size).to(x.dtype)
                found, _ = self.attention(x, x, x, attn_mask=mask if causal else None)
                return found + x

        return Attention()

    return make, d


@drawn
def encoder(s, d):
    heads = s.pick(*[h for h in (1, 2, 4) if d % h == 0])
    first, name = s.flag(), s.pick("relu", "gelu")
    return lambda nn: nn.TransformerEncoderLayer(
        d, heads, 2 * d, 0.0, name, batch_first=True, norm_first=first
    ), d


@drawn
def over_time(s, d):
    """A convolution along the sentence."""
    out, k = s.pick(4, 8, 20), s.pick(1, 3, 5)
    groups = s.pick(*[g for g in (1, 1, 2, 4) if d % g == 0 and out % g == 0])

    def make(nn):
        class Along(nn.Module):
            def __init__(self):
                super().__init__()
                self.convolution = nn.Conv1d(d, out, k, padding=k // 2, groups=groups)

            def forward(self, x):
                return self.convolution(x.transpose(1, 2)).transpose(1, 2)

        return Along()

    return make, out

"""GNMT: translation with recurrent layers and attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import weft.eager.functions.api as wf
from weft import nn
from weft.eager.functions.api import Tensor
from weft.eager.tensor.generator import Generator
from weft.ir.dtype import int64
from weft.models.beam import beam_search
from weft.models.decoding import Cache, Stream, generate
from weft.nn import functional as F


class GNMT(nn.Module):
    """Wu et al., "Google's Neural Machine Translation System", 2016, in the layout of version 2.

    The encoder is one bidirectional layer and three more; the decoder has four layers. The first
    one queries normalized additive attention (Bahdanau et al., 2015), and all others get its
    result. Layers from the third on have residual connections. Encoder and decoder share the
    embedding; training is teacher forced.

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
        """The encoder's output: (N, S, width) for words (N, S)."""
        x = self.e2(self.drop(self.e1(self.drop(self.emb(source)))[0]))[0]
        for layer in self.e3:
            x = x + layer(self.drop(x))[0]
        return x

    def attend(self, y: Tensor, x: Tensor, keys: Tensor | None = None) -> Tensor:
        """The attention-weighted mean of `x` for each step of `y`.

        Args:
            keys: `self.k(x)`, if already computed.
        """
        known = cast(Tensor, self.k(x)) if keys is None else keys
        sums = wf.tanh(self.q(y)[:, :, None] + known[:, None] + self.b)
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

    def generate(
        self, source: Tensor, start: int, count: int, temperature: float = 0.0,
        top_k: int | None = None, top_p: float | None = None,
        stop: int | Sequence[int] | None = None, stream: Stream | None = None,
        generator: Generator | None = None,
    ) -> Tensor:  # fmt: skip
        """Translations (N, 1 + count or less) of words (N, S), which start with `start`.

        The encoder runs once; then one compiled loop carries the layers' states. Other arguments
        are those of `GPT.generate`.

        Example:
            >>> import weft as wf
            >>> model = GNMT(20, width=16).eval()
            >>> tuple(model.generate(wf.zeros((2, 5), dtype=wf.int64), start=1, count=4).shape)
            (2, 5)
        """
        with wf.no_grad():
            decoder = Translation(self, self.encode(source))
            return generate(
                decoder, self._starts(source, start), count, cache=decoder.cache(source.shape[0]),
                temperature=temperature, top_k=top_k, top_p=top_p, stop=stop, stream=stream,
                generator=generator,
            )  # fmt: skip

    def beam_search(
        self, source: Tensor, start: int, count: int, beams: int = 4, length_penalty: float = 1.0,
        stop: int | Sequence[int] | None = None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """The most likely translations (N, beams, 1 + count or less) of words (N, S), and scores.

        Arguments and results are as in `GPT.beam_search`.
        """
        with wf.no_grad():
            n, memory = source.shape[0], self.encode(source)
            decoder = Translation(self, memory.repeat_interleave(beams, 0))
            return beam_search(
                decoder, self._starts(source, start), count, cache=decoder.cache(n), beams=beams,
                length_penalty=length_penalty, stop=stop,
            )  # fmt: skip

    def _starts(self, source: Tensor, start: int) -> Tensor:
        return wf.full((source.shape[0], 1), start, dtype=int64)


class Translation:
    """GNMT's decoder, one word at a time, for `weft.models.generate`.

    Args:
        memory: the encoder's output, (N, S, width).
    """

    def __init__(self, model: GNMT, memory: Tensor) -> None:
        self.model, self.memory, self.keys = model, memory, model.k(memory)

    def cache(self, n: int) -> list[Tensor]:
        """Initial outputs and cells of all four layers for `n` texts."""
        shape = (1, n, self.memory.shape[2])
        return [wf.zeros(shape, dtype=self.memory.dtype).transpose(0, 1) for _ in range(8)]

    def step(self, tokens: Tensor, position: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        """Logits of the words after tokens (N,), and the layers' new states."""
        model, kept = self.model, list[Tensor]()
        y = self._layer(model.d1, wf.unsqueeze(model.emb(tokens), 1), cache[:2], kept)
        c = model.attend(y, self.memory, self.keys)
        for i, layer in enumerate(model.d2):
            states = cache[2 * i + 2 : 2 * i + 4]
            z = self._layer(cast(nn.LSTM, layer), wf.cat([y, c], -1), states, kept)
            y = z if i == 0 else y + z
        return model.out(y)[:, 0], kept

    def _layer(self, layer: nn.LSTM, x: Tensor, states: Cache, kept: list[Tensor]) -> Tensor:
        h, c = (z.transpose(0, 1) for z in states)
        y, after = layer(x, (h, c))
        kept += [z.transpose(0, 1) for z in after]
        return y

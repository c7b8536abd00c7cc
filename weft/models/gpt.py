"""A GPT-style decoder."""

from __future__ import annotations

from collections.abc import Sequence

import weft.eager.functions.api as wf
from weft import nn
from weft.eager.functions.api import Tensor
from weft.eager.tensor.generator import Generator
from weft.errors import ShapeError
from weft.models.beam import beam_search
from weft.models.decoding import (
    Cache,
    Sampling,
    Stream,
    check_request,
    decode,
    ends,
    first_counter,
    next_token,
    stops,
)
from weft.models.transformer import Block


class GPT(nn.Module):
    """Radford et al., "Language Models are Unsupervised Multitask Learners", 2019.

    Tokens (N, L) to logits (N, L, vocabulary) of the next tokens.

    Args:
        context: the maximum number of positions.
        tied: whether the last layer shares the embedding's weights.
    """

    def __init__(
        self, vocabulary: int, context: int = 256, layers: int = 6, heads: int = 6,
        width: int = 384, dropout: float = 0.0, tied: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.context = context
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(wf.zeros(context, width))
        self.drop = nn.Dropout(dropout)
        blocks = [Block(width, heads, dropout, causal=True) for _ in range(layers)]
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.apply(_initialize)
        nn.init.normal_(self.positions, std=0.02)
        for block in blocks:  # residual branches start smaller, as they are summed over the layers
            nn.init.normal_(block.attention.out.weight, std=0.02 / (2 * layers) ** 0.5)
            nn.init.normal_(block.down.weight, std=0.02 / (2 * layers) ** 0.5)
        if tied:
            self.head.weight = self.tokens.weight

    def forward(self, ids: Tensor) -> Tensor:
        """Logits of the next tokens.

        Raises:
            ShapeError: there are more tokens than `context`.
        """
        length = ids.shape[1]
        if length > self.context:
            raise ShapeError.here(f"GPT: expected at most {self.context} tokens, got {length}")
        x = self.drop(self.tokens(ids) + self.positions[:length])
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    def generate(
        self, ids: Tensor, count: int, temperature: float = 1.0, top_k: int | None = None,
        top_p: float | None = None, stop: int | Sequence[int] | None = None,
        stream: Stream | None = None, generator: Generator | None = None,
    ) -> Tensor:  # fmt: skip
        """`ids` (N, L) followed by up to `count` sampled tokens.

        Up to `context` positions, this is one compiled loop with a cache of keys and values, the
        same for any length. Beyond, the last `context` tokens are recomputed for each one.

        Args:
            temperature: divides logits; 0 picks the most likely token.
            top_k: sample only from the k most likely tokens.
            top_p: sample only from the most likely tokens with this total probability.
            stop: a token, or several, that ends a row; generation stops when all rows have ended.
            stream: called with each sampled column (N,) as soon as it is computed; the text is the
                same without it.
            generator: the random number generator.

        Raises:
            ArgumentError: `temperature` or `count` is negative, `top_k` is not positive, or `top_p`
                is not in (0, 1].
            ShapeError: the prompt is empty.

        Example:
            >>> import weft as wf
            >>> model = GPT(20, context=8, layers=1, heads=2, width=16)
            >>> model.generate(wf.zeros((1, 2), dtype=wf.int64), 4, temperature=0).shape
            (1, 6)
        """
        check_request("generate", ids, count)
        sampling = Sampling(temperature, top_k, top_p, stops(stop))
        with wf.no_grad():
            found, counter = decode(
                self, ids, self.context, count, self.cache(ids.shape[0]), sampling,
                first_counter(generator), stream,
            )  # fmt: skip
            left = ids.shape[1] + count - max(self.context, ids.shape[1])
            if left <= 0 or found.shape[1] < self.context:
                return found
            return self._beyond(found, ids.shape[1], left, sampling, counter, stream)

    def beam_search(
        self, ids: Tensor, count: int, beams: int = 4, length_penalty: float = 1.0,
        stop: int | Sequence[int] | None = None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """The most likely texts of at most `count` tokens after `ids` (N, L), found in one loop.

        Args:
            beams: the number of candidates for each row.
            length_penalty: log probabilities of n tokens are divided by ((5 + n) / 6) to this
                power (Wu et al., 2016); 0 prefers short texts.
            stop: a token, or several, that ends a text.

        Returns:
            Texts (N, beams, L + count or less), the best first, and the length-normalized log
            probabilities (N, beams) of the added tokens.

        Raises:
            ArgumentError: there are no beams, or the count is negative.
            ShapeError: the prompt is empty, or there would be more than `context` tokens.

        Example:
            >>> import weft as wf
            >>> model = GPT(20, context=8, layers=1, heads=2, width=16)
            >>> [x.shape for x in model.beam_search(wf.zeros((1, 2), dtype=wf.int64), 4)]
            [(1, 4, 6), (1, 4)]
        """
        check_request("beam_search", ids, count)
        if ids.shape[1] + count > self.context:
            raise ShapeError.here(
                f"beam_search: expected at most {self.context} tokens, got {ids.shape[1]} and"
                f" {count} more"
            )
        return beam_search(
            self, ids, count, cache=self.cache(ids.shape[0]), room=self.context, beams=beams,
            length_penalty=length_penalty, stop=stop,
        )  # fmt: skip

    def cache(self, n: int) -> list[Tensor]:
        """An empty cache of each block's keys and values for `n` texts."""
        heads = next(iter(self.blocks)).attention.heads
        shape = (n, heads, self.context, self.positions.shape[1] // heads)
        return [wf.zeros(shape, dtype=self.positions.dtype) for _ in range(2 * len(self.blocks))]

    def begin(self, tokens: Tensor, cache: Cache) -> Cache:
        """The cache of tokens (N, L) at the first positions, for `weft.models.generate`."""
        x = self.tokens(tokens) + self.positions[: tokens.shape[1]]
        kept: list[Tensor] = []
        for block, keys, values in zip(self.blocks, cache[::2], cache[1::2], strict=True):
            x, *more = block.begin(x, keys, values)
            kept += more
        return kept

    def step(self, tokens: Tensor, position: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        """Logits of the tokens after tokens (N,), and the extended cache."""
        place = wf.index_select(self.positions, 0, position.view(1))
        x = wf.unsqueeze(self.tokens(tokens), 1) + place
        kept: list[Tensor] = []
        for block, keys, values in zip(self.blocks, cache[::2], cache[1::2], strict=True):
            x, *more = block.step(x, position, keys, values)
            kept += more
        return self.head(self.norm(x))[:, 0], kept

    def _beyond(
        self, ids: Tensor, given: int, count: int, sampling: Sampling, counter: Tensor,
        stream: Stream | None,
    ) -> Tensor:  # fmt: skip
        """More tokens than `context`: each one sees only the last positions."""
        last = ids[:, -1]
        ended = ends(last, sampling.stop) & (ids.shape[1] > given)
        for _ in range(count):
            if ended.all().item():
                break
            drawn = sampling.draw(self(ids[:, -self.context :])[:, -1], counter)
            last, counter = wf.where(ended, last, drawn), next_token(counter)
            ended = ended | ends(last, sampling.stop)
            ids = wf.cat([ids, wf.unsqueeze(last, 1)], 1)
            if stream:
                stream(last)
        return ids


def _initialize(module: nn.Module) -> None:
    """Normal weights with a deviation of 0.02, as in the paper's code; zero biases."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)

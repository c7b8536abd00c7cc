"""A GPT-style decoder: what comes next."""

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
from weft.ops.base import at_user_line


class GPT(nn.Module):
    """Radford et al., "Language Models are Unsupervised Multitask Learners", 2019.

    Tokens (N, L) to logits (N, L, vocabulary) of the tokens after them.

    Args:
        context: the most positions.
        tied: the last layer uses the embedding's weights.
    """

    def __init__(
        self,
        vocabulary: int,
        context: int = 256,
        layers: int = 6,
        heads: int = 6,
        width: int = 384,
        dropout: float = 0.0,
        tied: bool = False,
    ) -> None:
        super().__init__()
        self.context = context
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(wf.zeros(context, width))
        self.drop = nn.Dropout(dropout)
        blocks = [Block(width, heads, dropout, causal=True) for _ in range(layers)]
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.apply(_initialise)
        nn.init.normal_(self.positions, std=0.02)
        for block in blocks:  # what is added up over the layers begins smaller
            nn.init.normal_(block.attention.out.weight, std=0.02 / (2 * layers) ** 0.5)
            nn.init.normal_(block.down.weight, std=0.02 / (2 * layers) ** 0.5)
        if tied:
            self.head.weight = self.tokens.weight

    def forward(self, ids: Tensor) -> Tensor:
        """Logits of the next tokens.

        Raises:
            ShapeError: more tokens than `context`.
        """
        length = ids.shape[1]
        if length > self.context:
            raise ShapeError(
                f"GPT: expected at most {self.context} tokens, got {length}{at_user_line()}"
            )
        x = self.drop(self.tokens(ids) + self.positions[:length])
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    def generate(
        self,
        ids: Tensor,
        count: int,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        stop: int | Sequence[int] | None = None,
        stream: Stream | None = None,
        generator: Generator | None = None,
    ) -> Tensor:
        """`ids` (N, L) with up to `count` drawn tokens after them.

        Up to `context` positions this is one loop of the program with a cache of keys and values,
        the same for any length. Beyond, the last `context` tokens are computed anew for each.

        Args:
            temperature: divides logits; 0 takes the most likely token.
            top_k: only so many of the most likely tokens are drawn.
            top_p: only the most likely tokens that together have this probability are drawn.
            stop: a row ends with this token, or one of these; it ends when all rows have.
            stream: called with every drawn column (N,) as soon as it is there; the text is the
                same without it.
            generator: of the random numbers.

        Raises:
            ArgumentError: a negative temperature or count, no tokens to draw from, or a
                probability that is none.
            ShapeError: no token to begin with.

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
        self,
        ids: Tensor,
        count: int,
        beams: int = 4,
        length_penalty: float = 1.0,
        stop: int | Sequence[int] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The likeliest texts of at most `count` tokens after `ids` (N, L), in one loop.

        Args:
            beams: how many texts of each row are followed.
            length_penalty: log probabilities of n tokens are divided by ((5 + n) / 6) to this
                power (Wu et al., 2016); 0 prefers short texts.
            stop: a text ends with this token, or one of these.

        Returns:
            Texts (N, beams, L + count or less), the best first, and the divided log probabilities
            (N, beams) of what was added.

        Raises:
            ArgumentError: less than one beam, or a negative count.
            ShapeError: no token to begin with, or more than `context` tokens in the end.

        Example:
            >>> import weft as wf
            >>> model = GPT(20, context=8, layers=1, heads=2, width=16)
            >>> [x.shape for x in model.beam_search(wf.zeros((1, 2), dtype=wf.int64), 4)]
            [(1, 4, 6), (1, 4)]
        """
        check_request("beam_search", ids, count)
        if ids.shape[1] + count > self.context:
            raise ShapeError(
                f"beam_search: expected at most {self.context} tokens, got {ids.shape[1]} and"
                f" {count} more{at_user_line()}"
            )
        return beam_search(
            self, ids, count, cache=self.cache(ids.shape[0]), room=self.context, beams=beams,
            length_penalty=length_penalty, stop=stop,
        )  # fmt: skip

    def cache(self, n: int) -> list[Tensor]:
        """Keys and values of each block for `n` texts, of no position yet."""
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
        """Logits of what follows tokens (N,), and the cache with them."""
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
        """More tokens than there are positions: of each, only those before it in reach count."""
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


def _initialise(module: nn.Module) -> None:
    """Normal weights of 0.02, as in the paper's code; no biases."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)

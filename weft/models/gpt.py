"""A GPT-style decoder: what comes next."""

from __future__ import annotations

import weft.eager.functions.api as wf
from weft import nn
from weft.eager.functions.api import Tensor
from weft.errors import ShapeError
from weft.models.transformer import Block
from weft.ops.base import at_user_line


class GPT(nn.Module):
    """Radford et al., "Language Models are Unsupervised Multitask Learners", 2019.

    Symbols (N, L) to logits (N, L, vocabulary) of the symbols after them.

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
        """Logits of the next symbols.

        Raises:
            ShapeError: more symbols than `context`.
        """
        length = ids.shape[1]
        if length > self.context:
            raise ShapeError(
                f"GPT: expected at most {self.context} symbols, got {length}{at_user_line()}"
            )
        x = self.drop(self.tokens(ids) + self.positions[:length])
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    def generate(self, ids: Tensor, count: int, temperature: float = 1.0) -> Tensor:
        """`ids` (N, L) with `count` drawn symbols after them."""
        seen, found = ids[:, -self.context :], [ids]
        with wf.no_grad():
            for _ in range(count):
                logits = self(seen)[:, -1] / temperature
                drawn = wf.multinomial(wf.softmax(logits, -1), 1)
                seen = wf.cat([seen, drawn], 1)[:, -self.context :]
                found.append(drawn)
                # Computed symbol by symbol, a full `seen` takes one program again and again: 4 ms
                # a symbol instead of 16 (3 layers, width 128, context 64).
                seen.numpy()
        return wf.cat(found, 1)


def _initialise(module: nn.Module) -> None:
    """Normal weights of 0.02, as in the paper's code; no biases."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)

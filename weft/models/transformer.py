"""The transformer block that the attention models share."""

from __future__ import annotations

import weft.eager.functions.api as wf
from weft import nn
from weft.eager.functions.api import Tensor
from weft.nn import functional as F


class SelfAttention(nn.Module):
    """Multi-head self-attention; one matmul gives queries, keys and values.

    Args:
        causal: each position sees itself and those before it.
    """

    def __init__(self, width: int, heads: int, dropout: float = 0.0, causal: bool = False) -> None:
        super().__init__()
        self.heads, self.dropout, self.causal = heads, dropout, causal
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """(N, L, width) to the same shape; `mask` is true where a key may be seen."""
        q, k, v = self._apart(x)
        return self._attended(q, k, v, mask)

    def begin(self, x: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, ...]:
        """The first positions (N, L, width), as in `forward`; fills the caches, as in `step`."""
        q, k, v = self._apart(x)
        new = [
            wf.cat([now, cache[:, :, now.shape[2] :]], 2) for now, cache in ((k, keys), (v, values))
        ]
        return self._attended(q, k, v, None), *new

    def _apart(self, x: Tensor) -> tuple[Tensor, ...]:
        """Queries, keys and values (N, heads, L, head width)."""
        n, length, width = x.shape
        parts = self.qkv(x).split(width, dim=2)
        return tuple(
            [z.view(n, length, self.heads, width // self.heads).transpose(1, 2) for z in parts]
        )

    def _attended(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        rate = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, dropout_p=rate, is_causal=self.causal
        )
        return self.out(y.transpose(1, 2).flatten(2))

    def step(self, x: Tensor, now: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, ...]:
        """One position (N, 1, width), which sees the earlier ones; and the extended keys, values.

        Args:
            now: the position, an int32.
            keys: of the earlier positions, (N, heads, positions, head width).
            values: the same.
        """
        n, _, width = x.shape
        q, k, v = (
            z.view(n, self.heads, 1, width // self.heads) for z in self.qkv(x).split(width, dim=2)
        )
        place = now.view(1)
        keys, values = wf.index_copy(keys, 2, place, k), wf.index_copy(values, 2, place, v)
        seen = (wf.arange(keys.shape[2]) <= now).view(1, -1)
        y = F.scaled_dot_product_attention(q, keys, values, attn_mask=seen)
        return self.out(y.reshape(n, 1, width)), keys, values


class Block(nn.Module):
    """Attention, then a perceptron, each added to its normalized input.

    Xiong et al., "On Layer Normalization in the Transformer Architecture", 2020 (`first`), or as
    in Vaswani et al., "Attention Is All You Need", 2017: normalized after the sum.

    Args:
        first: whether to normalize before each part instead of after the sum.
    """

    def __init__(
        self, width: int, heads: int, dropout: float = 0.0, causal: bool = False,
        first: bool = True, hidden: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        hidden = 4 * width if hidden is None else hidden
        self.first = first
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = SelfAttention(width, heads, dropout, causal)
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """(N, L, width) to the same shape."""
        return self._finished(x, self.attention(self.norm1(x) if self.first else x, mask))

    def step(self, x: Tensor, now: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, ...]:
        """One position, as in `SelfAttention.step`."""
        y, *kept = self.attention.step(self.norm1(x) if self.first else x, now, keys, values)
        return self._finished(x, y), *kept

    def begin(self, x: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, ...]:
        """The first positions, as in `SelfAttention.begin`."""
        y, *kept = self.attention.begin(self.norm1(x) if self.first else x, keys, values)
        return self._finished(x, y), *kept

    def _finished(self, x: Tensor, y: Tensor) -> Tensor:
        """The block's output, from its input and the attention's output."""
        if self.first:
            x = x + self.drop(y)
            return x + self.drop(self.perceptron(self.norm2(x)))
        x = self.norm1(x + self.drop(y))
        return self.norm2(x + self.drop(self.perceptron(x)))

    def perceptron(self, x: Tensor) -> Tensor:
        """The perceptron, at each position on its own."""
        return self.down(F.gelu(self.up(x)))

"""`MultiheadAttention`."""

from __future__ import annotations

from typing import Any

from weft.eager.functions.creation.constructor import empty
from weft.errors import ArgumentError, ShapeError
from weft.nn import init
from weft.nn.functional.attention import multi_head_attention
from weft.nn.layer.base import Layer
from weft.nn.layer.linear import Linear
from weft.nn.parameter import Parameter


class MultiheadAttention(Layer):
    """Multi-head attention.

    Args:
        embed_dim: width of queries and results, a multiple of `num_heads`.
        num_heads: the number of heads.
        dropout: probability of dropping an attention weight in training.
        bias: whether the projections have biases.
        add_bias_kv: append a learned key and value.
        add_zero_attn: append a key and value of zeros.
        kdim, vdim: widths of keys and values; `embed_dim` by default.
        batch_first: inputs are (N, L, E), not (L, N, E).

    Source: Vaswani et al., "Attention Is All You Need" (2017).
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise ShapeError.here(
                f"MultiheadAttention: expected num_heads that divides embed_dim, got {num_heads} "
                f"and {embed_dim}"
            )
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.add_zero_attn = add_zero_attn
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        options = {"device": device, "dtype": dtype}
        self._make_weights(options)
        self.register_parameter(
            "in_proj_bias", Parameter(empty(3 * embed_dim, **options)) if bias else None
        )
        self.out_proj = Linear(embed_dim, embed_dim, bias, **options)
        extra = [Parameter(empty(1, 1, embed_dim, **options)) for _ in range(2 * add_bias_kv)]
        self.bias_k, self.bias_v = extra or (None, None)
        self._reset_parameters()

    def _make_weights(self, options: dict[str, Any]) -> None:
        width = self.embed_dim
        self._qkv_same_embed_dim = packed = self.kdim == self.vdim == width
        sizes = {"q_proj_weight": width, "k_proj_weight": self.kdim, "v_proj_weight": self.vdim}
        for name, size in sizes.items():
            weight = None if packed else Parameter(empty(width, size, **options))
            self.register_parameter(name, weight)
        weight = Parameter(empty(3 * width, width, **options)) if packed else None
        self.register_parameter("in_proj_weight", weight)

    def _reset_parameters(self) -> None:
        """Xavier initialization; biases 0."""
        for weight in (
            self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight
        ):  # fmt: skip
            if weight is not None:
                init.xavier_uniform_(weight)
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                init.zeros_(bias)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                init.xavier_normal_(extra)

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Any, Any]:
        """Results of `query`'s shape, and weights (N, L, S), or (N, heads, L, S) if not averaged.

        Args:
            query: (L, N, E), (N, L, E) with `batch_first`, or (L, E); key and value likewise.
            key_padding_mask: (N, S), true for keys to ignore, or numbers to add.
            need_weights: whether to return the weights; else `None`.
            attn_mask: (L, S) or (N heads, L, S), true for pairs to ignore, or numbers to add.
            is_causal: `attn_mask` is the causal mask, so it need not be read.
        """
        if is_causal and attn_mask is None:
            raise ArgumentError.here(
                "MultiheadAttention: is_causal needs the attn_mask that it describes"
            )
        extra_keys = self.bias_k is not None or self.add_zero_attn
        causal = is_causal and not extra_keys
        return multi_head_attention(
            query, key, value,
            (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight),
            self.in_proj_bias, (self.out_proj.weight, self.out_proj.bias),
            (self.bias_k, self.bias_v), (None if causal else attn_mask, key_padding_mask),
            num_heads=self.num_heads, is_causal=causal,
            dropout_p=self.dropout if self.training else 0.0, add_zero_attn=self.add_zero_attn,
            batch_first=self.batch_first, need_weights=need_weights,
            average_attn_weights=average_attn_weights,
        )  # fmt: skip

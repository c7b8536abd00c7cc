"""Transformer layers, stacks of them, and the whole encoder-decoder."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from weft.documentation import arguments_of
from weft.eager.functions.creation.constructor import floating
from weft.eager.tensor.device import check_device
from weft.eager.tensor.dispatch import leaf, wrap
from weft.errors import ArgumentError
from weft.nn import init
from weft.nn.functional.activation import gelu, relu
from weft.nn.layer.attention import MultiheadAttention
from weft.nn.layer.base import Layer
from weft.nn.layer.dropout import Dropout
from weft.nn.layer.linear import Linear
from weft.nn.layer.normalization import LayerNorm
from weft.nn.module.container import ModuleList
from weft.nn.module.module import Module

__all__ = [
    "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
    "TransformerEncoderLayer",
]  # fmt: skip


def _activation(activation: str | Callable[[Any], Any]) -> Callable[[Any], Any]:
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise ArgumentError.here(
            f"transformer: expected activation 'relu', 'gelu' or a function, got {activation!r}"
        )
    return relu if activation == "relu" else gelu


class _TransformerLayer(Layer):
    """Attentions and a feed-forward network, each with a residual and a layer norm.

    Args:
        d_model: width of inputs and outputs.
        nhead: the number of heads, which divides `d_model`.
        dim_feedforward: width between the two layers of the feed-forward network.
        dropout: probability of dropping an attention weight or an element in training.
        activation: `relu`, `gelu` or a function.
        layer_norm_eps: the `eps` of layer norms.
        batch_first: sequences are (N, L, width), not (L, N, width).
        norm_first: normalize each part's input, not its output.
        bias: whether linear layers and layer norms have biases.
    """

    _attentions: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Any], Any] = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = {"device": device, "dtype": dtype}
        for name in self._attentions:
            attention = MultiheadAttention(
                d_model, nhead, dropout, bias, batch_first=batch_first, **options
            )
            self.add_module(name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **options)
        self.norm_first = norm_first
        parts = range(1, len(self._attentions) + 2)
        for i in parts:
            self.add_module(f"norm{i}", LayerNorm(d_model, layer_norm_eps, bias=bias, **options))
        for i in parts:
            self.add_module(f"dropout{i}", Dropout(dropout))
        self.activation = _activation(activation)

    def _attend(
        self, i: int, x: Any, keys: Any, mask: Any, padding: Any, is_causal: bool
    ) -> Any:  # fmt: skip
        """The attention with number `i`, and its dropout."""
        attention, dropout = getattr(self, self._attentions[i - 1]), getattr(self, f"dropout{i}")
        y, _ = attention(
            x, keys, keys, attn_mask=mask, key_padding_mask=padding, need_weights=False,
            is_causal=is_causal,
        )  # fmt: skip
        return dropout(y)

    def _feed(self, x: Any, dropout: Dropout) -> Any:
        return dropout(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoderLayer(_TransformerLayer):
    """Self-attention and a feed-forward network, each with a residual and a layer norm."""

    _attentions = ("self_attn",)

    def forward(
        self,
        src: Any,
        src_mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool = False,
    ) -> Any:
        """The shape of `src`; masks as in `MultiheadAttention`."""
        masks = (src_mask, src_key_padding_mask, is_causal)
        if self.norm_first:
            y = self.norm1(src)
            x = src + self._attend(1, y, y, *masks)
            return x + self._feed(self.norm2(x), self.dropout2)
        x = self.norm1(src + self._attend(1, src, src, *masks))
        return self.norm2(x + self._feed(x, self.dropout2))


class TransformerDecoderLayer(_TransformerLayer):
    """Self-attention, attention to an encoder's output, feed-forward network; with residuals."""

    _attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Any:
        """The shape of `tgt`; masks as in `MultiheadAttention`."""
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory_mask, memory_key_padding_mask, memory_is_causal)
        if self.norm_first:
            y = self.norm1(tgt)
            x = tgt + self._attend(1, y, y, *own)
            x = x + self._attend(2, self.norm2(x), memory, *other)
            return x + self._feed(self.norm3(x), self.dropout3)
        x = self.norm1(tgt + self._attend(1, tgt, tgt, *own))
        x = self.norm2(x + self._attend(2, x, memory, *other))
        return self.norm3(x + self._feed(x, self.dropout3))


class TransformerEncoder(Layer):
    """A stack of copies of an encoder layer.

    Args:
        encoder_layer: the layer.
        num_layers: the number of copies.
        norm: a module applied to the result, or `None`.
        enable_nested_tensor, mask_check: accepted; they have no effect.
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        src: Any,
        mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool | None = None,
    ) -> Any:
        """The shape of `src`; masks as in `MultiheadAttention`."""
        y = src
        for layer in self.layers:
            y = layer(
                y, src_mask=mask, src_key_padding_mask=src_key_padding_mask,
                is_causal=bool(is_causal),
            )  # fmt: skip
        return y if self.norm is None else self.norm(y)


class TransformerDecoder(Layer):
    """A stack of copies of a decoder layer.

    Args:
        decoder_layer: the layer.
        num_layers: the number of copies.
        norm: a module applied to the result, or `None`.
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:
        """The shape of `tgt`; masks as in `MultiheadAttention`."""
        y = tgt
        for layer in self.layers:
            y = layer(
                y, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=bool(tgt_is_causal), memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return y if self.norm is None else self.norm(y)


@arguments_of(_TransformerLayer)
class Transformer(Layer):
    """An encoder, and a decoder that attends to its output.

    Args:
        num_encoder_layers: the number of the encoder's layers.
        num_decoder_layers: the number of the decoder's layers.
        custom_encoder: a module instead of the encoder.
        custom_decoder: a module instead of the decoder.

    Source: Vaswani et al., "Attention Is All You Need" (2017).
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Any], Any] = "relu",
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = {"device": device, "dtype": dtype}
        sizes = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps)
        rest = (batch_first, norm_first, bias)

        def norm() -> Module:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, **options)

        if custom_encoder is None:
            encoder = TransformerEncoderLayer(*sizes, *rest, **options)
            custom_encoder = TransformerEncoder(encoder, num_encoder_layers, norm())
        if custom_decoder is None:
            decoder = TransformerDecoderLayer(*sizes, *rest, **options)
            custom_decoder = TransformerDecoder(decoder, num_decoder_layers, norm())
        self.encoder = custom_encoder
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if len(parameter.shape) > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Any,
        tgt: Any,
        src_mask: Any = None,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:
        """The shape of `tgt`; masks as in `MultiheadAttention`."""
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Any:
        """The causal mask (sz, sz): minus infinity above the diagonal."""
        check_device(device)
        mask = np.triu(np.full((sz, sz), -np.inf), 1)
        return wrap(leaf(mask.astype(floating(dtype).numpy)))

"""Attention mechanisms: scores of a memory's steps for a query.

Bahdanau et al., "Neural Machine Translation by Jointly Learning to Align and Translate" (2015);
Luong et al., "Effective Approaches to Attention-based Neural Machine Translation" (2015).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.errors import ShapeError
from weft.tf1.creation import fill, one_hot, sequence_mask, zeros
from weft.tf1.elementwise.arithmetic import cast, matmul, rsqrt, square, tanh
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.dtypes import as_dtype, float32
from weft.tf1.framework.graph import fail, name_scope
from weft.tf1.framework.tensor import Tensor
from weft.tf1.indexing.slicing import where
from weft.tf1.layers.dense import Dense
from weft.tf1.nn.activation import softmax
from weft.tf1.reduction import argmax, reduce_sum
from weft.tf1.shaping.arrangement import expand_dims, shape, squeeze
from weft.tf1.variable.initializer import constant_initializer, zeros_initializer
from weft.tf1.variable.variable_scope import get_variable, variable_scope

__all__ = ["AttentionMechanism", "BahdanauAttention", "LuongAttention", "hardmax"]

Function = Callable[..., Any]


class AttentionMechanism:
    """What `AttentionWrapper` calls: `mechanism(query, state)` returns alignments and state.

    Alignments [batch, memory steps] are the weights of the steps of `values`.
    """

    values: Any
    keys: Any

    @property
    def alignments_size(self) -> Any:
        """The number of steps of the memory."""
        raise NotImplementedError

    @property
    def state_size(self) -> Any:
        """The size of the state between queries."""
        raise NotImplementedError


class Memory(AttentionMechanism):
    """The base of all mechanisms: memory, keys and mask.

    Args:
        query_layer, memory_layer: projections of queries and of the memory, or `None`.
        memory: [batch, time, ...]; masked after `memory_sequence_length`.
        probability_fn: from scores and the previous state to alignments.
        score_mask_value: the score of masked steps; minus infinity by default.

    Raises:
        ShapeError: the inner dimensions of the memory are not known.
    """

    def __init__(
        self, query_layer: Any, memory: Any, probability_fn: Function,
        memory_sequence_length: Any = None, memory_layer: Any = None,
        check_inner_dims_defined: bool = True, score_mask_value: Any = None,
        custom_key_value_fn: Function | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        self.query_layer, self.memory_layer = query_layer, memory_layer
        self.dtype = float32 if memory_layer is None else memory_layer.dtype
        self._probability = probability_fn
        self._lengths = memory_sequence_length
        self._masked = -np.inf if score_mask_value is None else score_mask_value
        with name_scope(name, type(self).__name__ + "Init", [memory]):
            x = convert_to_tensor(memory, name="memory")
            if check_inner_dims_defined and not x.shape[2:].is_fully_defined():
                raise fail(
                    ShapeError, f"{type(self).__name__}: memory: expected known inner sizes: {x}"
                )
            self.values: Any = x if self._lengths is None else x * self._mask(x)
        self.keys: Any = self.values if memory_layer is None else memory_layer(self.values)
        if custom_key_value_fn is not None:
            self.keys, self.values = custom_key_value_fn(self.keys, self.values)

    def _mask(self, x: Tensor) -> Tensor:
        mask = sequence_mask(self._lengths, shape(x)[1], dtype=x.dtype.base_dtype)
        for _ in range((x.shape.ndims or 2) - 2):
            mask = expand_dims(mask, -1)
        return mask

    @property
    def batch_size(self) -> Any:
        """The number of memories."""
        known = self.keys.shape.as_list()[0]
        return shape(self.keys)[0] if known is None else known

    @property
    def alignments_size(self) -> Any:
        """The number of steps of the memory."""
        known = self.keys.shape.as_list()[1]
        return shape(self.keys)[1] if known is None else known

    @property
    def state_size(self) -> Any:
        """The size of the alignments, which are the state."""
        return self.alignments_size

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Tensor:
        """The alignments before the first query: zeros."""
        found = zeros([batch_size, self.alignments_size], dtype)
        known = batch_size if isinstance(batch_size, int) else None
        found.set_shape([known, self.keys.shape.as_list()[1]])
        return found

    def initial_state(self, batch_size: Any, dtype: Any) -> Tensor:
        """The state before the first query: the alignments."""
        return self.initial_alignments(batch_size, dtype)

    def score(self, query: Any) -> Tensor:
        """Scores of the memory's steps: [batch, memory steps]."""
        raise NotImplementedError

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        """Alignments for a query [batch, depth], and the next state, which is the same."""
        score = self.score(query)
        if self._lengths is not None:
            mask = sequence_mask(self._lengths, shape(score)[1])
            score = where(mask, score, fill(shape(score), cast(self._masked, score.dtype)))
        alignments = self._probability(score, state)
        return alignments, alignments


class LuongAttention(Memory):
    """Luong's attention: dot products of query and keys.

    Args:
        num_units: the depth of keys and queries.
        memory: [batch, time, depth]: the outputs of an encoder.
        memory_sequence_length: [batch]: later steps are masked.
        scale: multiply scores by a variable.
        probability_fn: from scores to alignments; softmax by default.
        score_mask_value: the score of masked steps; minus infinity by default.
        dtype: of the variables.
        custom_key_value_fn: maps keys and values to others.
    """

    def __init__(
        self, num_units: int, memory: Any, memory_sequence_length: Any = None, scale: bool = False,
        probability_fn: Function | None = None, score_mask_value: Any = None, dtype: Any = None,
        custom_key_value_fn: Function | None = None, name: str = "LuongAttention",
    ) -> None:  # fmt: skip
        layer = Dense(num_units, name="memory_layer", use_bias=False, dtype=dtype or float32)
        super().__init__(
            None, memory, _of_scores(probability_fn), memory_sequence_length, layer, True,
            score_mask_value, custom_key_value_fn, name,
        )  # fmt: skip
        self._scale = scale

    def score(self, query: Any) -> Tensor:
        """Dot products of query and keys, scaled if requested."""
        with variable_scope(None, default_name="luong_attention", values=[query]):
            return luong_score(query, self.keys, self._scale)


class BahdanauAttention(Memory):
    """Bahdanau's attention: a layer of tanh units over query and keys.

    Args:
        num_units: the depth of queries and keys.
        memory: [batch, time, depth]: the outputs of an encoder.
        memory_sequence_length: [batch]: later steps are masked.
        normalize: use weight normalization (Salimans and Kingma, "Weight Normalization", 2016) and
            a bias.
        probability_fn: from scores to alignments; softmax by default.
        score_mask_value: the score of masked steps; minus infinity by default.
        dtype: of the variables.
        custom_key_value_fn: maps keys and values to others.
    """

    def __init__(
        self, num_units: int, memory: Any, memory_sequence_length: Any = None,
        normalize: bool = False, probability_fn: Function | None = None,
        score_mask_value: Any = None, dtype: Any = None,
        custom_key_value_fn: Function | None = None, name: str = "BahdanauAttention",
    ) -> None:  # fmt: skip
        query, key = two_layers(num_units, dtype)
        super().__init__(
            query, memory, _of_scores(probability_fn), memory_sequence_length, key, True,
            score_mask_value, custom_key_value_fn, name,
        )  # fmt: skip
        self._units, self._normalize = num_units, normalize

    def score(self, query: Any) -> Tensor:
        """Weighted sums of tanh(query + key)."""
        with variable_scope(None, default_name="bahdanau_attention", values=[query]):
            return bahdanau_score(self.query_layer(query), self.keys, self._units, self._normalize)


def two_layers(units: int, dtype: Any) -> tuple[Dense, Dense]:
    """Projections of queries and of the memory."""
    kind = as_dtype(dtype or float32)
    query = Dense(units, name="query_layer", use_bias=False, dtype=kind)
    return query, Dense(units, name="memory_layer", use_bias=False, dtype=kind)


def _of_scores(given: Function | None) -> Function:
    function = given or softmax
    return lambda score, _: function(score)


def luong_score(query: Any, keys: Any, scale: bool) -> Tensor:
    """Dot products of queries [batch, depth] and keys [batch, time, depth].

    Raises:
        ShapeError: the depths differ.
    """
    x = convert_to_tensor(query)
    depths = x.shape.as_list()[-1], keys.shape.as_list()[-1]
    if depths[0] != depths[1]:
        raise fail(
            ShapeError,
            "LuongAttention: expected queries as deep as keys (num_units), got"
            f" {depths[0]} and {depths[1]}",
        )
    score = squeeze(matmul(expand_dims(x, 1), keys, transpose_b=True), [1])
    if not scale:
        return score
    kind = x.dtype.base_dtype
    return get_variable("attention_g", [], kind, initializer=constant_initializer(1.0)) * score


def bahdanau_score(query: Any, keys: Any, units: int, normalize: bool) -> Tensor:
    """Weighted sums of tanh(query + key)."""
    kind = query.dtype.base_dtype
    v = get_variable("attention_v", [units], kind)
    both = keys + expand_dims(query, 1)
    if not normalize:
        return reduce_sum(v * tanh(both), [2])
    start = constant_initializer((1.0 / units) ** 0.5)
    g = get_variable("attention_g", [], kind, initializer=start)
    b = get_variable("attention_b", [units], kind, initializer=zeros_initializer())
    return reduce_sum(g * v * rsqrt(reduce_sum(square(v))) * tanh(both + b), [2])


def hardmax(logits: Any, name: str | None = None) -> Tensor:
    """One-hot of the maximum along the last axis."""
    with name_scope(name, "Hardmax", [logits]):
        x = convert_to_tensor(logits, name="logits")
        depth = x.shape.as_list()[-1]
        size = shape(x)[-1] if depth is None else depth
        return one_hot(argmax(x, -1), size, dtype=x.dtype.base_dtype)

"""Monotonic attention: it never moves back to earlier steps.

Raffel et al., "Online and Linear-Time Attention by Enforcing Monotonic Alignments" (2017).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from weft.errors import ArgumentError
from weft.ops.reduction.cumulative import product_of_logarithms
from weft.tf1.contrib.seq2seq.attention import Memory, bahdanau_score, luong_score, two_layers
from weft.tf1.control.slice_loop import over_slices
from weft.tf1.creation import one_hot, ones_like, zeros, zeros_like
from weft.tf1.elementwise.arithmetic import cast, sigmoid
from weft.tf1.elementwise.clip import clip_by_value
from weft.tf1.elementwise.declared import cumprod, cumsum
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.dtypes import float32, int32
from weft.tf1.framework.graph import emit, fail, name_scope
from weft.tf1.framework.tensor import Tensor
from weft.tf1.layers.dense import Dense
from weft.tf1.random.distribution import random_normal
from weft.tf1.shaping.arrangement import concat, shape, transpose
from weft.tf1.variable.initializer import constant_initializer
from weft.tf1.variable.variable_scope import get_variable, variable_scope

__all__ = [
    "BahdanauMonotonicAttention", "LuongMonotonicAttention", "monotonic_attention", "safe_cumprod",
]  # fmt: skip


def safe_cumprod(x: Any, axis: int = 0, exclusive: bool = False, reverse: bool = False) -> Tensor:
    """Cumulative products computed with logarithms: gradients stay finite at 0.

    Args:
        x: numbers in [0, 1].
    """
    with name_scope(None, "SafeCumprod", [x]):
        tensor = convert_to_tensor(x, name="x")
        tiny = float(np.finfo(tensor.dtype.base_dtype.as_numpy_dtype).tiny)
        inputs = [clip_by_value(tensor, tiny, 1.0)]
        return emit(
            "Exp", inputs, product_of_logarithms, axis=axis, exclusive=exclusive, reverse=reverse,
            name="Exp",
        )  # fmt: skip


def monotonic_attention(p_choose_i: Any, previous_attention: Any, mode: str) -> Tensor:
    """The probability that each step of the memory is attended to: [batch, memory steps].

    Args:
        p_choose_i: the probability of stopping at a step, once it is reached.
        previous_attention: the probabilities at the previous output step.
        mode: `recursive` is exact; `parallel` uses a cumulative sum and product, which lose
            precision in long memories; `hard` is for probabilities 0 and 1.

    Raises:
        ArgumentError: the mode is unknown.
    """
    p, before = convert_to_tensor(p_choose_i), convert_to_tensor(previous_attention)
    if mode == "recursive":
        ones = ones_like(p)[:, :1]
        stay = concat([ones, 1 - p[:, :-1]], 1)

        def step(state: list[Tensor], rows: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
            found = rows[0] * state[0] + rows[1]
            return [found], [found]

        start = zeros_like(p[:, 0])
        (reached,) = over_slices(step, [start], [transpose(stay), transpose(before)])[1]
        return p * transpose(reached)
    if mode == "parallel":
        passed = safe_cumprod(1 - p, axis=1, exclusive=True)
        return p * passed * cumsum(before / clip_by_value(passed, 1e-10, 1.0), axis=1)
    if mode == "hard":
        chosen = p * cumsum(before, axis=1)
        return chosen * cumprod(1 - chosen, axis=1, exclusive=True)
    raise fail(
        ArgumentError,
        f"monotonic_attention: mode: expected 'recursive', 'parallel' or 'hard', got {mode!r}",
    )


def _alignments(score: Any, before: Any, noise: float, seed: int | None, mode: str) -> Tensor:
    """Alignments from scores and the previous alignments."""
    if noise > 0:
        score = score + noise * random_normal(shape(score), dtype=score.dtype, seed=seed)
    hard = mode == "hard"
    p = cast(score > 0, score.dtype.base_dtype) if hard else sigmoid(score)
    return monotonic_attention(p, before, mode)


class _Monotonic(Memory):
    """The base of both mechanisms: they start at the first step of the memory."""

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Tensor:
        """All of the weight on the first step."""
        first = one_hot(zeros([batch_size], int32), self.alignments_size, dtype=dtype)
        known = batch_size if isinstance(batch_size, int) else None
        first.set_shape([known, self.keys.shape.as_list()[1]])
        return first


def _bias(like: Tensor, start: float) -> Any:
    kind = like.dtype.base_dtype
    return get_variable("attention_score_bias", [], kind, initializer=constant_initializer(start))


class BahdanauMonotonicAttention(_Monotonic):
    """Monotonic `BahdanauAttention`.

    Args:
        sigmoid_noise: the deviation of noise added to scores in training.
        sigmoid_noise_seed: of that noise.
        score_bias_init: the initial score bias; use negative values for long memories.
        mode: as in `monotonic_attention`.
    """

    def __init__(
        self, num_units: int, memory: Any, memory_sequence_length: Any = None,
        normalize: bool = False, score_mask_value: Any = None, sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: int | None = None, score_bias_init: float = 0.0,
        mode: str = "parallel", dtype: Any = None, name: str = "BahdanauMonotonicAttention",
    ) -> None:  # fmt: skip
        chances = functools.partial(
            _alignments, noise=sigmoid_noise, seed=sigmoid_noise_seed, mode=mode
        )
        query, key = two_layers(num_units, dtype)
        super().__init__(
            query, memory, chances, memory_sequence_length, key, True, score_mask_value, None, name
        )
        self._units, self._normalize, self._start = num_units, normalize, score_bias_init

    def score(self, query: Any) -> Tensor:
        """Weighted sums of tanh(query + key), and a bias."""
        with variable_scope(None, default_name="bahdanau_monotonic_attention", values=[query]):
            asked = self.query_layer(query)
            score = bahdanau_score(asked, self.keys, self._units, self._normalize)
            return score + _bias(score, self._start)


class LuongMonotonicAttention(_Monotonic):
    """Monotonic `LuongAttention`; arguments as in `BahdanauMonotonicAttention`."""

    def __init__(
        self, num_units: int, memory: Any, memory_sequence_length: Any = None, scale: bool = False,
        score_mask_value: Any = None, sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: int | None = None, score_bias_init: float = 0.0,
        mode: str = "parallel", dtype: Any = None, name: str = "LuongMonotonicAttention",
    ) -> None:  # fmt: skip
        chances = functools.partial(
            _alignments, noise=sigmoid_noise, seed=sigmoid_noise_seed, mode=mode
        )
        layer = Dense(num_units, name="memory_layer", use_bias=False, dtype=dtype or float32)
        super().__init__(
            None, memory, chances, memory_sequence_length, layer, True, score_mask_value, None, name
        )
        self._scale, self._start = scale, score_bias_init

    def score(self, query: Any) -> Tensor:
        """Dot products of queries and keys, and a bias."""
        with variable_scope(None, default_name="luong_monotonic_attention", values=[query]):
            score = luong_score(query, self.keys, self._scale)
            return score + _bias(score, self._start)

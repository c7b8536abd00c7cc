"""BeamSearchDecoder: keeps the most likely sequences of each example.

Wu et al., "Google's Neural Machine Translation System" (2016), section 7, for both penalties.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from weft.errors import ArgumentError, ShapeError
from weft.tf1.contrib.seq2seq.attention_wrapper import AttentionWrapperState
from weft.tf1.contrib.seq2seq.decoder import Decoder
from weft.tf1.contrib.seq2seq.gather_tree import beams_of, gather_tree, gather_tree_from_array
from weft.tf1.contrib.seq2seq.helper import embedding_of
from weft.tf1.control.tensor_array import TensorArray
from weft.tf1.creation import fill, one_hot, ones_like, zeros
from weft.tf1.elementwise.arithmetic import (
    cast,
    equal,
    floordiv,
    log,
    logical_and,
    logical_not,
    logical_or,
    minimum,
    mod,
)
from weft.tf1.elementwise.arithmetic import pow as power
from weft.tf1.framework.convert import constant, convert_to_tensor, static_value
from weft.tf1.framework.dtypes import int32, int64
from weft.tf1.framework.graph import fail, name_scope
from weft.tf1.framework.structure import flatten, map_structure
from weft.tf1.framework.tensor import Tensor
from weft.tf1.framework.tensor_shape import TensorShape
from weft.tf1.indexing.ranking import top_k
from weft.tf1.indexing.slicing import where
from weft.tf1.nn.activation import log_softmax
from weft.tf1.reduction import reduce_max, reduce_sum
from weft.tf1.shaping.arrangement import broadcast_to, concat, expand_dims, reshape, shape, tile

__all__ = [
    "BeamSearchDecoder", "BeamSearchDecoderOutput", "BeamSearchDecoderState",
    "FinalBeamSearchDecoderOutput",
]  # fmt: skip


class BeamSearchDecoderOutput(NamedTuple):
    """The output of a step: scores, tokens, and the beams that they continue, [batch, beam]."""

    scores: Any
    predicted_ids: Any
    parent_ids: Any


class FinalBeamSearchDecoderOutput(NamedTuple):
    """Whole sequences [batch, time, beam], the best first, and the steps' outputs."""

    predicted_ids: Any
    beam_search_decoder_output: Any


class BeamSearchDecoderState(NamedTuple):
    """The state between two steps.

    Attributes:
        cell_state: the cell's, [batch, beam, ...].
        log_probs: log probabilities of the beams, [batch, beam].
        finished: which beams have ended.
        lengths: the number of tokens, int64, including the end token.
        accumulated_attention_probs: summed alignments, [batch, beam, memory steps], for a coverage
            penalty.
    """

    cell_state: Any
    log_probs: Any
    finished: Any
    lengths: Any
    accumulated_attention_probs: Any


class BeamSearchDecoder(Decoder):
    """Searches for the most likely sequences.

    Args:
        cell: an `RNNCell`; with attention, its memory must come from `tile_batch`.
        embedding: a table, or a function of ids.
        start_tokens: [batch], int32.
        end_token: a scalar, int32.
        initial_state: the cell's state, [batch * beam_width, ...], from `tile_batch`.
        beam_width: the number of beams.
        output_layer: applied to the cell's outputs.
        length_penalty_weight: log probabilities of n tokens are divided by ((5 + n) / 6) to this
            power.
        coverage_penalty_weight: factor of the sum of log(min(attention, 1)) over the memory's
            steps, which is added to the scores of ended sequences.
        reorder_tensor_arrays: whether to reorder tensor arrays in the final state to the final
            beams.

    Raises:
        ShapeError: `start_tokens` is not a vector, or `end_token` not a scalar.
        ArgumentError: a coverage penalty without attention.
    """

    def __init__(
        self, cell: Any, embedding: Any, start_tokens: Any, end_token: Any, initial_state: Any,
        beam_width: int, output_layer: Any = None, length_penalty_weight: Any = 0.0,
        coverage_penalty_weight: Any = 0.0, reorder_tensor_arrays: bool = True,
    ) -> None:  # fmt: skip
        self._cell, self._output_layer, self._beams = cell, output_layer, int(beam_width)
        self._embed = embedding_of(embedding)
        self._end = convert_to_tensor(end_token, dtype=int32)
        start = convert_to_tensor(start_tokens, dtype=int32)
        for what, x, rank in (("start_tokens", start, 1), ("end_token", self._end, 0)):
            if x.shape.ndims != rank:
                raise fail(ShapeError, f"BeamSearchDecoder: {what}: expected rank {rank}, got {x}")
        known = start.shape.as_list()[0]
        self._batch = shape(start)[0] if known is None else known
        self._first = self._embed(tile(expand_dims(start, 1), [1, self._beams]))
        self._initial = map_structure(self._split, initial_state)
        self._length_weight, self._coverage_weight = length_penalty_weight, coverage_penalty_weight
        self._reorder = reorder_tensor_arrays

    @property
    def batch_size(self) -> Any:
        """The batch size."""
        return self._batch

    @property
    def tracks_own_finished(self) -> bool:
        """True: beams change places, so each step reports all finished ones."""
        return True

    @property
    def output_size(self) -> BeamSearchDecoderOutput:
        """One number per beam."""
        size = TensorShape([self._beams])
        return BeamSearchDecoderOutput(size, size, size)

    @property
    def output_dtype(self) -> BeamSearchDecoderOutput:
        """Scores have the state's type."""
        return BeamSearchDecoderOutput(self._dtype, int32, int32)

    @property
    def _dtype(self) -> Any:
        return flatten(self._initial)[0].dtype.base_dtype

    def _split(self, x: Any) -> Any:
        """[batch * beam, ...] reshaped to [batch, beam, ...]; scalars and arrays stay."""
        if isinstance(x, TensorArray) or x.shape.ndims == 0:
            return x
        given, batch = x.shape.as_list(), self._batch
        if isinstance(batch, int) and given[0] not in (None, batch * self._beams):
            raise fail(
                ShapeError,
                f"BeamSearchDecoder: expected states of {batch} * {self._beams} rows"
                f" (tf.contrib.seq2seq.tile_batch), got {x}",
            )
        found = reshape(x, concat([[batch, self._beams], shape(x)[1:]], 0))
        found.set_shape([batch if isinstance(batch, int) else None, self._beams, *given[1:]])
        return found

    def _merge(self, x: Any) -> Any:
        """[batch, beam, ...] reshaped to [batch * beam, ...]; scalars and arrays stay."""
        if isinstance(x, TensorArray) or x.shape.ndims < 2:
            return x
        given = x.shape.as_list()
        found = reshape(x, concat([[self._batch * self._beams], shape(x)[2:]], 0))
        rows = None if given[0] is None else given[0] * self._beams
        found.set_shape([rows, *given[2:]])
        return found

    def initialize(self, name: str | None = None) -> tuple[Any, Any, BeamSearchDecoderState]:
        """Only the first beam is alive: all beams start equal."""
        dims = [self._batch, self._beams]
        first = one_hot(zeros([self._batch], int32), self._beams, dtype=int32) > 0
        chances = where(first, zeros(dims, self._dtype), fill(dims, cast(-np.inf, self._dtype)))
        attention: Any = ()
        if self._covers:
            attention = _alignments(self._initial)
            if attention is None:
                raise fail(
                    ArgumentError,
                    "BeamSearchDecoder: coverage_penalty_weight: expected a cell with attention",
                )
        finished = logical_not(first)
        state = BeamSearchDecoderState(
            self._initial, chances, finished, zeros(dims, int64), attention
        )
        return finished, self._first, state

    @property
    def _covers(self) -> bool:
        known = static_value(self._coverage_weight)
        return known is None or float(known) != 0

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> Any:
        """One step: the best continuations of all beams."""
        with name_scope(name, "BeamSearchDecoderStep"):
            logits, after = self._cell(
                map_structure(self._merge, inputs), map_structure(self._merge, state.cell_state)
            )
            if self._output_layer is not None:
                logits = self._output_layer(logits)
            after = map_structure(self._split, after)
            output, new = self._search(self._split(logits), after, state)
            return output, new, self._embed(output.predicted_ids), new.finished

    def _search(
        self, logits: Tensor, cell_state: Any, state: BeamSearchDecoderState
    ) -> tuple[BeamSearchDecoderOutput, BeamSearchDecoderState]:
        words: int | None = logits.shape.as_list()[-1]
        if words is None:
            raise fail(
                ShapeError, f"BeamSearchDecoder: expected logits of known classes, got {logits}"
            )
        ended = expand_dims(state.finished, 2)
        is_end = equal(one_hot(self._end, words, dtype=int32), 1)
        kind = logits.dtype.base_dtype
        lowest = float(np.finfo(kind.as_numpy_dtype).min)
        chances = log_softmax(logits)
        only_end = where(is_end, zeros([words], kind), fill([words], constant(lowest, kind)))
        chances = where(
            broadcast_to(ended, shape(chances)), broadcast_to(only_end, shape(chances)), chances
        )
        total = expand_dims(state.log_probs, 2) + chances
        grows = logical_and(logical_not(ended), logical_not(is_end))
        lengths = expand_dims(state.lengths, 2) + cast(grows, int64)
        attention = self._attention(cell_state, state)
        scores = self._scores(total, lengths, state.finished, attention)
        flat = [self._batch, self._beams * words]
        best, places = top_k(reshape(scores, flat), self._beams)
        parents, tokens = floordiv(places, words), mod(places, words)
        before = beams_of(cast(state.finished, int32), parents) > 0
        new = BeamSearchDecoderState(
            map_structure(lambda x: _of_beams(x, parents), cell_state),
            beams_of(reshape(total, flat), places), logical_or(before, equal(tokens, self._end)),
            beams_of(state.lengths, parents) + cast(logical_not(before), int64),
            map_structure(lambda x: beams_of(x, parents), attention),
        )  # fmt: skip
        return BeamSearchDecoderOutput(best, tokens, parents), new

    def _attention(self, cell_state: Any, state: BeamSearchDecoderState) -> Any:
        """Summed alignments of sequences that have not ended."""
        if not self._covers:
            return ()
        found = _alignments(cell_state)
        alive = cast(logical_not(state.finished), found.dtype.base_dtype)
        return state.accumulated_attention_probs + found * expand_dims(alive, 2)

    def _scores(self, total: Tensor, lengths: Tensor, ended: Tensor, attention: Any) -> Tensor:
        weight = static_value(self._length_weight)
        scores = total
        if weight is None or float(weight) != 0:
            power_ = cast(convert_to_tensor(self._length_weight), total.dtype.base_dtype)
            scores = total / power((5 + cast(lengths, total.dtype.base_dtype)) / 6, power_)
        if not self._covers:
            return scores
        heard = where(equal(attention, 0), ones_like(attention), attention)
        penalty = reduce_sum(log(minimum(heard, 1.0)), 2) * cast(ended, heard.dtype.base_dtype)
        return scores + expand_dims(penalty * self._coverage_weight, 2)

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> Any:
        """Whole sequences, filled with end tokens."""
        longest = cast(reduce_max(final_state.lengths, 1), int32)
        ids = gather_tree(outputs.predicted_ids, outputs.parent_ids, longest, self._end)
        state = final_state
        if self._reorder:
            cell = map_structure(
                lambda x: (
                    gather_tree_from_array(x.stack(), outputs.parent_ids, state.lengths)
                    if isinstance(x, TensorArray)
                    else x
                ),
                state.cell_state,
            )
            state = state._replace(cell_state=cell)
        return FinalBeamSearchDecoderOutput(ids, outputs), state


def _of_beams(x: Any, parents: Tensor) -> Any:
    if isinstance(x, TensorArray) or x.shape.ndims < 2:
        return x
    return beams_of(x, parents)


def _alignments(state: Any) -> Any:
    """The mean of the last alignments in a cell's state; `None` without attention."""
    if isinstance(state, AttentionWrapperState):
        found = flatten(state.alignments)
        total = found[0]
        for more in found[1:]:
            total = total + more
        return total / len(found)
    if isinstance(state, list | tuple):
        for part in state:
            inner = _alignments(part)
            if inner is not None:
                return inner
    return None

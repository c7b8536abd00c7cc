"""Scheduled sampling: the decoder's output is the next input with some probability.

Bengio et al., "Scheduled Sampling for Sequence Prediction with Recurrent Neural Networks" (2015).
"""

from __future__ import annotations

from typing import Any

from weft.errors import ShapeError
from weft.tf1.contrib.seq2seq.helper import (
    Function,
    TrainingHelper,
    drawn,
    embedding_of,
    read_rows,
    turned,
    unstacked,
)
from weft.tf1.creation import fill
from weft.tf1.elementwise.arithmetic import cast, less, maximum
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.dtypes import int32
from weft.tf1.framework.graph import fail
from weft.tf1.framework.structure import map_structure
from weft.tf1.framework.tensor import Tensor
from weft.tf1.indexing.slicing import where
from weft.tf1.random.distribution import random_uniform
from weft.tf1.shaping.arrangement import concat, shape

__all__ = ["ScheduledEmbeddingTrainingHelper", "ScheduledOutputTrainingHelper"]


class ScheduledEmbeddingTrainingHelper(TrainingHelper):
    """The true inputs or, with some probability, embedded samples.

    Samples are -1 where none is drawn.

    Args:
        embedding: a table, or a function of ids.
        sampling_probability: a scalar, or [batch].
        seed: of the samples.
        scheduling_seed: of whether to sample.

    Raises:
        ShapeError: the probability has more than one dimension.
    """

    def __init__(
        self, inputs: Any, sequence_length: Any, embedding: Any, sampling_probability: Any,
        time_major: bool = False, seed: int | None = None, scheduling_seed: int | None = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(inputs, sequence_length, time_major, name)
        self._embed = embedding_of(embedding)
        self._chance = _probability(type(self).__name__, sampling_probability)
        self._seeds = seed, scheduling_seed

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """Classes drawn by the logits, or -1."""
        found = drawn(outputs, self._seeds[0])
        chances = random_uniform(shape(found), dtype=self._chance.dtype, seed=self._seeds[1])
        return where(less(chances, self._chance), found, fill(shape(found), -1))

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """The next inputs: embeddings where a sample was drawn."""
        finished, inputs, state = super().next_inputs(time, outputs, state)
        embedded = self._embed(maximum(sample_ids, 0))
        return finished, where(sample_ids > -1, embedded, inputs), state


class ScheduledOutputTrainingHelper(TrainingHelper):
    """The true inputs or, with some probability, the step's outputs.

    Samples are 1 where outputs are the next inputs, else 0.

    Args:
        sampling_probability: a scalar, or [batch].
        seed: of whether to sample.
        next_inputs_fn: from outputs to inputs; the outputs themselves by default.
        auxiliary_inputs: nested tensors like the inputs, concatenated to inputs and outputs.

    Raises:
        ShapeError: the probability has more than one dimension.
    """

    def __init__(
        self, inputs: Any, sequence_length: Any, sampling_probability: Any,
        time_major: bool = False, seed: int | None = None, next_inputs_fn: Function | None = None,
        auxiliary_inputs: Any = None, name: str | None = None,
    ) -> None:  # fmt: skip
        self._chance = _probability(type(self).__name__, sampling_probability)
        self._seed, self._next = seed, next_inputs_fn
        self._more: Any = None
        if auxiliary_inputs is not None:
            more = map_structure(convert_to_tensor, auxiliary_inputs)
            inputs = _beside(map_structure(convert_to_tensor, inputs), more)
            steps = more if time_major else map_structure(turned, more)
            self._more = map_structure(unstacked, steps)
        super().__init__(inputs, sequence_length, time_major, name)

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """Which sequences take their outputs as next inputs."""
        chances = random_uniform([self.batch_size], dtype=self._chance.dtype, seed=self._seed)
        return cast(less(chances, self._chance), int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """The next inputs: outputs where a sample was drawn."""
        finished, inputs, state = super().next_inputs(time, outputs, state)
        given = outputs if self._next is None else self._next(outputs)
        if self._more is not None:
            given = _beside(given, read_rows(self._more, time, finished))
        is_sampled = sample_ids > 0
        return finished, map_structure(lambda a, b: where(is_sampled, a, b), given, inputs), state


def _beside(xs: Any, more: Any) -> Any:
    return map_structure(lambda a, b: concat([a, b], -1), xs, more)


def _probability(helper: str, given: Any) -> Tensor:
    chance = convert_to_tensor(given)
    if chance.shape.ndims not in (0, 1):
        text = "expected sampling_probability to be a scalar or a vector"
        raise fail(ShapeError, f"{helper}: {text}, got {chance}")
    return chance

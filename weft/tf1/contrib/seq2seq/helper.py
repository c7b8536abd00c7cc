"""Helpers of a BasicDecoder: they sample from its outputs and provide its next inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.errors import ArgumentError, ShapeError
from weft.tf1.control.tensor_array import TensorArray
from weft.tf1.creation import fill, zeros_like
from weft.tf1.elementwise.arithmetic import cast, equal
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.dtypes import int32
from weft.tf1.framework.graph import fail
from weft.tf1.framework.structure import map_structure
from weft.tf1.framework.tensor import Tensor
from weft.tf1.framework.tensor_shape import TensorShape, as_shape
from weft.tf1.indexing.lookup import embedding_lookup
from weft.tf1.indexing.slicing import where
from weft.tf1.random.distribution import categorical
from weft.tf1.reduction import argmax, reduce_all
from weft.tf1.shaping.arrangement import shape, squeeze, transpose

__all__ = [
    "CustomHelper", "GreedyEmbeddingHelper", "Helper", "InferenceHelper", "SampleEmbeddingHelper",
    "TrainingHelper",
]  # fmt: skip

Function = Callable[..., Any]


class Helper:
    """The interface for a BasicDecoder's inputs; subclasses define these properties and methods."""

    _shape: Any = TensorShape([])
    _dtype: Any = int32

    @property
    def batch_size(self) -> Any:
        """The number of sequences."""
        raise NotImplementedError

    @property
    def sample_ids_shape(self) -> Any:
        """The shape of a sample, without the batch axis."""
        return self._shape

    @property
    def sample_ids_dtype(self) -> Any:
        """The element type of a sample."""
        return self._dtype

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """Which sequences are finished initially, and the first inputs."""
        raise NotImplementedError

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """A sample from a step's outputs."""
        raise NotImplementedError

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """Which sequences are finished, the next inputs, the next state."""
        raise NotImplementedError


class CustomHelper(Helper):
    """A helper made from three functions.

    Args:
        initialize_fn: `() -> (finished, first_inputs)`.
        sample_fn: `(time, outputs, state) -> sample_ids`.
        next_inputs_fn: `(time, outputs, state, sample_ids) -> (finished, next_inputs, next_state)`.
        sample_ids_shape: of a sample, without the batch axis; scalars by default.
        sample_ids_dtype: int32 by default.
    """

    def __init__(
        self, initialize_fn: Function, sample_fn: Function, next_inputs_fn: Function,
        sample_ids_shape: Any = None, sample_ids_dtype: Any = None,
    ) -> None:  # fmt: skip
        self._functions = initialize_fn, sample_fn, next_inputs_fn
        self._shape = TensorShape([] if sample_ids_shape is None else sample_ids_shape)
        self._dtype = int32 if sample_ids_dtype is None else sample_ids_dtype
        self._batch_size: Any = None

    @property
    def batch_size(self) -> Any:
        """The number of sequences.

        Raises:
            ArgumentError: `initialize` was not called yet.
        """
        if self._batch_size is None:
            raise fail(ArgumentError, "CustomHelper: batch_size: expected initialize() before it")
        return self._batch_size

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """Which sequences are finished initially, and the first inputs."""
        finished, inputs = self._functions[0]()
        self._batch_size = _count(convert_to_tensor(finished))
        return finished, inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """A sample from a step's outputs."""
        return self._functions[1](time=time, outputs=outputs, state=state)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """Which sequences are finished, the next inputs, the next state."""
        return self._functions[2](time=time, outputs=outputs, state=state, sample_ids=sample_ids)


class TrainingHelper(Helper):
    """Teacher forcing: always the true inputs; samples are the most likely classes.

    Args:
        inputs: nested tensors [batch, time, ...].
        sequence_length: [batch], int32.
        time_major: inputs are [time, batch, ...].

    Raises:
        ShapeError: `sequence_length` is not a vector.
    """

    def __init__(
        self, inputs: Any, sequence_length: Any, time_major: bool = False, name: str | None = None
    ) -> None:
        tensors = map_structure(convert_to_tensor, inputs)
        self._lengths = _vector("sequence_length", sequence_length)
        steps = tensors if time_major else map_structure(turned, tensors)
        self._rows = map_structure(unstacked, steps)

    @property
    def batch_size(self) -> Any:
        """The number of sequences."""
        return _count(self._lengths)

    @property
    def sequence_length(self) -> Tensor:
        """The length of each sequence."""
        return self._lengths

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """Which sequences are empty, and the first inputs."""
        return equal(self._lengths, 0), map_structure(lambda a: a.read(0), self._rows)

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """The most likely classes."""
        return argmax(outputs, -1, output_type=int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """The next inputs; after the last step they are arbitrary."""
        finished = self._lengths <= time + 1
        return finished, read_rows(self._rows, time, finished), state


class GreedyEmbeddingHelper(Helper):
    """Greedy decoding: the most likely class, embedded, is the next input, until the end token.

    Args:
        embedding: a table, or a function of ids.
        start_tokens: [batch], int32.
        end_token: a scalar, int32.

    Raises:
        ShapeError: `start_tokens` is not a vector, or `end_token` not a scalar.
    """

    def __init__(self, embedding: Any, start_tokens: Any, end_token: Any) -> None:
        self._embed = embedding_of(embedding)
        self._start = _vector("start_tokens", start_tokens)
        self._end = convert_to_tensor(end_token, dtype=int32)
        if self._end.shape.ndims != 0:
            raise fail(ShapeError, f"end_token: expected a scalar, got {self._end}")
        self._first = self._embed(self._start)

    @property
    def batch_size(self) -> Any:
        """The number of sequences."""
        return _count(self._start)

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """No sequence is finished; the embedded start tokens."""
        return fill(shape(self._start), False), self._first

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """The most likely classes."""
        return argmax(outputs, -1, output_type=int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """The embedded samples."""
        return equal(sample_ids, self._end), self._embed(sample_ids), state


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """Sampling: a class drawn by the logits, embedded, is the next input, until the end token.

    Args:
        softmax_temperature: divides the logits.
        seed: of the samples.
    """

    def __init__(
        self, embedding: Any, start_tokens: Any, end_token: Any, softmax_temperature: Any = None,
        seed: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(embedding, start_tokens, end_token)
        self._temperature, self._seed = softmax_temperature, seed

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """Classes drawn by the logits."""
        logits = outputs if self._temperature is None else outputs / self._temperature
        return drawn(logits, self._seed)


class InferenceHelper(Helper):
    """Custom sampling: the next input is sampled by a function, until another one signals the end.

    Args:
        sample_fn: from outputs to samples.
        sample_shape: of a sample, without the batch axis.
        sample_dtype: of samples.
        start_inputs: [batch, ...].
        end_fn: from samples to finished flags.
        next_inputs_fn: from samples to inputs; the samples themselves by default.
    """

    def __init__(
        self, sample_fn: Function, sample_shape: Any, sample_dtype: Any, start_inputs: Any,
        end_fn: Function, next_inputs_fn: Function | None = None,
    ) -> None:  # fmt: skip
        self._sample, self._ends, self._next = sample_fn, end_fn, next_inputs_fn
        self._shape, self._dtype = as_shape(sample_shape), sample_dtype
        self._start = convert_to_tensor(start_inputs)

    @property
    def batch_size(self) -> Any:
        """The number of sequences."""
        return _count(self._start)

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """No sequence is finished; the start inputs."""
        return fill(shape(self._start)[:1], False), self._start

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """The function's samples."""
        return self._sample(outputs)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """The samples, or `next_inputs_fn` of them."""
        inputs = sample_ids if self._next is None else self._next(sample_ids)
        return self._ends(sample_ids), inputs, state


def embedding_of(given: Any) -> Function:
    """A function of ids; for a table, the lookup."""
    return given if callable(given) else lambda ids: embedding_lookup(given, ids)


def _vector(what: str, value: Any) -> Tensor:
    tensor = convert_to_tensor(value)
    tensor = tensor if tensor.dtype.base_dtype is int32 else cast(tensor, int32)
    if tensor.shape.ndims not in (1, None):
        raise fail(ShapeError, f"{what}: expected a vector, got {tensor}")
    return tensor


def _count(x: Tensor) -> Any:
    known = x.shape.as_list()[0] if x.shape.ndims else None
    return shape(x)[0] if known is None else known


def turned(x: Tensor) -> Tensor:
    """`x` with its first two axes swapped."""
    return transpose(x, [1, 0, *range(2, x.shape.ndims or 2)])


def read_rows(rows: Any, time: Any, finished: Any) -> Any:
    """The step after `time`, of nested arrays; arbitrary after the last step."""
    place = where(reduce_all(finished), zeros_like(time), time + 1)
    return map_structure(lambda a: a.read(place), rows)


def unstacked(x: Tensor) -> TensorArray:
    """An array of the steps of `x`, its first axis."""
    found = TensorArray(
        x.dtype.base_dtype, shape(x)[0], clear_after_read=False, element_shape=x.shape[1:]
    )
    return found.unstack(x)  # of one helper, several decoders may read


def drawn(logits: Any, seed: int | None) -> Tensor:
    """Classes drawn by their logits."""
    return squeeze(categorical(logits, 1, int32, seed), [1])

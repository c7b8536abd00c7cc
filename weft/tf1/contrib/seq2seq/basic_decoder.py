"""BasicDecoder: a cell whose next inputs a helper chooses."""

from __future__ import annotations

from typing import Any, NamedTuple

from weft.tf1.contrib.seq2seq.decoder import Decoder
from weft.tf1.contrib.seq2seq.helper import Helper
from weft.tf1.framework.graph import name_scope
from weft.tf1.framework.structure import flatten, map_structure

__all__ = ["BasicDecoder", "BasicDecoderOutput"]


class BasicDecoderOutput(NamedTuple):
    """The output of a step: the cell's output (usually logits), and the helper's sample."""

    rnn_output: Any
    sample_id: Any


class BasicDecoder(Decoder):
    """Runs a cell on inputs from a helper: the true ones, or samples.

    Args:
        cell: an `RNNCell`.
        helper: a `Helper`.
        initial_state: the cell's initial state.
        output_layer: applied to the cell's outputs, before sampling: a `tf.layers.Dense`.

    >>> import weft.tf1 as tf
    >>> from weft.tf1.contrib import seq2seq
    >>> with tf.Graph().as_default():
    ...     cell = tf.nn.rnn_cell.GRUCell(4)
    ...     helper = seq2seq.TrainingHelper(tf.zeros([2, 5, 3]), tf.constant([5, 4]))
    ...     decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(2, tf.float32))
    ...     outputs, _, lengths = seq2seq.dynamic_decode(decoder)
    ...     print(outputs.rnn_output.shape, outputs.sample_id.shape)
    (2, 5, 4) (2, 5)
    """

    def __init__(
        self, cell: Any, helper: Helper, initial_state: Any, output_layer: Any = None
    ) -> None:
        self._cell, self._helper = cell, helper
        self._initial_state, self._output_layer = initial_state, output_layer

    @property
    def batch_size(self) -> Any:
        """The helper's batch size."""
        return self._helper.batch_size

    @property
    def output_size(self) -> BasicDecoderOutput:
        """Sizes of outputs and samples."""
        size = self._cell.output_size
        if self._output_layer is not None:
            size = map_structure(
                lambda n: self._output_layer.compute_output_shape([None, n])[1:], size
            )
        return BasicDecoderOutput(size, self._helper.sample_ids_shape)

    @property
    def output_dtype(self) -> BasicDecoderOutput:
        """Element types of outputs (that of the state) and of samples."""
        dtype = flatten(self._initial_state)[0].dtype.base_dtype
        sizes = map_structure(lambda _: dtype, self._cell.output_size)
        return BasicDecoderOutput(sizes, self._helper.sample_ids_dtype)

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """Which sequences are finished initially, the first inputs, the initial state."""
        return (*self._helper.initialize(), self._initial_state)

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> Any:
        """One step: outputs, the next state, the next inputs, which sequences are finished."""
        with name_scope(name, "BasicDecoderStep"):
            outputs, after = self._cell(inputs, state)
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            ids = self._helper.sample(time=time, outputs=outputs, state=after)
            finished, more, after = self._helper.next_inputs(
                time=time, outputs=outputs, state=after, sample_ids=ids
            )
            return BasicDecoderOutput(outputs, ids), after, more, finished

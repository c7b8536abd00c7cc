"""Cells that only contrib has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import weft.tf1 as tf
from weft.documentation import arguments_of
from weft.tf1.nn.rnn_cell import (
    BasicLSTMCell,
    GRUCell,
    LSTMCell,
    LSTMStateTuple,
    RNNCell,
    WrapperCell,
)

__all__ = [
    "GRUBlockCell", "GRUBlockCellV2", "InputProjectionWrapper",
    "LSTMBlockCell", "LayerNormBasicLSTMCell", "OutputProjectionWrapper",
    "stack_bidirectional_dynamic_rnn", "stack_bidirectional_rnn", "transpose_batch_time",
]  # fmt: skip


class LSTMBlockCell(LSTMCell):
    """Long short-term memory, with the arguments of TensorFlow's fused cell."""

    def __init__(
        self, num_units: int, forget_bias: float = 1.0, cell_clip: float | None = None,
        use_peephole: bool = False, dtype: Any = None, reuse: bool | None = None,
        name: str = "lstm_cell",
    ) -> None:  # fmt: skip
        super().__init__(
            num_units, use_peepholes=use_peephole, cell_clip=cell_clip, forget_bias=forget_bias,
            reuse=reuse, name=name, dtype=dtype,
        )  # fmt: skip


class GRUBlockCellV2(GRUCell):
    """A gated recurrent unit, with the arguments of TensorFlow's fused cell."""

    def __init__(
        self, num_units: int | None = None, cell_size: int | None = None,
        reuse: bool | None = None, name: str = "gru_cell",
    ) -> None:  # fmt: skip
        size = num_units if cell_size is None else cell_size
        super().__init__(int(size or 0), reuse=reuse, name=name)


GRUBlockCell = GRUBlockCellV2


@arguments_of(BasicLSTMCell)
class LayerNormBasicLSTMCell(RNNCell):
    """Long short-term memory whose gates and cell are normalized (Ba et al., 2016).

    Args:
        num_units: the width of the cell.
        forget_bias: added to the forget gate.
        input_size: unused, as in TensorFlow.
        activation: of the new values and of the cell.
        layer_norm: whether to normalize.
        norm_gain, norm_shift: initial values of gamma and beta.
        dropout_keep_prob: the fraction of new values that are kept.
        dropout_prob_seed: of the random numbers.
        reuse: whether to share the variables of an earlier cell of this name.
    """

    def __init__(
        self, num_units: int, forget_bias: float = 1.0, input_size: Any = None,
        activation: Any = tf.tanh, layer_norm: bool = True, norm_gain: float = 1.0,
        norm_shift: float = 0.0, dropout_keep_prob: Any = 1.0,
        dropout_prob_seed: int | None = None, reuse: bool | None = None,
    ) -> None:  # fmt: skip
        del input_size
        super().__init__(_reuse=reuse)
        self._units, self._forget_bias, self._activation = num_units, forget_bias, activation
        self._normed, self._start = layer_norm, (norm_gain, norm_shift)
        self._keep, self._seed = dropout_keep_prob, dropout_prob_seed

    @property
    def state_size(self) -> Any:
        """Sizes of cell and output."""
        return LSTMStateTuple(self._units, self._units)

    @property
    def output_size(self) -> int:
        """The number of units."""
        return self._units

    def build(self, inputs_shape: Any) -> None:
        """Create the kernel, and a bias or the gains and shifts."""
        n, rows = self._units, inputs_shape.as_list()[-1] + self._units
        self._kernel = tf.get_variable("kernel", [rows, 4 * n])
        names = ("input", "transform", "forget", "output", "state")
        gain, shift = self._start
        self._norms = {
            name: (tf.get_variable(f"{name}/gamma", [n], initializer=tf.constant_initializer(gain)),
                   tf.get_variable(f"{name}/beta", [n], initializer=tf.constant_initializer(shift)))
            for name in (names if self._normed else ())
        }  # fmt: skip
        if not self._normed:
            self._bias = tf.get_variable("bias", [4 * n], initializer=tf.zeros_initializer())

    def _norm(self, x: Any, name: str) -> Any:
        if not self._normed:
            return x
        mean, variance = tf.nn.moments(x, [1], keep_dims=True)
        gamma, beta = self._norms[name]
        return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-12)

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        c, h = state
        x = tf.matmul(tf.concat([inputs, h], 1), self._kernel)
        x = x if self._normed else tf.nn.bias_add(x, self._bias)
        i, j, f, o = tf.split(x, 4, 1)
        i, j, f, o = (self._norm(part, name) for part, name in
                      ((i, "input"), (j, "transform"), (f, "forget"), (o, "output")))  # fmt: skip
        g = self._activation(j)
        if tf.is_tensor(self._keep) or self._keep < 1:
            g = tf.nn.dropout(g, self._keep, seed=self._seed)
        new = self._norm(c * tf.sigmoid(f + self._forget_bias) + tf.sigmoid(i) * g, "state")
        y = self._activation(new) * tf.sigmoid(o)
        return y, LSTMStateTuple(new, y)


class _Projected(WrapperCell):
    """A cell with a layer before or after it."""

    def __init__(self, cell: RNNCell, size: int, activation: Any, reuse: bool | None) -> None:
        super().__init__(cell, reuse)
        self._size, self._activation = size, activation

    def _layer(self, x: Any) -> Any:
        y = tf.layers.dense(x, self._size, name="projection", reuse=tf.AUTO_REUSE)
        return y if self._activation is None else self._activation(y)


class OutputProjectionWrapper(_Projected):
    """A cell whose output is projected.

    Args:
        cell: a cell.
        output_size: the width of the projection.
        activation: of the projection.
        reuse: whether to share variables.
    """

    def __init__(
        self, cell: RNNCell, output_size: int, activation: Any = None, reuse: bool | None = None
    ) -> None:
        super().__init__(cell, output_size, activation, reuse)

    @property
    def output_size(self) -> Any:
        """The width of the projection."""
        return self._size

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        output, state = self._cell(inputs, state)
        return self._layer(output), state


class InputProjectionWrapper(_Projected):
    """A cell whose input is projected.

    Args:
        cell: a cell.
        num_proj: the width of the projection.
        activation: of the projection.
        input_size: unused, as in TensorFlow.
        reuse: whether to share variables.
    """

    def __init__(
        self, cell: RNNCell, num_proj: int, activation: Any = None, input_size: Any = None,
        reuse: bool | None = None,
    ) -> None:  # fmt: skip
        del input_size
        super().__init__(cell, num_proj, activation, reuse)

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        return self._cell(self._layer(inputs), state)


def transpose_batch_time(x: Any) -> Any:
    """The first two axes exchanged."""
    rank = x.shape.ndims
    return tf.transpose(x, [1, 0, *range(2, rank)])


def stack_bidirectional_rnn(
    cells_fw: Sequence[RNNCell], cells_bw: Sequence[RNNCell], inputs: Sequence[Any],
    initial_states_fw: Any = None, initial_states_bw: Any = None, dtype: Any = None,
    sequence_length: Any = None, scope: Any = None,
) -> tuple[list[Any], Any, Any]:  # fmt: skip
    """Bidirectional networks of lists of steps, each on the outputs of the one below.

    Returns:
        The outputs, and the final states in both directions, a tuple each.
    """
    y, states = list(inputs), []
    with tf.variable_scope(scope or "stack_bidirectional_rnn"):
        for n, (forward, backward) in enumerate(zip(cells_fw, cells_bw, strict=True)):
            first, second = (s[n] if s else None for s in (initial_states_fw, initial_states_bw))
            with tf.variable_scope(f"cell_{n}"):
                y, *state = tf.nn.static_bidirectional_rnn(
                    forward, backward, y, first, second, dtype, sequence_length
                )
            states.append(state)
    fw, bw = zip(*states, strict=True)
    return y, fw, bw


def stack_bidirectional_dynamic_rnn(
    cells_fw: Sequence[RNNCell], cells_bw: Sequence[RNNCell], inputs: Any,
    initial_states_fw: Any = None, initial_states_bw: Any = None, dtype: Any = None,
    sequence_length: Any = None, parallel_iterations: int | None = None, time_major: bool = False,
    scope: Any = None, swap_memory: bool = False,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Bidirectional networks, each on the concatenated outputs of the one below.

    Args:
        cells_fw, cells_bw: a cell for each network and direction.
        inputs: (batch, time, width), or (time, batch, width) if `time_major`.
        initial_states_fw, initial_states_bw: a state for each network.
        dtype, sequence_length, parallel_iterations, swap_memory: as in `bidirectional_dynamic_rnn`.
        scope: of the variables.

    Returns:
        The outputs, and the final states in both directions, a tuple each.
    """
    y, states = inputs, []
    with tf.variable_scope(scope or "stack_bidirectional_rnn"):
        for n, (forward, backward) in enumerate(zip(cells_fw, cells_bw, strict=True)):
            first, second = (s[n] if s else None for s in (initial_states_fw, initial_states_bw))
            with tf.variable_scope(f"cell_{n}"):
                both, state = tf.nn.bidirectional_dynamic_rnn(
                    forward, backward, y, sequence_length, first, second, dtype,
                    parallel_iterations, swap_memory, time_major,
                )  # fmt: skip
            y = tf.concat(both, 2)
            states.append(state)
    fw, bw = zip(*states, strict=True)
    return y, fw, bw

"""Recurrent cells: one step each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import weft.tf1 as tf
from weft.documentation import Reads
from weft.ops.sequence import cell_equation
from weft.tf1.keras import activations, initializers
from weft.tf1.keras.engine import nest
from weft.tf1.keras.engine.layer import Layer
from weft.tf1.keras.engine.settings import in_train_phase
from weft.tf1.keras.layers.weighted import WeightedLayer
from weft.tf1.keras.storage.network_config import layer_from

__all__ = ["AbstractRNNCell", "GRUCell", "LSTMCell", "SimpleRNNCell", "StackedRNNCells"]


class Cell(WeightedLayer):
    """Base class.

    Args:
        units: of the state.
        activation: of the candidate.
        dropout, recurrent_dropout: fractions of inputs and of states that are zeroed in training,
            the same at all steps of a sequence.
    """

    weight_options = WeightedLayer.of("kernel", "recurrent", "bias")
    bias_initializer: Any
    bias_regularizer: Any
    bias_constraint: Any
    gates = 1

    def __init__(
        self, units: int, activation: Any = "tanh", use_bias: bool = True, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(options)
        self.units, self.use_bias = int(units), use_bias
        self.activation = activations.get(activation)
        self.dropout, self.recurrent_dropout = dropout, recurrent_dropout
        self.factors: tuple[Any, Any] = (None, None)

    state_size = Reads[Any]("units", "Sizes of the states.")
    output_size = Reads[int]("units", "Size of the output.")

    def build(self, input_shape: Any) -> None:
        """Create the kernels and the bias."""
        wide = self.units * self.gates
        self.kernel = self.weight("kernel", (input_shape.as_list()[-1], wide))
        self.recurrent_kernel = self.weight("recurrent_kernel", (self.units, wide), "recurrent")
        self.bias = self._bias() if self.use_bias else None
        self.built = True

    def _bias(self) -> Any:
        return self.weight("bias", (self.units * self.gates,))

    def prepare(self, x: Any, state: Any, training: Any) -> None:
        """Draw a sequence's dropout masks, for inputs and state of these shapes."""
        self.factors = (
            _factor(x, self.dropout, training), _factor(state, self.recurrent_dropout, training),
        )  # fmt: skip

    def dropped(self, x: Any, h: Any) -> tuple[Any, Any]:
        """Inputs and state after dropout."""
        first, second = self.factors
        return x if first is None else x * first, h if second is None else h * second

    def biased(self, x: Any) -> Any:
        """A sum plus the bias."""
        return x if self.bias is None else tf.nn.bias_add(x, self.bias)

    def _products(self, x: Any, h: Any) -> tuple[Any, Any]:
        """The matmuls with inputs and state; the first one with the bias."""
        return self.biased(tf.matmul(x, self.kernel)), tf.matmul(h, self.recurrent_kernel)


def _factor(x: Any, rate: float, training: Any) -> Any:
    if not rate:
        return None
    ones = tf.ones_like(x)
    return in_train_phase(lambda: tf.nn.dropout(ones, rate=rate), ones, training)


class SimpleRNNCell(Cell):
    """activation(x @ kernel + h @ recurrent_kernel + bias)"""

    def call(self, inputs: Any, states: Sequence[Any], training: Any = None) -> Any:
        """Output and states of a step."""
        y = cell_equation.simple(*self._products(*self.dropped(inputs, states[0])), self.activation)
        return y, [y]


class _GatedCell(Cell):
    """A gated cell, whose gates have `recurrent_activation`.

    Args:
        recurrent_activation: a function of the gates, or its name.
    """

    def __init__(
        self, units: int, activation: Any = "tanh", recurrent_activation: Any = "hard_sigmoid",
        use_bias: bool = True, **options: Any,
    ) -> None:  # fmt: skip
        options.pop("implementation", None)
        super().__init__(units, activation, use_bias, **options)
        self.recurrent_activation = activations.get(recurrent_activation)


class GRUCell(_GatedCell):
    """A gated recurrent unit (Cho et al., 2014); gates z, r, h.

    Args:
        reset_after: apply the reset gate after the matmul with the state, as in cuDNN.
    """

    gates = 3

    def __init__(self, units: int, *args: Any, reset_after: bool = False, **options: Any) -> None:
        super().__init__(units, *args, **options)
        self.reset_after = reset_after

    def _bias(self) -> Any:
        wide = 3 * self.units
        return self.weight("bias", (2, wide) if self.reset_after else (wide,))

    def call(self, inputs: Any, states: Sequence[Any], training: Any = None) -> Any:
        """Output and states of a step."""
        x, held = self.dropped(inputs, states[0])
        first, second = self.bias, None
        if self.bias is not None and self.reset_after:
            first, second = self.bias[0], self.bias[1]
        xs = tf.split(_affine(x, self.kernel, first), 3, axis=1)
        kernel, product = self.recurrent_kernel, None
        if not self.reset_after:
            kernel, product = kernel[:, : -self.units], partial(self._reset_product, held)
        hs = tf.split(_affine(held, kernel, second), 3 if self.reset_after else 2, axis=1)
        y = cell_equation.gru(
            xs, hs, states[0], "zrn", self.recurrent_activation, self.activation, product
        )
        return y, [y]

    def _reset_product(self, h: Any, r: Any) -> Any:
        return tf.matmul(r * h, self.recurrent_kernel[:, -self.units :])


def _affine(x: Any, kernel: Any, bias: Any) -> Any:
    y = tf.matmul(x, kernel)
    return y if bias is None else y + bias


class LSTMCell(_GatedCell):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997); gates i, f, c, o.

    Args:
        unit_forget_bias: whether the bias of the forget gate starts at 1.
    """

    gates = 4

    def __init__(
        self, units: int, *args: Any, unit_forget_bias: bool = True, **options: Any
    ) -> None:
        super().__init__(units, *args, **options)
        self.unit_forget_bias = unit_forget_bias

    @property
    def state_size(self) -> Any:
        """Sizes of the states."""
        return [self.units, self.units]

    def _bias(self) -> Any:
        if not self.unit_forget_bias:
            return super()._bias()
        kept, n = self.bias_initializer, self.units

        def forget(shape: Any, dtype: Any = None) -> Any:
            first = initializers.filled(kept, [n], dtype)
            return tf.concat(
                [first, tf.ones([n], dtype), initializers.filled(kept, [2 * n], dtype)], 0
            )

        return self.add_weight(
            "bias", (4 * n,), initializer=forget, regularizer=self.bias_regularizer,
            constraint=self.bias_constraint,
        )  # fmt: skip

    def call(self, inputs: Any, states: Sequence[Any], training: Any = None) -> Any:
        """Output and states of a step."""
        x, h = self._products(*self.dropped(inputs, states[0]))
        parts = tf.split(x + h, 4, axis=1)
        y, c = cell_equation.lstm(
            parts, states[1], "ifno", self.recurrent_activation, self.activation
        )
        return y, [y, c]


class AbstractRNNCell(Layer):
    """Base class of cells of one's own: `call(inputs, states)` gives an output and new states."""

    def call(self, inputs: Any, states: Any) -> Any:
        """Output and states of a step."""
        raise NotImplementedError("AbstractRNNCell: expected a subclass with a call")

    @property
    def state_size(self) -> Any:
        """Sizes of the states: one, or several."""
        raise NotImplementedError("AbstractRNNCell: expected a subclass with a state_size")

    @property
    def output_size(self) -> Any:
        """Size of the output."""
        raise NotImplementedError("AbstractRNNCell: expected a subclass with an output_size")

    def get_initial_state(
        self, inputs: Any = None, batch_size: Any = None, dtype: Any = None
    ) -> Any:
        """States of zeros, for the inputs' batch."""
        if inputs is not None:
            batch_size, dtype = tf.shape(inputs)[0], inputs.dtype
        return nest.mapped(lambda n: tf.zeros([batch_size, n], dtype), self.state_size)


class StackedRNNCells(Layer):
    """Stacked cells as one cell.

    Args:
        cells: from the first to the last, or their configurations.
    """

    def __init__(self, cells: Sequence[Any], **options: Any) -> None:
        super().__init__(**options)
        self.cells = [layer_from(cell) for cell in cells]

    @property
    def state_size(self) -> Any:
        """Sizes of all states."""
        return [n for cell in self.cells for n in nest.flatten(cell.state_size)]

    @property
    def output_size(self) -> Any:
        """Size of the last cell's output."""
        last = self.cells[-1]
        return getattr(last, "output_size", None) or nest.flatten(last.state_size)[0]

    def build(self, input_shape: Any) -> None:
        """Create the cells' weights."""
        for cell in self.cells:
            if not cell.built:
                with tf.name_scope(cell.name):
                    cell.dtype = cell.dtype or self.dtype
                    cell.build(input_shape)
                    cell.built = True
            size = getattr(cell, "output_size", None) or nest.flatten(cell.state_size)[0]
            input_shape = tf.TensorShape([input_shape.as_list()[0], size])
        self.built = True

    def call(self, inputs: Any, states: Sequence[Any], training: Any = None) -> Any:
        """Output and states of a step."""
        rest, new, y = list(states), [], inputs
        for cell in self.cells:
            count = len(nest.flatten(cell.state_size))
            own, rest = rest[:count], rest[count:]
            y, after = cell.call(y, own)
            new += list(after)
        return y, new

"""`Dense`: a fully connected layer."""

from __future__ import annotations

from typing import Any

import weft.tf1 as tf
from weft.errors import ShapeError
from weft.tf1.framework.graph import fail
from weft.tf1.keras import activations
from weft.tf1.keras.engine.input_spec import InputSpec
from weft.tf1.keras.layers.weighted import WeightedLayer


class Dense(WeightedLayer):
    """activation(inputs @ kernel + bias), over the last axis.

    Args:
        units: the number of outputs.
    """

    weight_options = WeightedLayer.of("kernel", "bias")

    def __init__(
        self, units: int, activation: Any = None, use_bias: bool = True, **options: Any
    ) -> None:
        super().__init__(options)
        self.units, self.use_bias = int(units), use_bias
        self.activation = activations.get(activation)
        self.supports_masking = True
        self.input_spec = InputSpec(min_ndim=2)

    def build(self, input_shape: Any) -> None:
        """Create kernel and bias."""
        size = input_shape.as_list()[-1]
        if size is None:
            raise fail(
                ShapeError, f"{self.name}: expected a known last dimension, got {input_shape}"
            )
        self.input_spec = InputSpec(min_ndim=2, axes={-1: size})
        self.kernel = self.weight("kernel", (size, self.units))
        self.bias = self.weight("bias", (self.units,)) if self.use_bias else None
        self.built = True

    def call(self, inputs: Any) -> Any:
        """The outputs."""
        flat = inputs.shape.ndims == 2
        y = tf.matmul(inputs, self.kernel) if flat else tf.tensordot(inputs, self.kernel, 1)
        if self.bias is not None:
            y = tf.nn.bias_add(y, self.bias)
        return self.activation(y)

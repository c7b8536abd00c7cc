"""Activations with parameters: LeakyReLU, PReLU, ELU, ThresholdedReLU, Softmax, ReLU."""

from __future__ import annotations

from typing import Any

import weft.tf1 as tf
from weft.errors import ArgumentError
from weft.ops.elementwise.piecewise_activation import two_sided_prelu
from weft.tf1.framework.graph import emit, fail
from weft.tf1.keras import activations
from weft.tf1.keras.engine.layer import Layer
from weft.tf1.keras.layers.weighted import WeightedLayer

__all__ = ["ELU", "LeakyReLU", "PReLU", "ReLU", "Softmax", "ThresholdedReLU"]


class LeakyReLU(Layer):
    """x where positive, else alpha * x

    Args:
        alpha: the slope of negative inputs.
    """

    def __init__(self, alpha: float = 0.3, **options: Any) -> None:
        super().__init__(**options)
        self.supports_masking, self.alpha = True, float(alpha)

    def call(self, inputs: Any) -> Any:
        """The outputs."""
        return tf.nn.leaky_relu(inputs, self.alpha)


class ELU(Layer):
    """x where positive, else alpha * (exp(x) - 1)

    Args:
        alpha: minus the limit for inputs far below 0.
    """

    def __init__(self, alpha: float = 1.0, **options: Any) -> None:
        super().__init__(**options)
        self.supports_masking, self.alpha = True, float(alpha)

    def call(self, inputs: Any) -> Any:
        """The outputs."""
        return activations.elu(inputs, self.alpha)


class ThresholdedReLU(Layer):
    """x where it is above theta, else 0

    Args:
        theta: the threshold.
    """

    def __init__(self, theta: float = 1.0, **options: Any) -> None:
        super().__init__(**options)
        self.supports_masking, self.theta = True, float(theta)

    def call(self, inputs: Any) -> Any:
        """The outputs."""
        return inputs * tf.cast(inputs > self.theta, inputs.dtype)


class Softmax(Layer):
    """exp(x) / sum(exp(x)) along an axis.

    Args:
        axis: whose elements add up to 1.
    """

    def __init__(self, axis: int = -1, **options: Any) -> None:
        super().__init__(**options)
        self.supports_masking, self.axis = True, axis

    def call(self, inputs: Any) -> Any:
        """The outputs."""
        return activations.softmax(inputs, self.axis)


class ReLU(Layer):
    """x from `threshold` up to `max_value`; below, negative_slope * (x - threshold)

    Args:
        max_value: the largest output; none if `None`.
        negative_slope: the slope below the threshold.
        threshold: below which inputs are damped.

    Raises:
        ArgumentError: a limit or slope is negative.
    """

    def __init__(
        self, max_value: float | None = None, negative_slope: float = 0.0, threshold: float = 0.0,
        **options: Any,
    ) -> None:  # fmt: skip
        if (max_value is not None and max_value < 0) or negative_slope < 0:
            raise fail(
                ArgumentError,
                f"ReLU: expected max_value and negative_slope of 0 or more, got {max_value} and "
                f"{negative_slope}",
            )
        super().__init__(**options)
        self.supports_masking, self.max_value = True, max_value
        self.negative_slope, self.threshold = negative_slope, threshold

    def call(self, inputs: Any) -> Any:
        """The outputs."""
        return activations.relu(inputs, self.negative_slope, self.max_value, self.threshold)


class PReLU(WeightedLayer):
    """x where positive, else alpha * x with weights alpha.

    Args:
        shared_axes: axes along which alpha is shared.
    """

    weight_options = WeightedLayer.of("alpha")

    def __init__(self, shared_axes: Any = None, **options: Any) -> None:
        super().__init__(options)
        self.supports_masking = True
        axes = [shared_axes] if isinstance(shared_axes, int) else shared_axes
        self.shared_axes = None if axes is None else list(axes)

    def build(self, input_shape: Any) -> None:
        """Create alpha."""
        dims = input_shape.as_list()[1:]
        for axis in self.shared_axes or []:
            dims[axis - 1] = 1
        self.alpha = self.weight("alpha", dims)
        self.built = True

    def call(self, inputs: Any) -> Any:
        """The outputs."""
        sides = [tf.convert_to_tensor(x) for x in (inputs, self.alpha)]
        return emit("Sub", sides, two_sided_prelu, name="sub")

"""Layers that only change shapes: Flatten, Reshape, Permute, RepeatVector."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import weft.tf1 as tf
from weft.errors import ArgumentError, ShapeError
from weft.tf1.framework.graph import fail
from weft.tf1.keras.engine.input_spec import InputSpec
from weft.tf1.keras.engine.layer import Layer
from weft.tf1.keras.engine.settings import data_format_of

__all__ = ["Flatten", "Permute", "RepeatVector", "Reshape"]


class Flatten(Layer):
    """Flattens all axes but the batch's."""

    def __init__(self, data_format: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.data_format = data_format_of(data_format)

    def call(self, inputs: Any) -> Any:
        """The outputs."""
        rank = inputs.shape.ndims
        if self.data_format == "channels_first" and rank > 2:
            inputs = tf.transpose(inputs, [0, *range(2, rank), 1])
        dims = inputs.shape.as_list()[1:]
        if None in dims:
            return tf.reshape(inputs, [tf.shape(inputs)[0], -1])
        return tf.reshape(inputs, [-1, math.prod(dims)])


class Reshape(Layer):
    """Reshapes each example; one size may be -1.

    Args:
        target_shape: the shape of an example.

    Raises:
        ShapeError: the number of elements differs.
    """

    def __init__(self, target_shape: Sequence[int], **options: Any) -> None:
        super().__init__(**options)
        self.target_shape = tuple(int(n) for n in target_shape)

    def call(self, inputs: Any) -> Any:
        """The outputs."""
        return tf.reshape(inputs, [-1 if -1 not in self.target_shape else tf.shape(inputs)[0],
                                   *self._target(inputs)])  # fmt: skip

    def _target(self, inputs: Any) -> tuple[int, ...]:
        dims = inputs.shape.as_list()[1:]
        if None in dims:
            return self.target_shape
        have, want = math.prod(dims), math.prod(n for n in self.target_shape if n != -1)
        if have != want and (-1 not in self.target_shape or not want or have % want):
            raise fail(
                ShapeError,
                f"{self.name}: expected inputs whose rows fit {self.target_shape}, got "
                f"{tuple(inputs.shape.as_list())}",
            )
        return tuple(have // want if n == -1 else n for n in self.target_shape)


class Permute(Layer):
    """Permutes the axes of examples: `dims` numbers them from 1.

    Args:
        dims: the axes in their new order, from 1.

    Raises:
        ArgumentError: `dims` is not a permutation.
    """

    def __init__(self, dims: Sequence[int], **options: Any) -> None:
        super().__init__(**options)
        self.dims = tuple(dims)
        if sorted(self.dims) != list(range(1, len(self.dims) + 1)):
            raise fail(
                ArgumentError,
                f"Permute: expected each of 1 to {len(self.dims)} once, got {self.dims}",
            )
        self.input_spec = InputSpec(ndim=len(self.dims) + 1)

    def call(self, inputs: Any) -> Any:
        """The outputs."""
        return tf.transpose(inputs, [0, *self.dims])


class RepeatVector(Layer):
    """Repeats each row n times: (batch, features) to (batch, n, features).

    Args:
        n: how often.
    """

    def __init__(self, n: int, **options: Any) -> None:
        super().__init__(**options)
        self.n = n
        self.input_spec = InputSpec(ndim=2)

    def call(self, inputs: Any) -> Any:
        """The outputs."""
        return tf.tile(tf.expand_dims(inputs, 1), [1, self.n, 1])

"""Regularization by noise, in training only: dropout and Gaussian noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import weft.tf1 as tf
from weft.errors import ArgumentError
from weft.ops.layer.alpha_dropout import alpha_dropout
from weft.tf1.framework.graph import fail
from weft.tf1.keras.engine.input_spec import InputSpec
from weft.tf1.keras.engine.layer import Layer
from weft.tf1.keras.engine.settings import data_format_of, in_train_phase

__all__ = [
    "AlphaDropout", "Dropout", "GaussianDropout", "GaussianNoise", "SpatialDropout1D",
    "SpatialDropout2D", "SpatialDropout3D",
]  # fmt: skip


class _Noise(Layer):
    """A layer with one number that changes its inputs only in training."""

    number: str
    rate: Any
    stddev: float

    def __init__(self, value: Any, **options: Any) -> None:
        super().__init__(**options)
        self.supports_masking = True
        setattr(self, self.number, value)
        if self.number == "rate" and not tf.is_tensor(value) and not 0 <= value <= 1:
            raise fail(
                ArgumentError,
                f"{type(self).__name__}: expected a rate from 0 to 1, got {value}",
            )

    def disturbed(self, x: Any) -> Any:
        """The inputs with noise, in training."""
        raise NotImplementedError

    def call(self, inputs: Any, training: Any = None) -> Any:
        """The outputs."""
        if not tf.is_tensor(getattr(self, self.number)) and not getattr(self, self.number):
            return inputs
        return in_train_phase(lambda: self.disturbed(inputs), inputs, training)


class Dropout(_Noise):
    """Zeros a fraction `rate` of the elements; the others are scaled up to keep the mean.

    Args:
        rate: the fraction of elements that are zeroed.
    """

    number = "rate"

    def __init__(
        self, rate: Any, noise_shape: Sequence[int | None] | None = None, seed: int | None = None,
        **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(rate, **options)
        self.noise_shape, self.seed = noise_shape, seed

    def shape_of_noise(self, x: Any) -> Any:
        """The shape of the dropout mask; the inputs' if `None`."""
        return self.noise_shape

    def disturbed(self, x: Any) -> Any:
        """The inputs with noise, in training."""
        if self.rate == 1:
            return tf.zeros_like(x)
        return tf.nn.dropout(x, rate=self.rate, noise_shape=self.shape_of_noise(x), seed=self.seed)


class _SpatialDropout(Dropout):
    """Dropout of whole channels."""

    spatial: int

    def __init__(self, rate: Any, data_format: str | None = None, **options: Any) -> None:
        super().__init__(rate, **options)
        self.data_format = data_format_of(data_format)
        self.input_spec = InputSpec(ndim=self.spatial + 2)

    def shape_of_noise(self, x: Any) -> Any:
        """One decision per channel."""
        rows, ones = tf.shape(x)[0], [1] * self.spatial
        if self.data_format == "channels_first" and self.spatial > 1:
            return [rows, tf.shape(x)[1], *ones]
        return [rows, *ones, tf.shape(x)[-1]]


class SpatialDropout1D(_SpatialDropout):
    """Dropout of whole channels of sequences."""

    spatial = 1


class SpatialDropout2D(_SpatialDropout):
    """Dropout of whole channels of images."""

    spatial = 2


class SpatialDropout3D(_SpatialDropout):
    """Dropout of whole channels of volumes."""

    spatial = 3


class GaussianNoise(_Noise):
    """Adds Gaussian noise.

    Args:
        stddev: the standard deviation of the noise.
    """

    number = "stddev"

    def __init__(self, stddev: float, **options: Any) -> None:
        super().__init__(stddev, **options)

    def disturbed(self, x: Any) -> Any:
        """The inputs with noise, in training."""
        return x + tf.random_normal(tf.shape(x), 0.0, self.stddev, x.dtype.base_dtype)


class GaussianDropout(_Noise):
    """Multiplies by Gaussian noise of mean 1 and variance rate / (1 - rate).

    Args:
        rate: as in `Dropout`, of which the noise has mean and variance.
    """

    number = "rate"

    def __init__(self, rate: float, **options: Any) -> None:
        super().__init__(rate, **options)

    @property
    def _spread(self) -> float:
        return math.sqrt(self.rate / (1.0 - self.rate))

    def disturbed(self, x: Any) -> Any:
        """The inputs with noise, in training."""
        return x * tf.random_normal(tf.shape(x), 1.0, self._spread, x.dtype.base_dtype)


class AlphaDropout(_Noise):
    """Dropout that keeps mean and variance after SELU (Klambauer et al., 2017).

    Args:
        rate: the fraction of elements that are dropped.
    """

    number = "rate"

    def __init__(
        self, rate: float, noise_shape: Any = None, seed: int | None = None, **options: Any
    ) -> None:
        super().__init__(rate, **options)
        self.noise_shape, self.seed = noise_shape, seed

    def disturbed(self, x: Any) -> Any:
        """The inputs with noise, in training."""
        dims = tf.shape(x) if self.noise_shape is None else self.noise_shape
        mask = tf.random_uniform(dims, seed=self.seed) >= self.rate
        graph, build = tf.get_default_graph(), partial(alpha_dropout, rate=self.rate)
        return graph.emit("Select", [x, mask], build, name="dropout").outputs[0]

"""Layers that prepare images and numbers: rescaled, resized, cropped, flipped, normalized."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft.tf1 as tf
from weft.errors import ArgumentError
from weft.tf1.framework.graph import fail
from weft.tf1.keras.engine.layer import Layer
from weft.tf1.keras.engine.settings import in_train_phase
from weft.tf1.keras.fit.loading import is_loader

__all__ = ["CenterCrop", "Normalization", "RandomFlip", "Rescaling", "Resizing"]


class Rescaling(Layer):
    """x * scale + offset

    Args:
        scale, offset: numbers.
    """

    def __init__(self, scale: Any, offset: Any = 0.0, **options: Any) -> None:
        super().__init__(**options)
        self.scale, self.offset = scale, offset

    def call(self, inputs: Any) -> Any:
        """The outputs."""
        return tf.cast(inputs, self.dtype) * self.scale + self.offset


class Resizing(Layer):
    """Images of another height and width.

    Args:
        height, width: the new sizes.
        interpolation: `bilinear`, `nearest`, `bicubic` or `area`.
    """

    def __init__(
        self, height: int, width: int, interpolation: str = "bilinear", **options: Any
    ) -> None:
        super().__init__(**options)
        self.height, self.width, self.interpolation = height, width, interpolation

    def call(self, inputs: Any) -> Any:
        """The outputs."""
        sizes = [self.height, self.width]
        return tf.cast(tf.image.resize_of_2(inputs, sizes, self.interpolation), self.dtype)


class CenterCrop(Layer):
    """The middle of images.

    Args:
        height, width: its sizes.
    """

    def __init__(self, height: int, width: int, **options: Any) -> None:
        super().__init__(**options)
        self.height, self.width = height, width

    def call(self, inputs: Any) -> Any:
        """The outputs."""
        found = tf.image.resize_image_with_crop_or_pad(inputs, self.height, self.width)
        return tf.cast(found, self.dtype)


class RandomFlip(Layer):
    """In training, each image is mirrored or not, with equal chances in each direction.

    Args:
        mode: `horizontal`, `vertical` or `horizontal_and_vertical`.
        seed: of the random numbers.
    """

    def __init__(
        self, mode: str = "horizontal_and_vertical", seed: int | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        if mode not in ("horizontal", "vertical", "horizontal_and_vertical"):
            raise fail(ArgumentError, f"{self.name}: expected a mode of RandomFlip, got {mode!r}")
        self.mode, self.seed = mode, seed

    def call(self, inputs: Any, training: Any = None) -> Any:
        """The outputs."""
        x = tf.cast(inputs, self.dtype)
        return in_train_phase(lambda: self._flipped(x), x, training)

    def _flipped(self, x: Any) -> Any:
        rank = x.shape.ndims
        for axis, direction in ((rank - 2, "horizontal"), (rank - 3, "vertical")):
            if direction in self.mode:
                each = [tf.shape(x)[0], 1, 1, 1] if rank == 4 else [1, 1, 1]
                chance = tf.random_uniform(each, seed=self.seed)
                x = tf.where(tf.broadcast_to(chance < 0.5, tf.shape(x)), tf.reverse(x, [axis]), x)
        return x


class Normalization(Layer):
    """(x - mean) / sqrt(variance), of `adapt`'s data or as given.

    Args:
        axis: the axes that have a mean of their own; `None` for one mean of all numbers.
        mean, variance: instead of `adapt`.
    """

    def __init__(
        self, axis: Any = -1, mean: Any = None, variance: Any = None, **options: Any
    ) -> None:
        super().__init__(**options)
        if (mean is None) != (variance is None):
            raise fail(ArgumentError, f"{self.name}: expected mean and variance, got one of them")
        self.axis, self.mean, self.variance = axis, mean, variance

    def adapt(self, data: Any, batch_size: int | None = None, steps: int | None = None) -> None:
        """Take mean and variance of data: an array, or a dataset of batches."""
        del batch_size
        batches = tf.data.Dataset.as_numpy_iterator(data) if is_loader(data) else [data]
        chosen = [x for _, x in zip(range(steps), batches, strict=False)] if steps else batches
        x = np.concatenate([np.atleast_1d(np.asarray(batch)) for batch in chosen])
        given = () if self.axis is None else np.atleast_1d(self.axis)
        kept = [int(a) % x.ndim for a in given]
        axes = tuple([a for a in range(x.ndim) if a not in kept])
        self.mean = x.mean(axes, keepdims=True, dtype=np.float64).astype(np.float32)
        self.variance = x.var(axes, keepdims=True, dtype=np.float64).astype(np.float32)

    def call(self, inputs: Any) -> Any:
        """The outputs."""
        if self.mean is None:
            raise fail(ArgumentError, f"{self.name}: expected adapt(), or mean and variance")
        x = tf.cast(inputs, self.dtype)
        mean, variance = (np.asarray(v, np.float32) for v in (self.mean, self.variance))
        return (x - mean) / np.maximum(np.sqrt(variance), np.float32(1e-7))

"""`BatchNormalization` and `LayerNormalization`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import weft.tf1 as tf
from weft.errors import ArgumentError, ShapeError
from weft.ops.optimizer.rule import averaged
from weft.tf1.framework.graph import fail
from weft.tf1.keras.engine.input_spec import InputSpec
from weft.tf1.keras.engine.settings import in_train_phase
from weft.tf1.keras.layers.weighted import WeightedLayer

__all__ = ["BatchNormalization", "LayerNormalization"]


class BatchNormalization(WeightedLayer):
    """Batch normalization (Ioffe and Szegedy, 2015).

    Training uses the batch's statistics, evaluation their moving averages. As in TensorFlow 1.15,
    the moving variance of images is unbiased: n / (n - 1) times the batch's.

    Args:
        axis: of the features.
        momentum: the fraction of the moving averages that each step keeps.
        epsilon: added to the variance.
        center, scale: whether there are beta and gamma.
    """

    weight_options: ClassVar[dict[str, Any]] = {
        **WeightedLayer.of("beta", "gamma"),
        **WeightedLayer.of("moving_mean", "moving_variance", kinds=("initializer",)),
    }
    _fused: ClassVar[bool] = True
    """Whether images take the fused operation."""

    def __init__(
        self, axis: Any = -1, momentum: float = 0.99, epsilon: float = 1e-3, center: bool = True,
        scale: bool = True, **options: Any,
    ) -> None:  # fmt: skip
        options.pop("fused", None)
        if options.pop("renorm", False):
            raise fail(ArgumentError, "BatchNormalization: renorm is not supported")
        super().__init__(options)
        self.supports_masking = True
        self.axis = int(axis[0]) if isinstance(axis, list | tuple) else int(axis)
        self.momentum, self.epsilon = momentum, epsilon
        self.center, self.scale = center, scale

    def build(self, input_shape: Any) -> None:
        """Create gamma and beta, and the moving averages."""
        dims = input_shape.as_list()
        size = dims[self.axis]
        if size is None:
            raise fail(
                ShapeError,
                f"{self.name}: expected a known size along axis {self.axis}, got {input_shape}",
            )
        self.input_spec = InputSpec(ndim=len(dims), axes={self.axis: size})
        self.gamma = self.weight("gamma", (size,)) if self.scale else None
        self.beta = self.weight("beta", (size,)) if self.center else None
        self.moving_mean = self.weight("moving_mean", (size,), trainable=False)
        self.moving_variance = self.weight("moving_variance", (size,), trainable=False)
        self.built = True

    def call(self, inputs: Any, training: Any = None) -> Any:
        """The outputs."""
        rank = inputs.shape.ndims
        axis = self.axis % rank
        if not tf.is_tensor(training) and training in (False, 0):
            return self._normalized(inputs, axis, *self._moving())
        if not (self._fused and rank == 4 and axis in (1, 3)):
            batch = tf.nn.moments(inputs, [i for i in range(rank) if i != axis])
            pairs = zip(batch, self._moved(batch, training), strict=True)
            used = [in_train_phase(now, old, training) for now, old in pairs]
            return self._normalized(inputs, axis, *used)
        train, *batch = self._of_images(inputs, axis)
        list(self._moved(batch, training))
        return in_train_phase(
            train, lambda: self._normalized(inputs, axis, *self._moving()), training
        )

    def _moving(self) -> list[Any]:
        """The moving averages."""
        return [self.moving_mean.value(), self.moving_variance.value()]

    def _moved(self, batch: Sequence[Any], training: Any) -> Iterator[Any]:
        """Update the moving averages by a batch's statistics; those before the update."""
        for moving, now in zip((self.moving_mean, self.moving_variance), batch, strict=True):
            old = moving.value()
            new = averaged(old, now, 1.0 - self.momentum, self.momentum)
            self.add_update(moving.assign(in_train_phase(new, old, training)).op)
            yield old

    def _of_images(self, x: Any, axis: int) -> tuple[Any, Any, Any]:
        size = x.shape.as_list()[axis]
        scale = tf.ones([size]) if self.gamma is None else self.gamma.value()
        offset = tf.zeros([size]) if self.beta is None else self.beta.value()
        return tf.nn.fused_batch_norm(
            x, scale, offset, epsilon=self.epsilon, data_format="NHWC" if axis == 3 else "NCHW"
        )

    def _normalized(self, x: Any, axis: int, mean: Any, variance: Any) -> Any:
        shape = [1] * x.shape.ndims
        shape[axis] = x.shape.as_list()[axis]
        parts = [mean, variance, self.beta, self.gamma]
        mean, variance, beta, gamma = (None if p is None else tf.reshape(p, shape) for p in parts)
        return tf.nn.batch_normalization(x, mean, variance, beta, gamma, self.epsilon)


class LayerNormalization(WeightedLayer):
    """Layer normalization (Ba et al., 2016).

    Args:
        axis: of the features, or several.
        epsilon: added to the variance.
        center, scale: whether there are beta and gamma.
    """

    weight_options = WeightedLayer.of("beta", "gamma")

    def __init__(
        self, axis: Any = -1, epsilon: float = 1e-3, center: bool = True, scale: bool = True,
        **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(options)
        self.supports_masking = True
        self.axis = [axis] if isinstance(axis, int) else list(axis)
        self.epsilon, self.center, self.scale = epsilon, center, scale

    def build(self, input_shape: Any) -> None:
        """Create gamma and beta."""
        dims = input_shape.as_list()
        shape = [dims[a] for a in self.axis]
        self.gamma = self.weight("gamma", shape) if self.scale else None
        self.beta = self.weight("beta", shape) if self.center else None
        self.built = True

    def call(self, inputs: Any) -> Any:
        """The outputs."""
        rank, dims = inputs.shape.ndims, inputs.shape.as_list()
        axes = [a % rank for a in self.axis]
        mean, variance = tf.nn.moments(inputs, axes, keepdims=True)
        shape = [dims[i] if i in axes else 1 for i in range(rank)]
        beta, gamma = (None if p is None else tf.reshape(p, shape) for p in (self.beta, self.gamma))
        return tf.nn.batch_normalization(inputs, mean, variance, beta, gamma, self.epsilon)

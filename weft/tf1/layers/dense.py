"""`tf.layers.Dense`, and the functions of layers without windows."""

from __future__ import annotations

from typing import Any

from weft.tf1.framework.tensor import Tensor
from weft.tf1.framework.tensor_shape import TensorShape, as_shape
from weft.tf1.keras.layers import dense as keras_dense
from weft.tf1.keras.layers import noise, reshaping
from weft.tf1.layers.scoped import Scoped, documented, layer_function

__all__ = ["Dense", "Dropout", "Flatten", "dense", "dropout", "flatten"]


@documented
class Dense(Scoped, keras_dense.Dense):
    """activation(inputs @ kernel + bias), over the last axis.

    Its variables are created in the scope of the first call, under `name`, made unique; later calls
    reuse them.

    Args:
        units: the size of the last axis of the output.

    Raises:
        ShapeError: the last dimension of the inputs is not known.

    >>> import weft.tf1 as tf
    >>> with tf.Graph().as_default():
    ...     layer = tf.layers.Dense(3, name="out")
    ...     print(layer(tf.zeros([2, 5])).shape, layer.kernel.name)
    (2, 3) out/kernel:0
    """

    def __init__(
        self,
        units: int,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        dtype: Any = None,
        _reuse: Any = None,
        _scope: str | None = None,
    ) -> None:
        super().__init__(
            units, activation, use_bias, kernel_initializer=kernel_initializer,
            bias_initializer=bias_initializer, kernel_regularizer=kernel_regularizer,
            bias_regularizer=bias_regularizer, activity_regularizer=activity_regularizer,
            kernel_constraint=kernel_constraint, bias_constraint=bias_constraint,
            trainable=trainable, name=name, dtype=dtype, _reuse=_reuse, _scope=_scope,
        )  # fmt: skip

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """The shape of the output for inputs of this shape."""
        return TensorShape([*as_shape(input_shape).as_list()[:-1], self.units])


dense = layer_function(Dense)


@documented
class Flatten(Scoped, reshaping.Flatten):
    """See the Keras layer."""


@documented
class Dropout(Scoped, noise.Dropout):
    """See the Keras layer."""


def flatten(inputs: Any, name: str | None = None, data_format: str = "channels_last") -> Tensor:
    """All axes but the first flattened into one.

    Args:
        inputs: a tensor, or an array.
        name: of the variable scope; `flatten` by default, made unique.
        data_format: `"channels_first"` moves the channels behind the other axes first.
    """
    return Flatten(data_format, _scope=name)(inputs)


def dropout(
    inputs: Any,
    rate: Any = 0.5,
    noise_shape: Any = None,
    seed: int | None = None,
    training: Any = False,
    name: str | None = None,
) -> Tensor:
    """Dropout while `training` (a Python or a tensor boolean), else the input.

    Args:
        inputs: a tensor, or an array.
        rate: the fraction of elements that are zeroed; the others are scaled up.
        noise_shape: a shape that broadcasts to the inputs'; elements along axes of size 1 share a
            decision.
        seed: of the random numbers.
        training: whether to drop anything.
        name: of the variable scope; `dropout` by default, made unique.
    """
    layer = Dropout(rate, noise_shape, seed, _scope=name, _flags={"training": training})
    return layer(inputs)

"""`tf.keras.activations`: activation functions, also by name."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import weft.tf1 as tf
from weft.errors import ArgumentError
from weft.ops.elementwise.piecewise_activation import shifted_leaky_relu
from weft.tf1.framework.graph import emit, fail
from weft.tf1.keras.storage.serialization import deserialized, serialize, table_of

__all__ = [
    "deserialize", "elu", "exponential", "get", "hard_sigmoid", "linear", "relu", "selu",
    "serialize", "sigmoid", "softmax", "softplus", "softsign", "swish", "tanh",
]  # fmt: skip


def softmax(x: Any, axis: int = -1) -> Any:
    """exp(x) / sum(exp(x)) along an axis.

    Raises:
        ArgumentError: x is a vector, which has no rows.
    """
    if x.shape.ndims is not None and x.shape.ndims < 2:
        raise fail(ArgumentError, f"softmax: expected a rank of 2 or more, got shape {x.shape}")
    return tf.nn.softmax(x, axis=axis)


def elu(x: Any, alpha: float = 1.0) -> Any:
    """x where positive, else alpha * (exp(x) - 1)"""
    y = tf.nn.elu(x)
    return y if alpha == 1 else tf.where(x > 0, y, alpha * y)


def relu(x: Any, alpha: float = 0.0, max_value: float | None = None, threshold: float = 0) -> Any:
    """x from `threshold` up to `max_value`; below `threshold`, alpha * (x - threshold)"""
    x = tf.convert_to_tensor(x)
    if not alpha and not threshold:
        y = tf.nn.relu(x)
    else:
        slopes = partial(shifted_leaky_relu, slope=float(alpha), limit=float(threshold))
        y = emit("Select", [x], slopes, name="Select")
    return y if max_value is None else tf.minimum(y, float(max_value))


def hard_sigmoid(x: Any) -> Any:
    """0.2 * x + 0.5, clipped to [0, 1]"""
    return tf.clip_by_value(0.2 * x + 0.5, 0.0, 1.0)


def exponential(x: Any) -> Any:
    """exp(x)"""
    return tf.exp(x)


def linear(x: Any) -> Any:
    """x"""
    return x


selu, softplus, softsign, swish = tf.nn.selu, tf.nn.softplus, tf.nn.softsign, tf.nn.swish
sigmoid, tanh = tf.sigmoid, tf.tanh

NAMES: Final = table_of(globals())


def get(identifier: Any) -> Any:
    """A function by name; `linear` for `None`; other values as they are.

    Raises:
        UnknownKeyError: the name is unknown.
    """
    return linear if identifier is None else deserialized("activation", NAMES, identifier)


deserialize = get

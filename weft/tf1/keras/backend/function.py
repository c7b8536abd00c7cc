"""Functions of tensors, with Keras's names and argument order."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

import weft.tf1 as tf
from weft.documentation import named
from weft.ops.optimizer.rule import averaged
from weft.ops.special.real import log_odds
from weft.tf1.framework.graph import emit
from weft.tf1.keras import losses
from weft.tf1.keras.engine.settings import data_format_of, floatx

__all__ = [
    "abs", "all", "any", "arange", "argmax", "argmin", "batch_flatten", "bias_add",
    "binary_crossentropy", "cast", "cast_to_floatx", "categorical_crossentropy", "clip",
    "concatenate", "constant", "cos", "cumprod", "cumsum", "dot", "dropout", "dtype", "equal",
    "exp", "expand_dims", "eye", "flatten", "gather", "gradients", "greater", "greater_equal",
    "identity", "int_shape", "is_tensor", "l2_normalize", "less", "less_equal", "log", "logsumexp",
    "max", "maximum", "mean", "min", "minimum", "moving_average_update", "name_scope", "ndim",
    "not_equal", "one_hot", "ones", "ones_like", "permute_dimensions", "pow", "print_tensor",
    "prod", "random_normal", "random_uniform", "repeat", "reshape", "reverse", "round", "shape",
    "sigmoid", "sign", "sin", "softmax", "softplus", "softsign", "sparse_categorical_crossentropy",
    "sqrt", "square", "squeeze", "stack", "std", "stop_gradient", "sum", "switch", "tanh", "tile",
    "transpose", "truncated_normal", "var", "zeros", "zeros_like",
]  # fmt: skip

abs, square, sqrt, exp, log = tf.abs, tf.square, tf.sqrt, tf.exp, tf.log
round, sign, sin, cos, tanh, sigmoid = tf.round, tf.sign, tf.sin, tf.cos, tf.tanh, tf.sigmoid
softplus, softsign = tf.nn.softplus, tf.nn.softsign
maximum, minimum = tf.maximum, tf.minimum
equal, not_equal = tf.equal, tf.not_equal
greater, greater_equal, less, less_equal = tf.greater, tf.greater_equal, tf.less, tf.less_equal
zeros_like, ones_like, identity, stop_gradient = (
    tf.zeros_like, tf.ones_like, tf.identity, tf.stop_gradient,
)  # fmt: skip
transpose, tile, gather, stack, reverse = tf.transpose, tf.tile, tf.gather, tf.stack, tf.reverse
cumsum, cumprod, name_scope, is_tensor = tf.cumsum, tf.cumprod, tf.name_scope, tf.is_tensor


def _reduction(name: str):
    operation = getattr(tf, f"reduce_{name}")

    @named(name, f"`tf.reduce_{name}`.")
    def function(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        x = tf.convert_to_tensor(x)
        boolean = x.dtype.is_bool
        if boolean and name in ("mean", "sum", "prod"):
            x = tf.cast(x, floatx())
        if not boolean and name in ("any", "all"):
            x = tf.cast(x, tf.bool)
        return operation(x, axis=axis, keepdims=keepdims)

    return function


sum, mean, prod = _reduction("sum"), _reduction("mean"), _reduction("prod")
max, min, any, all = (_reduction(n) for n in ("max", "min", "any", "all"))
logsumexp = _reduction("logsumexp")


def var(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The variance."""
    return tf.math.reduce_variance(x, axis=axis, keepdims=keepdims)


def std(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The standard deviation."""
    return tf.sqrt(var(x, axis, keepdims))


def argmax(x: Any, axis: int = -1) -> Any:
    """The index of the maximum."""
    return tf.argmax(x, axis)


def argmin(x: Any, axis: int = -1) -> Any:
    """The index of the minimum."""
    return tf.argmin(x, axis)


def pow(x: Any, a: Any) -> Any:
    """x ** a"""
    return tf.pow(x, a)


def clip(x: Any, min_value: Any, max_value: Any) -> Any:
    """x clipped to bounds."""
    low = -np.inf if min_value is None else min_value
    high = np.inf if max_value is None else max_value
    return tf.clip_by_value(x, low, high)


def softmax(x: Any, axis: int = -1) -> Any:
    """exp(x) / sum(exp(x))"""
    return tf.nn.softmax(x, axis=axis)


def l2_normalize(x: Any, axis: Any = None) -> Any:
    """x divided by its norm."""
    return tf.nn.l2_normalize(x, axis)


def dot(x: Any, y: Any) -> Any:
    """A matmul of x's last axis with y's second to last one."""
    x, y = tf.convert_to_tensor(x), tf.convert_to_tensor(y)
    if x.shape.ndims == 2 and y.shape.ndims == 2:
        return tf.matmul(x, y)
    return tf.tensordot(x, y, [[x.shape.ndims - 1], [builtins.max(y.shape.ndims - 2, 0)]])


def bias_add(x: Any, bias: Any, data_format: str | None = None) -> Any:
    """x plus a bias per channel."""
    first = data_format_of(data_format) == "channels_first"
    return tf.nn.bias_add(x, bias, **({"data_format": "NCHW"} if first else {}))


def dropout(x: Any, level: Any, noise_shape: Any = None, seed: int | None = None) -> Any:
    """x with a fraction of its elements zeroed and the others scaled up."""
    return tf.nn.dropout(x, rate=level, noise_shape=noise_shape, seed=seed)


def binary_crossentropy(target: Any, output: Any, from_logits: bool = False) -> Any:
    """The cross entropy, elementwise."""
    logits = output if from_logits else _logit(output)
    return tf.nn.sigmoid_cross_entropy_with_logits(
        labels=tf.cast(target, logits.dtype), logits=logits
    )


def _logit(p: Any) -> Any:
    p = tf.clip_by_value(p, losses.EPSILON, 1.0 - losses.EPSILON)
    return emit("Log", [p], log_odds, name="Log")


categorical_crossentropy = losses.categorical_crossentropy
sparse_categorical_crossentropy = losses.sparse_categorical_crossentropy


# shapes
def shape(x: Any) -> Any:
    """The shape, as a tensor."""
    return tf.shape(x)


def int_shape(x: Any) -> Any:
    """The static shape, as numbers and `None`."""
    return None if x.shape.ndims is None else tuple(x.shape.as_list())


def ndim(x: Any) -> Any:
    """The rank."""
    return x.shape.ndims


def dtype(x: Any) -> str:
    """The element type's name."""
    return x.dtype.base_dtype.name


def reshape(x: Any, shape: Any) -> Any:
    """x reshaped."""
    return tf.reshape(x, shape)


def permute_dimensions(x: Any, pattern: Sequence[int]) -> Any:
    """The axes permuted."""
    return tf.transpose(x, pattern)


def expand_dims(x: Any, axis: int = -1) -> Any:
    """x with an additional axis of size 1."""
    return tf.expand_dims(x, axis)


def squeeze(x: Any, axis: int) -> Any:
    """x without an axis of size 1."""
    return tf.squeeze(x, [axis])


def flatten(x: Any) -> Any:
    """x flattened to a vector."""
    return tf.reshape(x, [-1])


def batch_flatten(x: Any) -> Any:
    """All axes but the first flattened into one."""
    return tf.reshape(x, [-1, int(np.prod(x.shape.as_list()[1:]))])


def concatenate(tensors: Sequence[Any], axis: int = -1) -> Any:
    """Tensors concatenated."""
    return tf.concat(list(tensors), axis)


def repeat(x: Any, n: int) -> Any:
    """Each row repeated n times, along a new time axis."""
    return tf.tile(tf.expand_dims(x, 1), [1, n, 1])


def one_hot(indices: Any, num_classes: int) -> Any:
    """One-hot vectors."""
    return tf.one_hot(indices, num_classes)


def switch(condition: Any, then_expression: Any, else_expression: Any) -> Any:
    """One of two tensors, or of the results of two functions."""
    first: Any = then_expression() if callable(then_expression) else then_expression
    second: Any = else_expression() if callable(else_expression) else else_expression
    flag = tf.cast(condition, tf.bool)
    missing = (first.shape.ndims or 0) - (flag.shape.ndims or 0) if flag.shape.ndims else 0
    for _ in range(missing):
        flag = tf.expand_dims(flag, -1)
    return tf.where(flag, first, second)


# new tensors
def cast(x: Any, dtype: Any) -> Any:
    """x cast to another element type."""
    return tf.cast(x, dtype)


def cast_to_floatx(x: Any) -> Any:
    """An array or a tensor cast to Keras's element type."""
    return tf.cast(x, floatx()) if tf.is_tensor(x) else np.asarray(x, floatx())


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Any:
    """A constant."""
    return tf.constant(value, dtype or floatx(), shape, name or "Const")


def zeros(shape: Any, dtype: Any = None, name: str | None = None) -> Any:
    """Zeros."""
    return tf.zeros(shape, dtype or floatx(), name)


def ones(shape: Any, dtype: Any = None, name: str | None = None) -> Any:
    """Ones."""
    return tf.ones(shape, dtype or floatx(), name)


def eye(size: int, dtype: Any = None, name: str | None = None) -> Any:
    """The identity matrix."""
    return tf.eye(size, dtype=dtype or floatx(), name=name)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = "int32") -> Any:
    """Integers in order."""
    first, last = (0, start) if stop is None else (start, stop)
    return tf.cast(tf.range(first, last, step), dtype)


def random_normal(
    shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: int | None = None
) -> Any:
    """Normal random numbers."""
    return tf.random_normal(shape, mean, stddev, dtype or floatx(), seed)


def random_uniform(
    shape: Any, minval: float = 0.0, maxval: float = 1.0, dtype: Any = None, seed: int | None = None
) -> Any:
    """Uniform random numbers."""
    return tf.random_uniform(shape, minval, maxval, dtype or floatx(), seed)


def truncated_normal(
    shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: int | None = None
) -> Any:
    """Truncated normal random numbers, within two standard deviations."""
    return tf.truncated_normal(shape, mean, stddev, dtype or floatx(), seed)


def gradients(loss: Any, variables: Sequence[Any]) -> list[Any]:
    """Gradients of a loss."""
    return tf.gradients(loss, variables)


def moving_average_update(x: Any, value: Any, momentum: float) -> Any:
    """The operation that moves a variable towards a value."""
    return tf.assign(x, averaged(x, value, 1.0 - momentum, momentum))


def print_tensor(x: Any, message: str = "") -> Any:
    """x, which is printed whenever it is computed."""
    return tf.Print(x, [x], message)

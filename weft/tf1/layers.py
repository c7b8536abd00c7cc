"""`tf.layers`: layers as functions that make their own variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.errors import GraphError, ShapeError
from weft.tf1.control.dependency import identity
from weft.tf1.dense import Dense as Dense
from weft.tf1.dense import finished, zeros_unless
from weft.tf1.framework.collection import GraphKeys
from weft.tf1.framework.convert import convert_to_tensor, static_value
from weft.tf1.framework.graph import fail, get_default_graph
from weft.tf1.framework.tensor import Tensor
from weft.tf1.indexing import slicing  # fmt: skip
from weft.tf1.nn import activation as nn_ops
from weft.tf1.nn import conv, normalization
from weft.tf1.shape import arrangement
from weft.tf1.variable import initializer as init_ops
from weft.tf1.variable.variable import assign
from weft.tf1.variable.variable_scope import get_variable, variable_scope

Activation = Callable[..., Any] | None


def dense(
    inputs: Any,
    units: int,
    activation: Activation = None,
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
    reuse: Any = None,
) -> Any:
    """activation(inputs @ kernel + bias), over the last axis."""
    return Dense(
        units, activation, use_bias, kernel_initializer, bias_initializer, kernel_regularizer,
        bias_regularizer, activity_regularizer, kernel_constraint, bias_constraint, trainable,
        _reuse=reuse, _scope=name,
    )(inputs)  # fmt: skip


def _conv(
    spatial: int, inputs: Any, filters: int, kernel_size: Any, strides: Any, padding: str,
    data_format: str, dilation_rate: Any, activation: Activation, use_bias: bool,
    kernel_initializer: Any, bias_initializer: Any, kernel_regularizer: Any,
    bias_regularizer: Any, activity_regularizer: Any, kernel_constraint: Any,
    bias_constraint: Any, trainable: bool, name: str | None, reuse: Any,
) -> Any:  # fmt: skip
    x = convert_to_tensor(inputs)
    first = data_format == "channels_first"
    form = _format(spatial, data_format)
    channels = x.shape[1 if first else -1].value
    if channels is None:
        raise fail(ShapeError, f"conv{spatial}d: expected known channels, got shape {x.shape}")
    window = [kernel_size] * spatial if isinstance(kernel_size, int) else list(kernel_size)
    with variable_scope(name, default_name=f"conv{spatial}d", values=[x], reuse=reuse):
        kernel = get_variable("kernel", [*window, channels, filters], x.dtype, kernel_initializer,
                           regularizer=kernel_regularizer, constraint=kernel_constraint,
                           trainable=trainable)  # fmt: skip
        op: Any = (conv.conv1d, conv.conv2d, conv.conv3d)[spatial - 1]
        y = op(x, kernel, strides, padding.upper(), data_format=form, dilations=dilation_rate)
        if use_bias:
            bias = get_variable("bias", [filters], x.dtype, zeros_unless(bias_initializer),
                             regularizer=bias_regularizer, constraint=bias_constraint,
                             trainable=trainable)  # fmt: skip
            y = nn_ops.bias_add(y, bias, data_format=form)
        return finished(y, activation, activity_regularizer)


def _format(spatial: int, data_format: str) -> str:
    if data_format not in ("channels_last", "channels_first"):
        raise fail(
            GraphError,
            f"data_format: expected channels_last or channels_first, got {data_format!r}",
        )
    last = {1: "NWC", 2: "NHWC", 3: "NDHWC"}[spatial]
    return last if data_format == "channels_last" else "NC" + last[1:-1]


def _convolution(spatial: int) -> Callable[..., Any]:
    def layer(
        inputs: Any,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = 1,
        activation: Activation = None,
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
        reuse: Any = None,
    ) -> Any:
        return _conv(
            spatial, inputs, filters, kernel_size, strides, padding, data_format, dilation_rate,
            activation, use_bias, kernel_initializer, bias_initializer, kernel_regularizer,
            bias_regularizer, activity_regularizer, kernel_constraint, bias_constraint, trainable,
            name, reuse,
        )  # fmt: skip

    layer.__name__ = layer.__qualname__ = f"conv{spatial}d"
    layer.__doc__ = f"activation(convolution in {spatial} dimensions + bias)"
    return layer


conv1d = _convolution(1)
conv2d = _convolution(2)
conv3d = _convolution(3)


def flatten(inputs: Any, name: str | None = None, data_format: str = "channels_last") -> Tensor:
    """All axes but the first as one."""
    x = convert_to_tensor(inputs)
    with variable_scope(name, default_name="flatten", values=[x]):
        if data_format == "channels_first" and len(x.shape) > 2:
            order = [0, *range(2, len(x.shape)), 1]
            x = arrangement.transpose(x, order)
        rest = x.shape[1:].num_elements()
        return arrangement.reshape(x, [-1 if rest is not None else arrangement.shape(x)[0],
                                     -1 if rest is None else rest])  # fmt: skip


def dropout(
    inputs: Any,
    rate: Any = 0.5,
    noise_shape: Any = None,
    seed: int | None = None,
    training: Any = False,
    name: str | None = None,
) -> Tensor:
    """Dropout while `training` (a Python or a tensor boolean), else the input."""
    x = convert_to_tensor(inputs)
    with variable_scope(name, default_name="dropout", values=[x]):
        known = static_value(training)
        if known is not None:
            if not bool(known):
                return identity(x)
            return normalization.dropout(x, rate=rate, noise_shape=noise_shape, seed=seed)
        dropped = normalization.dropout(x, rate=rate, noise_shape=noise_shape, seed=seed)
        return slicing.where(convert_to_tensor(training), dropped, x)


def batch_normalization(
    inputs: Any,
    axis: int = -1,
    momentum: float = 0.99,
    epsilon: float = 1e-3,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Any = None,
    gamma_initializer: Any = None,
    moving_mean_initializer: Any = None,
    moving_variance_initializer: Any = None,
    beta_regularizer: Any = None,
    gamma_regularizer: Any = None,
    beta_constraint: Any = None,
    gamma_constraint: Any = None,
    training: Any = False,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
    **others: Any,
) -> Tensor:
    """Batch normalization; updates of the moving averages are in `GraphKeys.UPDATE_OPS`.

    `training` is a Python or a tensor boolean: statistics of the batch, or the moving ones.
    """
    del others
    x = convert_to_tensor(inputs)
    rank = len(x.shape)
    channel = axis % rank
    size = x.shape[channel].value
    if size is None:
        raise fail(ShapeError, f"batch_normalization: expected known channels, got shape {x.shape}")
    ones = init_ops.ones_initializer()
    with variable_scope(name, default_name="batch_normalization", values=[x], reuse=reuse):
        made: dict[str, Any] = {}
        if scale:
            made["gamma"] = get_variable("gamma", [size], x.dtype, gamma_initializer or ones,
                                      regularizer=gamma_regularizer, constraint=gamma_constraint,
                                      trainable=trainable)  # fmt: skip
        if center:
            made["beta"] = get_variable("beta", [size], x.dtype, zeros_unless(beta_initializer),
                                     regularizer=beta_regularizer, constraint=beta_constraint,
                                     trainable=trainable)  # fmt: skip
        mean = get_variable("moving_mean", [size], x.dtype, zeros_unless(moving_mean_initializer),
                         trainable=False)  # fmt: skip
        variance = get_variable("moving_variance", [size], x.dtype,
                             moving_variance_initializer or ones, trainable=False)  # fmt: skip
        axes = [i for i in range(rank) if i != channel]
        used = _statistics(x, axes, mean, variance, momentum, training)
        shape = [size if i == channel else 1 for i in range(rank)]
        mu, sigma, beta, gamma = (
            None if v is None else arrangement.reshape(v, shape)
            for v in (*used, made.get("beta"), made.get("gamma"))
        )
        return normalization.batch_normalization(x, mu, sigma, beta, gamma, epsilon)


def _statistics(
    x: Tensor, axes: list[int], mean: Any, variance: Any, momentum: float, training: Any
) -> tuple[Any, Any]:
    known = static_value(training)
    if known is not None and not bool(known):
        return mean.value(), variance.value()
    batch = normalization.moments(x, axes)
    flag = None if known is not None else convert_to_tensor(training)
    used: list[Any] = []
    for moving, now in zip((mean, variance), batch, strict=True):
        old = moving.value()
        new = old * momentum + now * (1.0 - momentum)
        new = new if flag is None else slicing.where(flag, new, old)
        get_default_graph().add_to_collection(GraphKeys.UPDATE_OPS, assign(moving, new).op)
        used.append(now if flag is None else slicing.where(flag, now, old))
    return used[0], used[1]


def max_pooling2d(
    inputs: Any,
    pool_size: Any,
    strides: Any,
    padding: str = "valid",
    data_format: str = "channels_last",
    name: str | None = None,
) -> Tensor:
    """The greatest element of each window."""
    form = _format(2, data_format)
    with variable_scope(name, default_name="max_pooling2d"):
        return conv.max_pool(inputs, pool_size, strides, padding.upper(), form)


def average_pooling2d(
    inputs: Any,
    pool_size: Any,
    strides: Any,
    padding: str = "valid",
    data_format: str = "channels_last",
    name: str | None = None,
) -> Tensor:
    """The mean of each window."""
    form = _format(2, data_format)
    with variable_scope(name, default_name="average_pooling2d"):
        return conv.avg_pool(inputs, pool_size, strides, padding.upper(), form)

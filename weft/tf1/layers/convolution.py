"""Convolutions, their transposes, and separable ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.errors import GraphError, ShapeError
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.graph import fail
from weft.tf1.framework.tensor import Tensor
from weft.tf1.layers.dense import finished, zeros_unless
from weft.tf1.nn import activation as nn_ops
from weft.tf1.nn import conv
from weft.tf1.shape import arrangement
from weft.tf1.variable.variable_scope import get_variable, variable_scope

Activation = Callable[..., Any] | None


def _conv(
    spatial: int, inputs: Any, filters: int, kernel_size: Any, strides: Any, padding: str,
    data_format: str, dilation_rate: Any, activation: Activation, use_bias: bool,
    kernel_initializer: Any, bias_initializer: Any, kernel_regularizer: Any,
    bias_regularizer: Any, activity_regularizer: Any, kernel_constraint: Any,
    bias_constraint: Any, trainable: bool, name: str | None, reuse: Any,
) -> Any:  # fmt: skip
    x = convert_to_tensor(inputs)
    first = data_format == "channels_first"
    form = form_of(spatial, data_format)
    channels = _channels(f"conv{spatial}d", x, first)
    window = _each(kernel_size, spatial)
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


def form_of(spatial: int, data_format: str) -> str:
    """TensorFlow's name of an operation's data format, such as NHWC."""
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


def _transposed(
    spatial: int, inputs: Any, filters: int, kernel_size: Any, strides: Any, padding: str,
    data_format: str, activation: Activation, use_bias: bool, kernel_initializer: Any,
    bias_initializer: Any, kernel_regularizer: Any, bias_regularizer: Any,
    activity_regularizer: Any, kernel_constraint: Any, bias_constraint: Any, trainable: bool,
    name: str | None, reuse: Any,
) -> Any:  # fmt: skip
    kind = f"conv{spatial}d_transpose"
    x = convert_to_tensor(inputs)
    form = form_of(spatial, data_format)
    first = data_format == "channels_first"
    channels = _channels(kind, x, first)
    window, steps = _each(kernel_size, spatial), _each(strides, spatial)
    with variable_scope(name, default_name=kind, values=[x], reuse=reuse):
        kernel = get_variable("kernel", [*window, filters, channels], x.dtype, kernel_initializer,
                           regularizer=kernel_regularizer, constraint=kernel_constraint,
                           trainable=trainable)  # fmt: skip
        known = x.shape.as_list()
        seen: Any = None if None not in known else arrangement.shape(x)
        begin = 2 if first else 1
        sizes = [
            _transposed_size(seen[i] if known[i] is None else known[i], k, s, padding)
            for i, k, s in zip(range(begin, begin + spatial), window, steps, strict=True)
        ]
        batch = seen[0] if known[0] is None else known[0]
        target = [batch, filters, *sizes] if first else [batch, *sizes, filters]
        op: Any = conv.conv2d_transpose if spatial == 2 else conv.conv3d_transpose
        y = op(x, kernel, target, steps, padding.upper(), data_format=form)
        if use_bias:
            bias = get_variable("bias", [filters], x.dtype, zeros_unless(bias_initializer),
                             regularizer=bias_regularizer, constraint=bias_constraint,
                             trainable=trainable)  # fmt: skip
            y = nn_ops.bias_add(y, bias, data_format=form)
        return finished(y, activation, activity_regularizer)


def _transposed_size(size: Any, kernel: int, stride: int, padding: str) -> Any:
    """The input size for an output of `size`; of several, the one that TensorFlow takes."""
    return size * stride + (max(kernel - stride, 0) if padding.lower() == "valid" else 0)


def _transposed_convolution(spatial: int) -> Callable[..., Any]:
    def layer(
        inputs: Any,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
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
        return _transposed(
            spatial, inputs, filters, kernel_size, strides, padding, data_format, activation,
            use_bias, kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer,
            activity_regularizer, kernel_constraint, bias_constraint, trainable, name, reuse,
        )  # fmt: skip

    layer.__name__ = layer.__qualname__ = f"conv{spatial}d_transpose"
    layer.__doc__ = f"activation(transposed convolution in {spatial} dimensions + bias)"
    return layer


conv2d_transpose = _transposed_convolution(2)
conv3d_transpose = _transposed_convolution(3)


def _separable(
    spatial: int, inputs: Any, filters: int, kernel_size: Any, strides: Any, padding: str,
    data_format: str, dilation_rate: Any, depth_multiplier: int, activation: Activation,
    use_bias: bool, depthwise_initializer: Any, pointwise_initializer: Any,
    bias_initializer: Any, depthwise_regularizer: Any, pointwise_regularizer: Any,
    bias_regularizer: Any, activity_regularizer: Any, depthwise_constraint: Any,
    pointwise_constraint: Any, bias_constraint: Any, trainable: bool, name: str | None,
    reuse: Any,
) -> Any:  # fmt: skip
    kind = f"separable_conv{spatial}d"
    x = convert_to_tensor(inputs)
    first = data_format == "channels_first"
    form, flat = form_of(spatial, data_format), form_of(2, data_format)
    channels = _channels(kind, x, first)
    window = _each(kernel_size, spatial)
    with variable_scope(name, default_name=kind, values=[x], reuse=reuse):
        deep = get_variable("depthwise_kernel", [*window, channels, depth_multiplier], x.dtype,
                         depthwise_initializer, regularizer=depthwise_regularizer,
                         constraint=depthwise_constraint, trainable=trainable)  # fmt: skip
        point = get_variable("pointwise_kernel",
                          [1] * spatial + [channels * depth_multiplier, filters], x.dtype,
                          pointwise_initializer, regularizer=pointwise_regularizer,
                          constraint=pointwise_constraint, trainable=trainable)  # fmt: skip
        steps, spread = _each(strides, spatial), _each(dilation_rate, spatial)
        if spatial == 1:  # an image of height 1
            axis = 2 if first else 1
            y = conv.separable_conv2d(
                arrangement.expand_dims(x, axis), arrangement.expand_dims(deep, 0),
                arrangement.expand_dims(point, 0), [*steps, *steps], padding.upper(),
                rate=[1, *spread], data_format=flat,
            )  # fmt: skip
            y = arrangement.squeeze(y, [axis])
        else:
            y = conv.separable_conv2d(
                x, deep, point, steps, padding.upper(), rate=spread, data_format=flat
            )
        if use_bias:
            bias = get_variable("bias", [filters], x.dtype, zeros_unless(bias_initializer),
                             regularizer=bias_regularizer, constraint=bias_constraint,
                             trainable=trainable)  # fmt: skip
            y = nn_ops.bias_add(y, bias, data_format=form)
        return finished(y, activation, activity_regularizer)


def _separable_convolution(spatial: int) -> Callable[..., Any]:
    def layer(
        inputs: Any,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = 1,
        depth_multiplier: int = 1,
        activation: Activation = None,
        use_bias: bool = True,
        depthwise_initializer: Any = None,
        pointwise_initializer: Any = None,
        bias_initializer: Any = None,
        depthwise_regularizer: Any = None,
        pointwise_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Any = None,
        pointwise_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        reuse: Any = None,
    ) -> Any:
        return _separable(
            spatial, inputs, filters, kernel_size, strides, padding, data_format, dilation_rate,
            depth_multiplier, activation, use_bias, depthwise_initializer, pointwise_initializer,
            bias_initializer, depthwise_regularizer, pointwise_regularizer, bias_regularizer,
            activity_regularizer, depthwise_constraint, pointwise_constraint, bias_constraint,
            trainable, name, reuse,
        )  # fmt: skip

    layer.__name__ = layer.__qualname__ = f"separable_conv{spatial}d"
    layer.__doc__ = (
        f"activation(convolution in {spatial} dimensions of each channel alone, then of size 1)"
    )
    return layer


separable_conv1d = _separable_convolution(1)
separable_conv2d = _separable_convolution(2)


def _channels(kind: str, x: Tensor, first: bool) -> int:
    channels = x.shape[1 if first else -1].value
    if channels is None:
        raise fail(ShapeError, f"{kind}: expected known channels, got shape {x.shape}")
    return channels


def _each(sizes: Any, spatial: int) -> list[int]:
    return [sizes] * spatial if isinstance(sizes, int) else list(sizes)

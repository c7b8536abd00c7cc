"""Convolutions and pooling."""

from __future__ import annotations

from typing import Any

import weft.tf1 as tf
from weft.documentation import arguments_of
from weft.errors import ArgumentError, ShapeError
from weft.tf1.contrib.framework.arg_scope import add_arg_scope
from weft.tf1.contrib.layers.common import finished, pair, weight
from weft.tf1.contrib.layers.dense import fully_connected
from weft.tf1.contrib.layers.regularizer import xavier_initializer
from weft.tf1.framework.graph import fail

__all__ = [
    "avg_pool2d", "conv1d", "conv2d", "conv2d_in_plane", "conv2d_transpose", "convolution",
    "convolution1d", "convolution2d", "convolution2d_transpose", "max_pool2d",
    "separable_conv2d", "separable_convolution2d",
]  # fmt: skip

_ZEROS = tf.zeros_initializer()


def _first(data_format: str | None) -> bool:
    return str(data_format or "NHWC").startswith("NC")


def _channels(x: Any, first: bool, what: str) -> int:
    size = x.shape.as_list()[1 if first else -1] if x.shape.ndims else None
    if size is None:
        raise fail(ShapeError, f"{what}: expected a known number of channels, got {x.shape}")
    return int(size)


@add_arg_scope
@arguments_of(fully_connected)
def convolution(
    inputs: Any, num_outputs: int, kernel_size: Any, stride: Any = 1, padding: str = "SAME",
    data_format: str | None = None, rate: Any = 1, activation_fn: Any = tf.nn.relu,
    normalizer_fn: Any = None, normalizer_params: Any = None, weights_initializer: Any = None,
    weights_regularizer: Any = None, biases_initializer: Any = _ZEROS,
    biases_regularizer: Any = None, reuse: Any = None, variables_collections: Any = None,
    outputs_collections: Any = None, trainable: bool = True, scope: Any = None,
    conv_dims: int | None = None,
) -> Any:  # fmt: skip
    """activation(convolution + biases); ReLU by default.

    Args:
        kernel_size: the window's sizes.
        stride: distances between windows.
        padding: `SAME` or `VALID`.
        data_format: channels last by default, or `NCHW`.
        rate: distances between the elements of a window.
        conv_dims: the number of axes of the windows.

    Raises:
        ShapeError: the number of channels is not known, or of axes is another.
    """
    with tf.variable_scope(scope, "Conv", [inputs], reuse=reuse) as sc:
        x = tf.convert_to_tensor(inputs)
        rank = (x.shape.ndims or 4) - 2
        if conv_dims is not None and rank != conv_dims:
            text = f"convolution: expected {conv_dims + 2} axes, got shape {x.shape}"
            raise fail(ShapeError, text)
        first = _first(data_format)
        shape = [*pair(kernel_size, rank), _channels(x, first, "convolution"), int(num_outputs)]
        start = weights_initializer or xavier_initializer()
        w = weight("weights", shape, x, start, weights_regularizer, trainable,
                   variables_collections)  # fmt: skip
        form = data_format or {1: "NWC", 2: "NHWC", 3: "NDHWC"}[rank]
        y = tf.nn.convolution(
            x, w, padding=padding.upper(), strides=pair(stride, rank),
            dilation_rate=pair(rate, rank), data_format=form,
        )  # fmt: skip
        if normalizer_fn is None and biases_initializer is not None:
            b = weight("biases", [int(num_outputs)], x, biases_initializer, biases_regularizer,
                       trainable, variables_collections)  # fmt: skip
            y = tf.nn.bias_add(y, b, data_format="NCHW" if first else "NHWC")
        return finished(y, sc, outputs_collections, activation_fn, normalizer_fn, normalizer_params)


@add_arg_scope
def convolution2d(*args: Any, **options: Any) -> Any:
    """`convolution` of images."""
    return convolution(*args, **{"conv_dims": 2, **options})


@add_arg_scope
def convolution1d(*args: Any, **options: Any) -> Any:
    """`convolution` of sequences."""
    return convolution(*args, **{"conv_dims": 1, **options})


conv2d, conv1d = convolution2d, convolution1d


@add_arg_scope
@arguments_of(convolution)
def convolution2d_transpose(
    inputs: Any, num_outputs: int, kernel_size: Any, stride: Any = 1, padding: str = "SAME",
    data_format: str = "NHWC", activation_fn: Any = tf.nn.relu, normalizer_fn: Any = None,
    normalizer_params: Any = None, weights_initializer: Any = None, weights_regularizer: Any = None,
    biases_initializer: Any = _ZEROS, biases_regularizer: Any = None, reuse: Any = None,
    variables_collections: Any = None, outputs_collections: Any = None, trainable: bool = True,
    scope: Any = None,
) -> Any:  # fmt: skip
    """activation(transposed convolution + biases); ReLU by default.

    Raises:
        ArgumentError: for channels first.
    """
    if _first(data_format):
        raise fail(ArgumentError, "conv2d_transpose: expected data_format='NHWC'")
    with tf.variable_scope(scope, "Conv2d_transpose", [inputs], reuse=reuse) as sc:
        x = tf.convert_to_tensor(inputs)
        size, step = pair(kernel_size), pair(stride)
        channels = _channels(x, False, "conv2d_transpose")
        start = weights_initializer or xavier_initializer()
        w = weight("weights", [*size, int(num_outputs), channels], x, start,
                   weights_regularizer, trainable, variables_collections)  # fmt: skip
        dims, sizes = x.shape.as_list(), tf.shape(x)
        more = [max(k - s, 0) if padding.upper() == "VALID" else 0
                for k, s in zip(size, step, strict=True)]  # fmt: skip
        known = [None if d is None else d * s + m
                 for d, s, m in zip(dims[1:3], step, more, strict=True)]  # fmt: skip
        spatial = [sizes[i + 1] * step[i] + more[i] if known[i] is None else known[i]
                   for i in range(2)]  # fmt: skip
        batch = sizes[0] if dims[0] is None else dims[0]
        y = tf.nn.conv2d_transpose(x, w, [batch, *spatial, int(num_outputs)], [1, *step, 1],
                                   padding.upper())  # fmt: skip
        y.set_shape([dims[0], *known, int(num_outputs)])
        if normalizer_fn is None and biases_initializer is not None:
            b = weight("biases", [int(num_outputs)], x, biases_initializer, biases_regularizer,
                       trainable, variables_collections)  # fmt: skip
            y = tf.nn.bias_add(y, b)
        return finished(y, sc, outputs_collections, activation_fn, normalizer_fn, normalizer_params)


conv2d_transpose = convolution2d_transpose


@add_arg_scope
@arguments_of(convolution)
def separable_convolution2d(
    inputs: Any, num_outputs: int | None, kernel_size: Any, depth_multiplier: int = 1,
    stride: Any = 1, padding: str = "SAME", data_format: str = "NHWC", rate: Any = 1,
    activation_fn: Any = tf.nn.relu, normalizer_fn: Any = None, normalizer_params: Any = None,
    weights_initializer: Any = None, pointwise_initializer: Any = None,
    weights_regularizer: Any = None, biases_initializer: Any = _ZEROS,
    biases_regularizer: Any = None, reuse: Any = None, variables_collections: Any = None,
    outputs_collections: Any = None, trainable: bool = True, scope: Any = None,
) -> Any:  # fmt: skip
    """A convolution of each channel alone, then one of size 1; without it for `None` outputs.

    Args:
        num_outputs: the number of channels of the outputs, or `None`.
        depth_multiplier: the outputs of each channel.
        pointwise_initializer: of the second convolution's weights.

    Raises:
        ArgumentError: for channels first.
    """
    if _first(data_format):
        raise fail(ArgumentError, "separable_conv2d: expected data_format='NHWC'")
    with tf.variable_scope(scope, "SeparableConv2d", [inputs], reuse=reuse) as sc:
        x = tf.convert_to_tensor(inputs)
        channels = _channels(x, False, "separable_conv2d")
        start = weights_initializer or xavier_initializer()
        w = weight("depthwise_weights", [*pair(kernel_size), channels, depth_multiplier], x,
                   start, weights_regularizer, trainable, variables_collections)  # fmt: skip
        y = tf.nn.depthwise_conv2d(x, w, [1, *pair(stride), 1], padding.upper(), pair(rate))
        count = channels * depth_multiplier
        if num_outputs is not None:
            start = pointwise_initializer or start
            point = weight("pointwise_weights", [1, 1, count, int(num_outputs)], x, start,
                           weights_regularizer, trainable, variables_collections)  # fmt: skip
            y, count = tf.nn.conv2d(y, point, [1, 1, 1, 1], "VALID"), int(num_outputs)
        if normalizer_fn is None and biases_initializer is not None:
            b = weight("biases", [count], x, biases_initializer, biases_regularizer, trainable,
                       variables_collections)  # fmt: skip
            y = tf.nn.bias_add(y, b)
        return finished(y, sc, outputs_collections, activation_fn, normalizer_fn, normalizer_params)


separable_conv2d = separable_convolution2d


@add_arg_scope
def conv2d_in_plane(inputs: Any, kernel_size: Any, **options: Any) -> Any:
    """`separable_conv2d` with the same window sizes and no second convolution."""
    return separable_convolution2d(inputs, None, kernel_size, **options)


def _pool(kind: str, scope_name: str):
    @add_arg_scope
    def pool(
        inputs: Any, kernel_size: Any, stride: Any = 2, padding: str = "VALID",
        data_format: str = "NHWC", outputs_collections: Any = None, scope: Any = None,
    ) -> Any:  # fmt: skip
        with tf.variable_scope(scope, scope_name, [inputs]) as sc:
            first = _first(data_format)
            lead = [1, 1] if first else [1]
            trail = [] if first else [1]
            window = [*lead, *pair(kernel_size), *trail]
            step = [*lead, *pair(stride), *trail]
            function = getattr(tf.nn, kind)
            y = function(inputs, window, step, padding.upper(), data_format)
            return finished(y, sc, outputs_collections)

    return pool


max_pool2d, avg_pool2d = _pool("max_pool", "MaxPool2D"), _pool("avg_pool", "AvgPool2D")

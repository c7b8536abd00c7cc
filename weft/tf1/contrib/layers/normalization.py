"""Normalization over batches, examples and images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import weft.tf1 as tf
from weft.documentation import arguments_of
from weft.errors import ShapeError
from weft.ops.optimizer.rule import averaged
from weft.tf1.contrib.framework.arg_scope import add_arg_scope
from weft.tf1.contrib.layers.common import finished, weight
from weft.tf1.contrib.layers.dense import fully_connected
from weft.tf1.framework.collection import GraphKeys
from weft.tf1.framework.convert import static_value
from weft.tf1.framework.graph import fail
from weft.tf1.framework.option import only
from weft.tf1.keras.engine.settings import in_train_phase

__all__ = ["batch_norm", "instance_norm", "layer_norm"]


@add_arg_scope
@arguments_of(fully_connected)
def batch_norm(
    inputs: Any, decay: float = 0.999, center: bool = True, scale: bool = False,
    epsilon: float = 0.001, activation_fn: Any = None, param_initializers: Any = None,
    param_regularizers: Any = None, updates_collections: Any = GraphKeys.UPDATE_OPS,
    is_training: Any = True, reuse: Any = None, variables_collections: Any = None,
    outputs_collections: Any = None, trainable: bool = True, batch_weights: Any = None,
    fused: bool | None = None, data_format: str = "NHWC", zero_debias_moving_mean: bool = False,
    scope: Any = None, renorm: bool = False, renorm_clipping: Any = None,
    renorm_decay: float = 0.99, adjustment: Any = None,
) -> Any:  # fmt: skip
    """Batch normalization (Ioffe and Szegedy, 2015) over all axes but the channels'.

    Args:
        inputs: a tensor whose number of channels is known.
        decay: the fraction of the moving averages that each step keeps.
        center, scale: whether there are beta and gamma.
        epsilon: added to the variance.
        activation_fn: a function of the outputs.
        param_initializers, param_regularizers: dicts from `beta`, `gamma`, `moving_mean` and
            `moving_variance`.
        updates_collections: where the updates of the moving averages are; `None` makes the
            outputs wait for them.
        is_training: whether to use the batch's statistics: a Python or a tensor boolean.
        fused: accepted; moving variances of matrices and images are unbiased, as in TensorFlow,
            unless it is `False`.
        data_format: `NHWC` or `NCHW`.
        batch_weights, zero_debias_moving_mean, renorm, adjustment: refused, if they are given.
        renorm_clipping, renorm_decay: without effect.

    Raises:
        ArgumentError: for an argument that is not supported.
        ShapeError: the number of channels is not known.
    """
    del renorm_clipping, renorm_decay
    only(
        "batch_norm", {"batch_weights": batch_weights, "renorm": renorm, "adjustment": adjustment,
                       "zero_debias_moving_mean": zero_debias_moving_mean},
        batch_weights=None, renorm=False, adjustment=None, zero_debias_moving_mean=False,
    )  # fmt: skip
    with tf.variable_scope(scope, "BatchNorm", [inputs], reuse=reuse) as sc:
        x = tf.convert_to_tensor(inputs)
        rank, axis, size = _channels(x, data_format)
        zeros, ones = tf.zeros_initializer(), tf.ones_initializer()
        starts: dict[str, Any] = {"gamma": ones, "beta": zeros, "moving_mean": zeros,
                                  "moving_variance": ones}  # fmt: skip
        starts |= param_initializers or {}

        def made(name: str, train: bool) -> Any:
            penalty = (param_regularizers or {}).get(name)
            return weight(name, [size], x, starts[name], penalty, train, variables_collections)

        beta = made("beta", trainable) if center else None
        gamma = made("gamma", trainable) if scale else None
        moving = made("moving_mean", False), made("moving_variance", False)
        old = [m.value() for m in moving]
        flag = static_value(is_training)
        if flag is not None and not flag:
            y = _normalized(x, axis, old, beta, gamma, epsilon)
            return finished(y, sc, outputs_collections, activation_fn)
        if fused is not False and rank in (2, 4):
            y, *batch = _fused(x, axis, beta, gamma, epsilon)
        else:
            batch = list(tf.nn.moments(x, [i for i in range(rank) if i != axis]))
            y = _normalized(x, axis, batch, beta, gamma, epsilon)
        training = True if flag is not None else is_training
        rows = zip(moving, old, batch, strict=True)
        updates = [_moved(*row, decay, training) for row in rows]
        y = in_train_phase(y, lambda: _normalized(x, axis, old, beta, gamma, epsilon), training)
        y = _behind(updates, y, updates_collections)
        return finished(y, sc, outputs_collections, activation_fn)


def _channels(x: Any, data_format: str) -> tuple[int, int, int]:
    """The rank, the axis of the channels, and how many there are."""
    rank = x.shape.ndims or 0
    axis = 1 if data_format.startswith("NC") else rank - 1
    size = x.shape.as_list()[axis] if rank else None
    if size is None:
        text = f"batch_norm: expected a known number of channels, got shape {x.shape}"
        raise fail(ShapeError, text)
    return rank, axis, size


def _moved(variable: Any, before: Any, now: Any, decay: float, training: Any) -> Any:
    """The update of a moving average, which stays as it is but in training."""
    new = averaged(before, now, 1.0 - decay, decay)
    return variable.assign(in_train_phase(new, before, training))


def _behind(updates: Sequence[Any], y: Any, collections: Any) -> Any:
    """`y`, which waits for updates unless collections are to have them."""
    if collections is None:
        with tf.control_dependencies(updates):
            return tf.identity(y)
    for update in updates:
        tf.add_to_collections(collections, update.op)
    return y


def _fused(x: Any, axis: int, beta: Any, gamma: Any, epsilon: float) -> tuple[Any, ...]:
    """The fused operation, of a matrix as of images of one pixel."""
    size = x.shape.as_list()[axis]
    scale = tf.ones([size], x.dtype) if gamma is None else gamma.value()
    offset = tf.zeros([size], x.dtype) if beta is None else beta.value()
    images = x if x.shape.ndims == 4 else tf.reshape(x, [-1, 1, 1, size])
    form = "NCHW" if x.shape.ndims == 4 and axis == 1 else "NHWC"
    y, mean, variance = tf.nn.fused_batch_norm(
        images, scale, offset, epsilon=epsilon, data_format=form
    )
    if x.shape.ndims == 4:
        return y, mean, variance
    flat = tf.reshape(y, tf.shape(x))
    flat.set_shape(x.shape)
    return flat, mean, variance


def _normalized(x: Any, axis: int, statistics: Any, beta: Any, gamma: Any, epsilon: float) -> Any:
    shape = [1] * (x.shape.ndims or 0)
    shape[axis] = x.shape.as_list()[axis]
    parts = [*statistics, beta, gamma]
    mean, variance, offset, scale = (None if p is None else tf.reshape(p, shape) for p in parts)
    return tf.nn.batch_normalization(x, mean, variance, offset, scale, epsilon)


@add_arg_scope
@arguments_of(fully_connected)
def layer_norm(
    inputs: Any, center: bool = True, scale: bool = True, activation_fn: Any = None,
    reuse: Any = None, variables_collections: Any = None, outputs_collections: Any = None,
    trainable: bool = True, begin_norm_axis: int = 1, begin_params_axis: int = -1,
    scope: Any = None,
) -> Any:  # fmt: skip
    """Layer normalization (Ba et al., 2016): each example's mean is 0 and variance 1.

    Args:
        inputs: a tensor.
        center, scale: whether there are beta and gamma.
        begin_norm_axis: the first axis of those over which statistics are taken.
        begin_params_axis: the first axis of beta and gamma.

    Raises:
        ShapeError: the sizes of beta and gamma are not known.
    """
    with tf.variable_scope(scope, "LayerNorm", [inputs], reuse=reuse) as sc:
        x = tf.convert_to_tensor(inputs)
        rank, dims = x.shape.ndims or 0, x.shape.as_list()
        shape = dims[begin_params_axis % rank :]
        if None in shape:
            text = f"layer_norm: expected known sizes from axis {begin_params_axis}, got {x.shape}"
            raise fail(ShapeError, text)
        parts = (("beta", center, tf.zeros_initializer()), ("gamma", scale, tf.ones_initializer()))
        beta, gamma = (
            weight(name, shape, x, start, None, trainable, variables_collections) if there else None
            for name, there, start in parts
        )
        axes = list(range(begin_norm_axis % rank, rank))
        mean, variance = tf.nn.moments(x, axes, keep_dims=True)
        y = tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-12)
        y.set_shape(x.shape)
        return finished(y, sc, outputs_collections, activation_fn)


@add_arg_scope
@arguments_of(fully_connected, batch_norm)
def instance_norm(
    inputs: Any, center: bool = True, scale: bool = True, epsilon: float = 1e-6,
    activation_fn: Any = None, param_initializers: Any = None, reuse: Any = None,
    variables_collections: Any = None, outputs_collections: Any = None, trainable: bool = True,
    data_format: str = "NHWC", scope: Any = None,
) -> Any:  # fmt: skip
    """Instance normalization (Ulyanov et al., 2016): each image's channels by themselves.

    Args:
        inputs: images whose number of channels is known.
        center, scale: whether there are beta and gamma.
        param_initializers: a dict from `beta` and `gamma`.
    """
    with tf.variable_scope(scope, "InstanceNorm", [inputs], reuse=reuse) as sc:
        x = tf.convert_to_tensor(inputs)
        rank = x.shape.ndims or 0
        axis = 1 if data_format.startswith("NC") else rank - 1
        starts = {"beta": tf.zeros_initializer(), "gamma": tf.ones_initializer(),
                  **(param_initializers or {})}  # fmt: skip
        beta, gamma = (
            weight(name, [x.shape.as_list()[axis]], x, starts[name], None, trainable,
                   variables_collections) if there else None
            for name, there in (("beta", center), ("gamma", scale))
        )  # fmt: skip
        axes = [i for i in range(1, rank) if i != axis]
        mean, variance = tf.nn.moments(x, axes, keep_dims=True)
        shape: list[Any] = [1] * rank
        shape[axis] = x.shape.as_list()[axis]
        offset, gain = (None if p is None else tf.reshape(p, shape) for p in (beta, gamma))
        y = tf.nn.batch_normalization(x, mean, variance, offset, gain, epsilon)
        return finished(y, sc, outputs_collections, activation_fn)

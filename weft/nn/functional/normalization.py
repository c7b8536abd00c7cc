"""Normalisation: by batch, by row, by group of channels, by instance, by root mean square."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.eager.functions.creation.constructor import ones
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import recorded
from weft.eager.tensor.handle import Handle
from weft.errors import ArgumentError, ShapeError
from weft.ir.node import Value
from weft.ir.shape import known, show
from weft.nn.functional.layout import channels_last
from weft.ops import normalize as normalized
from weft.ops.base import at_user_line, catalogue, constant_of
from weft.ops.declaration.fact import Autocast


def _filled(like: Value, shape: tuple[int, ...], value: float) -> Value:
    return catalogue.broadcast_to(constant_of(value, like.dtype), shape=shape)


def _affine(x: Value, weight: Value | None, bias: Value | None, shape: Any) -> tuple[Value, Value]:
    """Scale and offset, of ones and zeros where there are none."""
    scale = _filled(x, shape, 1) if weight is None else weight
    return scale, _filled(x, shape, 0) if bias is None else bias


def _wide(x: Value, *others: Value | None) -> Value:
    """`x` in the type of the parameters beside it."""
    kinds = [v.dtype for v in others if v is not None]
    return x if not kinds or x.dtype is kinds[0] else catalogue.cast(x, dtype=kinds[0])


# Batch norm


@recorded(autocast=Autocast.FLOAT32)
def _batch_norm(x: Value, weight: Value | None, bias: Value | None, *, eps: float) -> Any:
    """By the batch's statistics: the result, the means, and the variances as of a sample."""
    dtype, channels = x.dtype, known(x.shape)[1]
    wide = _wide(x, weight)
    scale, offset = _affine(wide, weight, bias, (channels,))
    found: list[Value] = []

    def run(image: Value) -> Value:
        y, m, v = catalogue.batch_norm.all(image, scale, offset, epsilon=eps)
        found.extend((m, v))
        return y

    y = catalogue.cast(channels_last(run)(wide), dtype=dtype)
    n = math.prod(known(x.shape)) // max(channels, 1)
    return y, found[0], found[1] * (n / max(n - 1, 1))


@recorded(differentiable=False)
def _moved(
    mean: Value, var: Value, count: Value | None, m: Value, v: Value, *, momentum: float | None
) -> Any:
    """What running statistics become."""
    later = None if count is None else count + constant_of(1, count.dtype)
    share: Any = momentum
    if share is None:
        assert later is not None
        share = 1 / catalogue.cast(later, dtype=mean.dtype)
    moved = [
        old + (catalogue.cast(new, dtype=old.dtype) - old) * share
        for old, new in ((mean, m), (var, v))
    ]
    return tuple(moved) if later is None else (*moved, later)


@recorded(autocast=Autocast.FLOAT32)
def _batch_norm_eval(
    x: Value, weight: Value | None, bias: Value | None, mean: Value, var: Value, *, eps: float
) -> Value:
    dtype, channels = x.dtype, known(x.shape)[1]
    wide = _wide(x, weight, mean)
    scale, offset = _affine(wide, weight, bias, (channels,))

    def run(image: Value) -> Value:
        return normalized(image, mean, var, scale, offset, eps)

    return catalogue.cast(channels_last(run)(wide), dtype=dtype)


def batch_norm(
    input: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None,
    training: bool = False, momentum: float | None = 0.1, eps: float = 1e-5, count: Any = None,
) -> Any:  # fmt: skip
    """Channels, dimension 1, with mean 0 and variance 1, times `weight` plus `bias`.

    Args:
        running_mean: in training what it becomes is written to it, and so with `running_var`;
            otherwise they are what is normalised by. May be `None` in training.
        momentum: the weight of the new statistics; `None` for the mean over all batches so far,
            the number of which is `count`.
        count: a tensor that counts batches, or `None`.

    Raises:
        ShapeError: shapes that do not fit.
        ArgumentError: no running statistics outside of training, or no positive `eps` in it.

    Source: Ioffe and Szegedy, "Batch Normalization" (2015).
    """
    _check_channels("batch_norm", dims_of(input), weight, running_mean)
    if not training:
        if running_mean is None or running_var is None:
            raise ArgumentError(
                f"batch_norm: expected running_mean and running_var outside of training"
                f"{at_user_line()}"
            )
        xs = (input, weight, bias, running_mean, running_var)
        return _batch_norm_eval(*xs, eps=float(eps))
    _check_many("batch_norm", dims_of(input))
    if eps <= 0:
        text = f"batch_norm: expected eps > 0 in training, got {eps}"
        raise ArgumentError(text + at_user_line())
    if 0 in dims_of(input):  # no statistics, which stay as they are
        if count is not None:
            count.add_(1)
        any_will_do = ones(dims_of(input)[1])
        return _batch_norm_eval(input, weight, bias, any_will_do, any_will_do, eps=float(eps))
    y, *found = _batch_norm(input, weight, bias, eps=float(eps))
    move_statistics((running_mean, running_var, count), found, momentum)
    return y


def move_statistics(buffers: tuple[Any, Any, Any], found: Any, momentum: float | None) -> None:
    """Give running statistics, where there are any, their new values."""
    if buffers[0] is None or buffers[1] is None:
        return
    static = {"momentum": None if momentum is None else float(momentum)}
    moved = _moved.record((*buffers, *found), static)
    Handle.replace_all([b for b in buffers if b is not None], moved)


def _check_channels(name: str, shape: tuple[int, ...], *given: Any) -> None:
    if len(shape) < 2:
        raise ShapeError(
            f"{name}: expected an input of rank 2 or more, got {show(shape)}{at_user_line()}"
        )
    for x in given:
        if x is not None and dims_of(x) != (shape[1],):
            raise ShapeError(
                f"{name}: expected {dims_of(x)[0]} channels (dimension 1), got an input "
                f"{show(shape)}{at_user_line()}"
            )


def _check_many(name: str, shape: tuple[int, ...]) -> None:
    if math.prod(shape) == shape[1]:
        raise ShapeError(
            f"{name}: expected more than 1 value per channel when training, got an input "
            f"{show(shape)}{at_user_line()}"
        )


# Layer norm, RMS norm


@recorded(autocast=Autocast.FLOAT32)
def _layer_norm(
    x: Value, weight: Value | None, bias: Value | None, *, count: int, eps: float
) -> Value:
    dtype, dims = x.dtype, known(x.shape)
    wide, inner = _wide(x, weight, bias), math.prod(dims[len(dims) - count :])
    scale, offset = _affine(wide, weight, bias, (inner,))
    if count > 1:
        wide = catalogue.reshape(wide, shape=(*dims[: len(dims) - count], inner))
        scale, offset = (catalogue.reshape(v, shape=(inner,)) for v in (scale, offset))
    y = catalogue.layer_norm(wide, scale, offset, epsilon=eps)
    y = y if count == 1 else catalogue.reshape(y, shape=dims)
    return catalogue.cast(y, dtype=dtype) if y.dtype is not dtype else y


def _row_shape(name: str, input: Any, normalized_shape: Any, *given: Any) -> int:
    """How many last dimensions are normalised."""
    shape = dims_of(input)
    sizes = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not sizes or shape[-len(sizes) :] != sizes:
        raise ShapeError(
            f"{name}: expected an input (..., {', '.join(map(str, sizes))}), got {show(shape)}"
            f"{at_user_line()}"
        )
    for x in given:
        if x is not None and dims_of(x) != sizes:
            raise ShapeError(
                f"{name}: expected weights {show(sizes)}, got {show(dims_of(x))}{at_user_line()}"
            )
    return len(sizes)


def layer_norm(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """Rows, the last dimensions, with mean 0 and variance 1, times `weight` plus `bias`.

    Source: Ba et al., "Layer Normalization" (2016).
    """
    count = _row_shape("layer_norm", input, normalized_shape, weight, bias)
    return _layer_norm(input, weight, bias, count=count, eps=float(eps))


@recorded(autocast=Autocast.FLOAT32)
def _rms_norm(x: Value, weight: Value | None, *, count: int, eps: float | None) -> Value:
    dtype = x.dtype
    wide = catalogue.cast(x, dtype="float32") if dtype.size == 2 else x
    least = float(np.finfo(wide.dtype.numpy).eps) if eps is None else eps
    axes = tuple(range(-count, 0))
    square = catalogue.mean(catalogue.square(wide), axes=axes, keepdims=True)
    y = wide * catalogue.rsqrt(square + least)
    if weight is not None:
        y = y * catalogue.cast(weight, dtype=y.dtype)
    return y if y.dtype is dtype else catalogue.cast(y, dtype=dtype)


def rms_norm(
    input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None
) -> Any:
    """Rows, the last dimensions, over their root mean square, times `weight`.

    Source: Zhang and Sennrich, "Root Mean Square Layer Normalization" (2019).
    """
    count = _row_shape("rms_norm", input, normalized_shape, weight)
    return _rms_norm(input, weight, count=count, eps=eps)


# Group norm, instance norm


def _grouped(x: Value, groups: int, eps: float) -> Value:
    """Groups of channels of (N, C, ...) with mean 0 and variance 1."""
    dims = known(x.shape)
    inner = math.prod(dims[1:]) // groups
    rows = catalogue.reshape(x, shape=(dims[0], groups, inner))
    scale, offset = _affine(x, None, None, (inner,))
    return catalogue.reshape(catalogue.layer_norm(rows, scale, offset, epsilon=eps), shape=dims)


def _per_channel(y: Value, weight: Value | None, bias: Value | None) -> Value:
    shape = (-1, *[1] * (len(known(y.shape)) - 2))
    y = y if weight is None else y * catalogue.reshape(weight, shape=shape)
    return y if bias is None else y + catalogue.reshape(bias, shape=shape)


@recorded(autocast=Autocast.FLOAT32)
def _group_norm(
    x: Value, weight: Value | None, bias: Value | None, *, groups: int, eps: float
) -> Value:
    y = _per_channel(_grouped(_wide(x, weight), groups, eps), weight, bias)
    return y if y.dtype is x.dtype else catalogue.cast(y, dtype=x.dtype)


def group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """Groups of channels of (N, C, ...) with mean 0 and variance 1, then a factor a channel.

    Source: Wu and He, "Group Normalization" (2018).
    """
    shape = dims_of(input)
    _check_channels("group_norm", shape, weight, bias)
    if num_groups < 1 or shape[1] % num_groups:
        raise ShapeError(
            f"group_norm: expected a number of groups that divides {shape[1]} channels, got "
            f"{num_groups}{at_user_line()}"
        )
    if math.prod((shape[0], shape[1] // num_groups, *shape[2:])) == 1:
        raise ShapeError(
            f"group_norm: expected several values in each group, got one, of an input "
            f"{show(shape)}{at_user_line()}"
        )
    return _group_norm(input, weight, bias, groups=int(num_groups), eps=float(eps))


@recorded(autocast=Autocast.FLOAT32)
def _instance_norm(
    x: Value, weight: Value | None, bias: Value | None, *, eps: float, statistics: bool
) -> Any:
    """By its own statistics: the result, and their means over the batch if asked for."""
    dims = known(x.shape)
    y = _per_channel(_grouped(_wide(x, weight), dims[1], eps), weight, bias)
    if not statistics:
        return y
    axes, n = tuple(range(2, len(dims))), math.prod(dims[2:])
    m = catalogue.mean(x, axes=axes)
    v = catalogue.variance(x, axes=axes) * (n / max(n - 1, 1))
    return y, catalogue.mean(m, axes=(0,)), catalogue.mean(v, axes=(0,))


def instance_norm(
    input: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None,
    bias: Any = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """Every channel of every example of (N, C, ...) with mean 0 and variance 1.

    Args:
        use_input_stats: by its own statistics, with which the running ones, if given, move;
            otherwise by the running ones.

    Source: Ulyanov et al., "Instance Normalization" (2016).
    """
    shape = dims_of(input)
    _check_channels("instance_norm", shape, weight, running_mean)
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    if math.prod(shape[2:]) == 1:
        raise ShapeError(
            f"instance_norm: expected more than 1 spatial element when training, got {show(shape)}"
            f"{at_user_line()}"
        )
    if running_mean is None or running_var is None:
        return _instance_norm(input, weight, bias, eps=float(eps), statistics=False)
    y, *found = _instance_norm(input, weight, bias, eps=float(eps), statistics=True)
    move_statistics((running_mean, running_var, None), found, momentum)
    return y


@recorded(autocast=Autocast.FLOAT32)
def _local_response_norm(x: Value, *, size: int, alpha: float, beta: float, k: float) -> Value:
    dims = known(x.shape)
    around = [(0, 0)] * len(dims)
    far = max(dims[1] - 1, 0)  # further neighbours are none
    around[1] = before, after = min(size // 2, far), min((size - 1) // 2, far)
    squares = catalogue.pad(catalogue.square(x), paddings=tuple(around))
    parts: list[Value] = []
    for i in range(before + 1 + after):
        begin = tuple([i if axis == 1 else 0 for axis in range(len(dims))])
        end = tuple([b + d for b, d in zip(begin, dims, strict=True)])
        parts.append(catalogue.slice(squares, begin=begin, end=end))
    total = catalogue.add_n(*parts) * (alpha / size) + k
    return x * catalogue.power(total, -beta)


def local_response_norm(
    input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Any:
    """`x / (k + alpha * mean of squares over size neighbouring channels) ** beta`.

    Source: Krizhevsky et al., "ImageNet classification" (2012).
    """
    if len(dims_of(input)) < 3:
        raise ShapeError(
            f"local_response_norm: expected an input of rank 3 or more, got "
            f"{show(dims_of(input))}{at_user_line()}"
        )
    static = {"alpha": float(alpha), "beta": float(beta), "k": float(k)}
    return _local_response_norm(input, size=int(size), **static)

"""Normalization of (N, C, ...): batch, layer, group, instance, RMS, local response."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.declaration import catalogue, constant_of
from weft.ops.declaration.fact import Autocast, autocasting
from weft.ops.declaration.rule import floating_input
from weft.ops.layer.normalization import normalize
from weft.ops.shape.layout import channels_last


def _filled(like: Value, shape: tuple[int, ...], value: float) -> Value:
    return catalogue.broadcast_to(constant_of(value, like.dtype), shape=shape)


def _affine(x: Value, weight: Value | None, bias: Value | None, shape: Any) -> tuple[Value, Value]:
    """Scale and offset; ones and zeros if missing."""
    scale = _filled(x, shape, 1) if weight is None else weight
    return scale, _filled(x, shape, 0) if bias is None else bias


def _wide(name: str, x: Value, *others: Value | None) -> Value:
    """`x` cast to the dtype of the parameters."""
    floating_input(name, x)
    kinds = [v.dtype for v in others if v is not None]
    return x if not kinds or x.dtype is kinds[0] else catalogue.cast(x, dtype=kinds[0])


@autocasting(Autocast.FLOAT32)
def batch_norm(x: Value, weight: Value | None, bias: Value | None, *, eps: float) -> Any:
    """Normalize by batch statistics: the result, the means, and the unbiased variances."""
    dtype, channels = x.dtype, known(x.shape)[1]
    wide = _wide("batch_norm", x, weight)
    scale, offset = _affine(wide, weight, bias, (channels,))
    found: list[Value] = []

    def run(image: Value) -> Value:
        y, m, v = catalogue.batch_norm.all(image, scale, offset, epsilon=eps)
        found.extend((m, v))
        return y

    y = catalogue.cast(channels_last(run)(wide), dtype=dtype)
    n = math.prod(known(x.shape)) // max(channels, 1)
    return y, found[0], found[1] * (n / max(n - 1, 1))


def moved(
    mean: Value, var: Value, count: Value | None, m: Value, v: Value, *, momentum: float | None
) -> Any:
    """The new running statistics."""
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


@autocasting(Autocast.FLOAT32)
def batch_norm_eval(
    x: Value, weight: Value | None, bias: Value | None, mean: Value, var: Value, *, eps: float
) -> Value:
    """Normalize by given statistics."""
    dtype, channels = x.dtype, known(x.shape)[1]
    wide = _wide("batch_norm", x, weight, mean)
    scale, offset = _affine(wide, weight, bias, (channels,))

    def run(image: Value) -> Value:
        return normalize(image, mean, var, scale, offset, eps)

    return catalogue.cast(channels_last(run)(wide), dtype=dtype)


def channel_totals(x: Value) -> tuple[Value, Value]:
    """The sum and the number of the elements of each channel, along dimension 1."""
    sizes = [n for axis, n in enumerate(known(x.shape)) if axis != 1]
    return catalogue.sum(x, axes=_others(x)), constant_of(float(math.prod(sizes)), x.dtype)


def channel_squares(x: Value, mean: Value) -> Value:
    """The sum of squared differences from the mean of each channel."""
    return catalogue.sum(catalogue.square(x - _along(mean, x)), axes=_others(x))


def channels_normalized(
    x: Value, mean: Value, var: Value, weight: Value | None, bias: Value | None, *, eps: float
) -> Value:
    """By statistics through which gradients flow."""
    y = (x - _along(mean, x)) * _along(catalogue.rsqrt(var + eps), x)
    y = y if weight is None else y * _along(weight, x)
    return y if bias is None else y + _along(bias, x)


def _along(v: Value, x: Value) -> Value:
    """A value for each channel, to be broadcast to `x`."""
    count, *rest = known(x.shape)[1:]
    return catalogue.reshape(v, shape=(count, *[1] * len(rest)))


def _others(x: Value) -> tuple[int, ...]:
    return tuple([axis for axis in range(len(known(x.shape))) if axis != 1])


@autocasting(Autocast.FLOAT32)
def layer_norm(
    x: Value, weight: Value | None, bias: Value | None, *, count: int, eps: float
) -> Value:
    """Layer normalization over the last `count` dimensions, times `weight` plus `bias`."""
    dtype, dims = x.dtype, known(x.shape)
    wide, inner = _wide("layer_norm", x, weight, bias), math.prod(dims[len(dims) - count :])
    scale, offset = _affine(wide, weight, bias, (inner,))
    if count > 1:
        wide = catalogue.reshape(wide, shape=(*dims[: len(dims) - count], inner))
        scale, offset = (catalogue.reshape(v, shape=(inner,)) for v in (scale, offset))
    y = catalogue.layer_norm(wide, scale, offset, epsilon=eps)
    y = y if count == 1 else catalogue.reshape(y, shape=dims)
    return catalogue.cast(y, dtype=dtype) if y.dtype is not dtype else y


@autocasting(Autocast.FLOAT32)
def rms_norm(x: Value, weight: Value | None, *, count: int, eps: float | None) -> Value:
    """RMS normalization over the last `count` dimensions, times `weight`."""
    floating_input("rms_norm", x)
    dtype = x.dtype
    wide = catalogue.cast(x, dtype="float32") if dtype.size == 2 else x
    least = float(np.finfo(wide.dtype.numpy).eps) if eps is None else eps
    axes = tuple(range(-count, 0))
    square = catalogue.mean(catalogue.square(wide), axes=axes, keepdims=True)
    y = wide * catalogue.rsqrt(square + least)
    if weight is not None:
        y = y * catalogue.cast(weight, dtype=y.dtype)
    return y if y.dtype is dtype else catalogue.cast(y, dtype=dtype)


def _grouped(x: Value, groups: int, eps: float) -> Value:
    """Normalize groups of channels of (N, C, ...) to mean 0 and variance 1."""
    dims = known(x.shape)
    inner = math.prod(dims[1:]) // groups
    rows = catalogue.reshape(x, shape=(dims[0], groups, inner))
    scale, offset = _affine(x, None, None, (inner,))
    return catalogue.reshape(catalogue.layer_norm(rows, scale, offset, epsilon=eps), shape=dims)


def _per_channel(y: Value, weight: Value | None, bias: Value | None) -> Value:
    shape = (-1, *[1] * (len(known(y.shape)) - 2))
    y = y if weight is None else y * catalogue.reshape(weight, shape=shape)
    return y if bias is None else y + catalogue.reshape(bias, shape=shape)


@autocasting(Autocast.FLOAT32)
def group_norm(
    x: Value, weight: Value | None, bias: Value | None, *, groups: int, eps: float
) -> Value:
    """Group normalization, with a factor and offset for each channel."""
    y = _per_channel(_grouped(_wide("group_norm", x, weight), groups, eps), weight, bias)
    return y if y.dtype is x.dtype else catalogue.cast(y, dtype=x.dtype)


@autocasting(Autocast.FLOAT32)
def instance_norm(
    x: Value, weight: Value | None, bias: Value | None, *, eps: float, statistics: bool
) -> Any:
    """Instance normalization: the result, and optionally the statistics averaged over the batch."""
    dims = known(x.shape)
    y = _per_channel(_grouped(_wide("instance_norm", x, weight), dims[1], eps), weight, bias)
    if not statistics:
        return y
    axes, n = tuple(range(2, len(dims))), math.prod(dims[2:])
    m = catalogue.mean(x, axes=axes)
    v = catalogue.variance(x, axes=axes) * (n / max(n - 1, 1))
    return y, catalogue.mean(m, axes=(0,)), catalogue.mean(v, axes=(0,))


@autocasting(Autocast.FLOAT32)
def local_response_norm(
    x: Value, *, axis: int, before: int, after: int, alpha: float, beta: float, k: float
) -> Value:
    """`x / (k + alpha * sum of squares of adjacent channels) ** beta`.

    The size along the axis must be known; others need not.

    Source: Krizhevsky et al., "ImageNet classification" (2012).
    """
    rank = len(x.shape or ())
    size = known(None if x.shape is None else x.shape[axis : axis + 1])[0]
    far = max(size - 1, 0)  # no channel is further away
    before, after = min(before, far), min(after, far)
    ends = tuple([(before, after) if i == axis else (0, 0) for i in range(rank)])
    squares = catalogue.pad(catalogue.square(x), paddings=ends)
    lead = (slice(None),) * axis
    parts = [squares[(*lead, slice(i, i + size))] for i in range(before + 1 + after)]
    return x * catalogue.power(catalogue.add_n(*parts) * alpha + k, -beta)

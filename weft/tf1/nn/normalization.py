"""Normalization and dropout."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from weft import ops
from weft.errors import GraphError, ShapeError
from weft.ir.node import Value
from weft.ops.declaration.numeric import HALVES
from weft.ops.layer.channel_normalization import local_response_norm
from weft.ops.reduction.distance import l2_normalize as l2_normalize_of
from weft.tf1.elementwise import arithmetic
from weft.tf1.framework import dtypes
from weft.tf1.framework.convert import (
    convert_to_tensor,
    require_kind,
    static_axes,
    static_value,
    unary,
)
from weft.tf1.framework.graph import emit, fail, get_default_graph, name_scope
from weft.tf1.framework.tensor import Tensor
from weft.tf1.random import distribution
from weft.tf1.shaping import arrangement

__all__ = [
    "batch_normalization", "dropout", "fused_batch_norm", "l2_normalize",
    "local_response_normalization", "lrn", "moments",
]  # fmt: skip


# normalization
def l2_normalize(
    x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None
) -> Tensor:
    """x / sqrt(max(sum(x ** 2), epsilon)) along `axis`."""
    axes = static_axes(dim if axis is None else axis, "l2_normalize")
    build = partial(l2_normalize_of, axes=axes, epsilon=epsilon)
    return unary("Mul", build, x, name, "l2_normalize")


def moments(
    x: Any, axes: Any, shift: Any = None, name: str | None = None, keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Mean and variance over `axes`."""
    del shift
    keep = bool(keep_dims or keepdims)
    with name_scope(name, "moments", [x]):
        tensor = convert_to_tensor(x, name="x")
        along = static_axes(axes, "moments")
        first, second = (
            emit("Squeeze", [tensor], op, axes=along, keepdims=keep, name="Squeeze")
            for op in ("mean", "variance")
        )
    return first, second


def batch_normalization(
    x: Any, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: Any,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """(x - mean) / sqrt(variance + epsilon) * scale + offset; scale and offset may be `None`."""
    with name_scope(name, "batchnorm", [x, mean, variance, scale, offset]):
        tensor = convert_to_tensor(x)
        inverse = arithmetic.rsqrt(convert_to_tensor(variance) + variance_epsilon)
        if scale is not None:
            inverse = inverse * scale
        scaled = tensor * inverse
        center = convert_to_tensor(mean) * inverse
        return scaled + (-center if offset is None else offset - center)


def fused_batch_norm(
    x: Any, scale: Any, offset: Any, mean: Any = None, variance: Any = None, epsilon: float = 0.001,
    data_format: str = "NHWC", is_training: bool = True, name: str | None = None,
    exponential_avg_factor: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Batch normalization of images; also returns the mean and (unbiased) variance used.

    For `x` of float16 or bfloat16, all others may be float32, as in TensorFlow.

    Raises:
        GraphError: in evaluation, mean and variance are missing.
    """
    if not is_training and (mean is None or variance is None):
        raise fail(GraphError, "fused_batch_norm: expected mean and variance outside of training")
    if exponential_avg_factor != 1.0:
        raise fail(GraphError, "fused_batch_norm: exponential_avg_factor is not supported")
    least = max(float(epsilon), 1.001e-5)  # TensorFlow's lower bound, which cuDNN requires
    with name_scope(name, "FusedBatchNormV3", [x, scale, offset]) as scope:
        tensor = convert_to_tensor(x, name="input")
        gain = convert_to_tensor(scale, name="scale")
        shift = convert_to_tensor(offset, name="offset")
        inputs = [tensor, gain, shift]
        if not is_training:
            inputs += [convert_to_tensor(mean), convert_to_tensor(variance)]
        op = get_default_graph().emit(
            "FusedBatchNormV3", inputs, _fused_batch_norm, epsilon=least,
            first=data_format.startswith("NC"), name=scope,
        )  # fmt: skip
    return op.outputs[0], op.outputs[1], op.outputs[2]


def _fused_batch_norm(
    x: Value, scale: Value, offset: Value, *given: Value, epsilon: float, first: bool
) -> tuple[Value, Value, Value]:
    rank, kind = x.rank or 4, x.dtype
    if kind in HALVES:
        x = ops.cast(x, dtype=scale.dtype)
    if first:
        x = ops.transpose(x, perm=(0, *range(2, rank), 1))
    if given:
        mean, variance = given
        y = ops.normalize(x, mean, variance, scale, offset, epsilon)
        used = ops.identity(mean), ops.identity(variance)
    else:
        y, mean, variance = ops.batch_norm.all(x, scale, offset, epsilon=epsilon)
        used = mean, variance * _unbiased(x)
    if first:
        y = ops.transpose(y, perm=(0, rank - 1, *range(1, rank - 1)))
    return ops.cast(y, dtype=kind), *used


def _unbiased(x: Value) -> Any:
    """n / (n - 1), which makes the variance of n samples unbiased."""
    dims = (x.shape or (None,))[:-1]
    if None not in dims:
        count = int(np.prod(dims))  # pyright: ignore[reportArgumentType, reportCallIssue]
        return count / max(count - 1, 1)
    total = ops.cast(ops.size_of(x) // ops.shape_of(x)[-1], dtype=x.dtype)  # pyright: ignore
    return total / ops.maximum(total - 1.0, 1.0)


def lrn(
    input: Any, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Local response normalization over neighboring channels (Krizhevsky et al., 2012)."""

    def build(x: Value) -> Value:
        channels = (x.shape or (None,))[-1]
        if channels is None:
            raise fail(ShapeError, "lrn: expected a known number of channels")
        return local_response_norm(
            x, axis=(x.rank or 4) - 1, before=depth_radius, after=depth_radius, alpha=alpha,
            beta=beta, k=bias,
        )  # fmt: skip

    return unary("LRN", build, input, name)


local_response_normalization = lrn


# dropout
def dropout(
    x: Any, keep_prob: Any = None, noise_shape: Any = None, seed: int | None = None,
    name: str | None = None, rate: Any = None,
) -> Tensor:  # fmt: skip
    """Zero a fraction `rate` (1 - keep_prob) of the elements; scale the others up to keep the mean.

    Args:
        keep_prob: the fraction to keep: a number or a tensor, as programs feed it.
        noise_shape: a shape that broadcasts to that of x; elements along axes of 1 share a
            decision.
        rate: the fraction to drop.
    """
    if (keep_prob is None) == (rate is None):
        raise fail(GraphError, "dropout: expected one of keep_prob and rate")
    with name_scope(name, "dropout", [x]):
        tensor = convert_to_tensor(x, name="x")
        require_kind("dropout", tensor, lambda d: d.is_floating, "a floating type")
        keep = _keep(keep_prob, rate, tensor)
        if keep is None:
            return tensor
        dims = (
            arrangement.shape(tensor) if noise_shape is None else _noise_shape(tensor, noise_shape)
        )
        uniform = distribution.random_uniform(dims, dtype=_drawn(tensor), seed=seed)

        def build(v: Value, u: Value, k: Value) -> Value:
            k = ops.reshape(k, shape=())  # often from a placeholder of unknown rank
            kept = ops.less(u, ops.cast(k, dtype=u.dtype) if k.dtype is not u.dtype else k)
            return ops.select(kept, v / k, 0)

        return emit("SelectV2", [tensor, uniform, keep], build, name="SelectV2")


def _drawn(tensor: Tensor) -> Any:
    """The type to draw in: half precision is too coarse for small rates."""
    return tensor.dtype if tensor.dtype.size >= 4 else dtypes.float32


def _keep(keep_prob: Any, rate: Any, tensor: Tensor) -> Tensor | None:
    """The fraction to keep, as a tensor; `None` if that is everything."""
    given = keep_prob if rate is None else rate
    if isinstance(given, int | float):
        share = float(given) if rate is None else 1.0 - given
        if not 0 < share <= 1:
            what = "keep_prob in (0, 1]" if rate is None else "rate in [0, 1)"
            raise fail(GraphError, f"dropout: expected {what}, got {given}")
        return (
            None if share == 1 else convert_to_tensor(share, tensor.dtype.base_dtype, "keep_prob")
        )
    share = convert_to_tensor(given, tensor.dtype.base_dtype, name="rate")
    if share.shape.ndims not in (0, None):
        name = "keep_prob" if rate is None else "rate"
        raise fail(ShapeError, f"dropout: expected {name} to be a scalar, got shape {share.shape}")
    return share if rate is None else 1.0 - share


def _noise_shape(tensor: Tensor, noise_shape: Any) -> Any:
    known = static_value(noise_shape) if not isinstance(noise_shape, list | tuple) else None
    dims = list(noise_shape) if isinstance(noise_shape, list | tuple) else known
    if dims is None:
        return noise_shape
    full = arrangement.shape(tensor)
    return [full[i] if d is None else d for i, d in enumerate(list(dims))]

"""`jax.nn.initializers`: functions of (key, shape, dtype)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from weft.errors import ArgumentError
from weft.jax import random
from weft.jax.config import without_effect
from weft.jax.numpy import api as _numpy
from weft.ops.random import scaling

jnp: Any = _numpy

__all__ = [
    "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform",
    "kaiming_normal", "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal", "ones",
    "orthogonal", "truncated_normal", "uniform", "variance_scaling", "xavier_normal",
    "xavier_uniform", "zeros",
]  # fmt: skip

Initializer = Callable[..., Any]


def zeros(key: Any, shape: Any, dtype: Any = float, out_sharding: Any = None) -> Any:
    """Zeros, whatever the key."""
    without_effect("zeros", key=key)
    return jnp.zeros(shape, dtype, out_sharding=out_sharding)


def ones(key: Any, shape: Any, dtype: Any = float, out_sharding: Any = None) -> Any:
    """Ones, whatever the key."""
    without_effect("ones", key=key)
    return jnp.ones(shape, dtype, out_sharding=out_sharding)


def constant(value: Any, dtype: Any = float) -> Initializer:
    """An initializer that gives a number."""
    usual = dtype
    return lambda key, shape, dtype=usual: jnp.full(shape, value, dtype)


def uniform(scale: Any = 1e-2, dtype: Any = float) -> Initializer:
    """An initializer of numbers in [0, scale)."""
    usual = dtype
    return lambda key, shape, dtype=usual: random.uniform(key, shape, dtype) * scale


def normal(stddev: Any = 1e-2, dtype: Any = float) -> Initializer:
    """An initializer of normal numbers."""
    usual = dtype
    return lambda key, shape, dtype=usual: random.normal(key, shape, dtype) * stddev


def truncated_normal(
    stddev: Any = 1e-2, dtype: Any = float, lower: Any = -2.0, upper: Any = 2.0
) -> Initializer:
    """An initializer of truncated normal numbers."""
    usual = dtype

    def init(key: Any, shape: Any, dtype: Any = usual) -> Any:
        return random.truncated_normal(key, lower, upper, shape, dtype) * stddev

    return init


def _fans(
    shape: Sequence[int], in_axis: Any, out_axis: Any, batch_axis: Any
) -> tuple[float, float]:
    if len(shape) <= 1:
        raise ArgumentError.here(
            f"Can't compute input and output sizes of a {len(shape)}-dimensional weights tensor. "
            "Must be at least 2D."
        )
    sides = [(a,) if isinstance(a, int) else a for a in (in_axis, out_axis, batch_axis)]
    return scaling.fans(shape, *sides)


def variance_scaling(
    scale: Any, mode: str, distribution: str, in_axis: Any = -2, out_axis: Any = -1,
    batch_axis: Any = (), dtype: Any = float,
) -> Initializer:  # fmt: skip
    """An initializer whose variance is `scale` over the mean number of inputs, outputs or both.

    Args:
        mode: `fan_in`, `fan_out`, `fan_avg` or `fan_geo_avg`.
        distribution: `truncated_normal`, `normal` or `uniform`.
    """
    usual = dtype

    def init(key: Any, shape: Any, dtype: Any = usual, out_sharding: Any = None) -> Any:
        fan_in, fan_out = _fans(tuple(shape), in_axis, out_axis, batch_axis)
        kind = jnp.zeros((), dtype).dtype
        spread = scaling.deviation(scale, mode, distribution, fan_in, fan_out, kind)
        if distribution == "truncated_normal":
            drawn = random.truncated_normal(key, -2, 2, shape, kind)
        elif distribution == "normal":
            drawn = random.normal(key, shape, kind)
        else:
            drawn = random.uniform(key, shape, kind, -1)
        return drawn * spread

    return init


def _scaled(scale: float, mode: str, distribution: str) -> Callable[..., Initializer]:
    def made(
        in_axis: Any = -2, out_axis: Any = -1, batch_axis: Any = (), dtype: Any = float
    ) -> Any:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    made.__doc__ = f"`variance_scaling` with {scale}, {mode}, {distribution}."
    return made


glorot_uniform = xavier_uniform = _scaled(1.0, "fan_avg", "uniform")
glorot_normal = xavier_normal = _scaled(1.0, "fan_avg", "truncated_normal")
lecun_uniform = _scaled(1.0, "fan_in", "uniform")
lecun_normal = _scaled(1.0, "fan_in", "truncated_normal")
he_uniform = kaiming_uniform = _scaled(2.0, "fan_in", "uniform")
he_normal = kaiming_normal = _scaled(2.0, "fan_in", "truncated_normal")


def orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = float) -> Initializer:
    """An initializer of orthogonal matrices."""
    usual = dtype

    def init(key: Any, shape: Any, dtype: Any = usual, out_sharding: Any = None) -> Any:
        cols = shape[column_axis]
        rows = math.prod(shape) // cols
        q = random.orthogonal(key, rows, (), dtype, cols)
        rest = list(shape)
        del rest[column_axis]
        return scale * jnp.moveaxis(q.reshape((*rest, cols)), -1, column_axis)

    return init


def delta_orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = float) -> Initializer:
    """An initializer of convolutions that are orthogonal at the center and 0 elsewhere."""
    usual = dtype

    def init(key: Any, shape: Any, dtype: Any = usual, out_sharding: Any = None) -> Any:
        square = orthogonal(scale, column_axis, dtype)(key, (shape[-1], shape[-1]))[: shape[-2]]
        center = tuple([(n - 1) // 2 for n in shape[:-2]])
        return jnp.zeros(shape, square.dtype).at[center].set(square)

    return init

"""The scale of weights that keeps variances through a layer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from weft.errors import ArgumentError
from weft.ir.dtype import DType, float64
from weft.ops.declaration import Array

TRUNCATED: Final = 0.87962566103423978
"""The deviation of a normal distribution that is truncated at two deviations."""


def fans(
    shape: Sequence[int], inputs: Sequence[int], outputs: Sequence[int], batch: Sequence[int]
) -> tuple[float, float]:
    """How many inputs an output has, and how many outputs an input, from axes of weights."""
    ins, outs, many = (math.prod([shape[a] for a in axes]) for axes in (inputs, outputs, batch))
    field = math.prod(shape) / ins / outs / many
    return ins * field, outs * field


def deviation(
    scale: float, mode: str, distribution: str, fan_in: float, fan_out: float,
    dtype: DType = float64,
) -> Array:  # fmt: skip
    """The factor of numbers of a standard distribution, or the limit of uniform ones.

    Args:
        scale: the variance times the fan.
        mode: the fan: `fan_in`, `fan_out`, `fan_avg` or `fan_geo_avg`.
        distribution: `truncated_normal`, `normal` or `uniform`.
        dtype: in which it is computed.

    Raises:
        ArgumentError: another mode or distribution.
    """
    counts = {
        "fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2,
        "fan_geo_avg": math.sqrt(fan_in * fan_out),
    }  # fmt: skip
    if mode not in counts:
        raise ArgumentError.here(f"invalid mode for variance scaling initializer: {mode}")
    variance = np.asarray(scale / counts[mode]).astype(dtype.numpy)
    if distribution == "uniform":
        return np.sqrt(3 * variance)
    if distribution not in ("normal", "truncated_normal"):
        raise ArgumentError.here(
            f"invalid distribution for variance scaling initializer: {distribution}"
        )
    cut = distribution == "truncated_normal"
    return np.sqrt(variance) / (np.asarray(TRUNCATED).astype(dtype.numpy) if cut else 1)

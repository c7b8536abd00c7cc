"""Weighted means, and the variance of complex numbers."""

from __future__ import annotations

import math

from weft.ir.node import Value
from weft.ops.declaration import catalogue, constant_of
from weft.ops.declaration.fact import Autocast, autocasting
from weft.ops.reduction.norm import length_of_complex
from weft.ops.reduction.reduce import count
from weft.ops.shape.creation import ones_like


@autocasting(Autocast.FLOAT32)
def weighted_mean(x: Value, weights: Value, *, axes: tuple[int, ...]) -> Value:
    """The weighted mean over axes."""
    return catalogue.sum(x * weights, axes=axes) / catalogue.sum(weights, axes=axes)


def mean_of_kept(x: Value, kept: Value, *, axes: tuple[int, ...]) -> Value:
    """The mean where `kept`, which broadcasts, is 1, not 0; NaN where nothing is."""
    return catalogue.sum(x * kept, axes=axes) / catalogue.sum(kept, axes=axes)


def mean_of_any(x: Value, axes: tuple[int, ...] | None, keepdims: bool) -> Value:
    """The mean; that of integers is rounded down, as in TensorFlow."""
    if x.dtype.is_floating or x.dtype.is_complex:
        return catalogue.mean(x, axes=axes, keepdims=keepdims)
    count = catalogue.sum(ones_like(x), axes=axes, keepdims=keepdims)
    return catalogue.floor_divide(catalogue.sum(x, axes=axes, keepdims=keepdims), count)


@autocasting(Autocast.FLOAT32)
def variance_of(x: Value, *, axes: tuple[int, ...], keepdims: bool, ddof: float) -> Value:
    """The variance of complex numbers: the sum of those of real and imaginary parts."""
    parts = [catalogue.real(x), catalogue.imag(x)]
    real, imag = (catalogue.variance(v, axes=axes, keepdims=keepdims, ddof=ddof) for v in parts)
    return real + imag


@autocasting(Autocast.FLOAT32)
def std_of(x: Value, *, axes: tuple[int, ...], keepdims: bool, ddof: float) -> Value:
    """The square root of `variance_of`; its gradient is 0 if all x are equal."""
    away = x - catalogue.mean(x, axes=axes, keepdims=True)
    length = length_of_complex(away, axes=axes, keepdims=keepdims)
    return length / constant_of(math.sqrt(max(count(x, axes) - ddof, 0)), length.dtype)


def mean_where(x: Value, kept: Value, *, axes: tuple[int, ...], keepdims: bool) -> Value:
    """The mean of elements where `kept`, of the same shape, is true; NaN where nothing is."""
    share = catalogue.cast(kept, dtype=x.dtype)
    total = catalogue.sum(catalogue.select(kept, x, 0.0), axes=axes, keepdims=keepdims)
    return total / catalogue.sum(share, axes=axes, keepdims=keepdims)


def variance_where(
    x: Value, kept: Value, *, axes: tuple[int, ...], keepdims: bool, ddof: float
) -> Value:
    """The variance of elements where `kept`, of the same shape, is true."""
    share = catalogue.cast(kept, dtype=x.dtype)
    away = catalogue.select(kept, x - mean_where(x, kept, axes=axes, keepdims=True), 0.0)
    count = catalogue.sum(share, axes=axes, keepdims=keepdims)
    if x.dtype.is_complex:
        away, count = catalogue.abs(away), catalogue.real(count)
    total = catalogue.sum(catalogue.square(away), axes=axes, keepdims=keepdims)
    return total / (count - float(ddof))

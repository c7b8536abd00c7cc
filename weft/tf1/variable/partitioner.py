"""Partitioners: functions from a variable's shape and type to the number of parts per axis."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from weft.documentation import arguments_of
from weft.errors import ArgumentError
from weft.ir.shape import known
from weft.tf1.framework.dtypes import as_dtype
from weft.tf1.framework.graph import fail
from weft.tf1.framework.tensor_shape import TensorShape, as_shape

__all__ = [
    "fixed_size_partitioner", "min_max_variable_partitioner", "variable_axis_size_partitioner",
]  # fmt: skip

Partitioner = Callable[..., list[int]]


def fixed_size_partitioner(num_shards: int, axis: int = 0) -> Partitioner:
    """A partitioner into a number of parts.

    Args:
        num_shards: how many, if the axis is that long.
        axis: the axis that is divided.

    Example:
        >>> import weft.tf1 as tf
        >>> tf.fixed_size_partitioner(3)(shape=tf.TensorShape([10, 4]), dtype=tf.float32)
        [3, 1]
    """

    def partitioner(shape: Any, **_: Any) -> list[int]:
        dims = _dims("fixed_size_partitioner", shape)
        return _along(axis, min(num_shards, dims[axis]), len(dims))

    return partitioner


@arguments_of(fixed_size_partitioner)
def variable_axis_size_partitioner(
    max_shard_bytes: int, axis: int = 0, bytes_per_string_element: int = 16,
    max_shards: int | None = None,
) -> Partitioner:  # fmt: skip
    """A partitioner into parts of at most some bytes, where one axis allows that.

    Args:
        max_shard_bytes: the size that no part should exceed.
        bytes_per_string_element: the size that is assumed for a text.
        max_shards: the highest number of parts, which may then be larger.

    Raises:
        ArgumentError: one of these is below 1.

    Example:
        >>> import weft.tf1 as tf
        >>> by_size = tf.variable_axis_size_partitioner(max_shard_bytes=1024)
        >>> by_size(shape=tf.TensorShape([100, 16]), dtype=tf.float32)
        [7, 1]
    """
    sizes = {"max_shard_bytes": max_shard_bytes, "max_shards": max_shards or 1}
    for name, size in {**sizes, "bytes_per_string_element": bytes_per_string_element}.items():
        if size < 1:
            text = f"variable_axis_size_partitioner: expected {name} >= 1, got {size}"
            raise fail(ArgumentError, text)

    def partitioner(shape: Any, dtype: Any) -> list[int]:
        dims = _dims("variable_axis_size_partitioner", shape)
        row = math.prod(dims) / dims[axis] * _size(dtype, bytes_per_string_element)
        rows = max(1, math.floor(max_shard_bytes / row))
        count = math.ceil(dims[axis] / rows)
        return _along(axis, min(max_shards or count, count), len(dims))

    return partitioner


@arguments_of(variable_axis_size_partitioner)
def min_max_variable_partitioner(
    max_partitions: int = 1, axis: int = 0, min_slice_size: int = 256 << 10,
    bytes_per_string_element: int = 16,
) -> Partitioner:  # fmt: skip
    """A partitioner into parts of at least some bytes.

    Args:
        max_partitions: the highest number of parts.
        min_slice_size: the bytes below which nothing is divided.

    Example:
        >>> import weft.tf1 as tf
        >>> at_least = tf.min_max_variable_partitioner(max_partitions=16)
        >>> at_least(shape=tf.TensorShape([1024, 512]), dtype=tf.float32)
        [8, 1]
    """

    def partitioner(shape: Any, dtype: Any) -> list[int]:
        dims = _dims("min_max_variable_partitioner", shape)
        if axis >= len(dims):
            text = f"min_max_variable_partitioner: expected an axis below {len(dims)}, got {axis}"
            raise fail(ArgumentError, text)
        total = math.prod(dims) * _size(dtype, bytes_per_string_element)
        count = min(dims[axis], max_partitions, math.ceil(total / min_slice_size))
        return _along(axis, max(1, count), len(dims))

    return partitioner


def _along(axis: int, count: int, rank: int) -> list[int]:
    parts = [1] * rank
    parts[axis] = count
    return parts


def _size(dtype: Any, text: int) -> int:
    return text if getattr(dtype, "name", dtype) == "string" else as_dtype(dtype).size


def _dims(kind: str, shape: Any) -> list[int]:
    if not isinstance(shape, TensorShape):
        raise fail(ArgumentError, f"{kind}: expected a TensorShape, got {shape!r}")
    found = as_shape(shape)
    if not found.is_fully_defined():
        raise fail(ArgumentError, f"{kind}: expected a known shape, got {found}")
    return list(known(found.as_dims()))

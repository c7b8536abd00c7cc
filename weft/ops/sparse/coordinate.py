"""Sparse arrays by coordinates: column `e` of `indices` is the place of `values[e]`."""

from __future__ import annotations

import math

import numpy as np

from weft.ir.dtype import int64
from weft.ir.node import Value
from weft.ops.declaration import catalogue, constant_of
from weft.ops.sparse.segment import reduce_by_ids


def places(indices: Value, *, shape: tuple[int, ...]) -> Value:
    """The row-major number of each entry, of an array of this shape."""
    steps = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    weights = constant_of(np.array(steps, np.int64)[:, None], int64)
    return catalogue.sum(catalogue.cast(indices, dtype=int64) * weights, axes=(0,))


def dense(indices: Value, values: Value, *, shape: tuple[int, ...]) -> Value:
    """The array with all its elements; entries at one place are added.

    Args:
        indices: (axes, entries).
        values: (entries, ...), whose other axes are the last ones of `shape`.
    """
    axes = len(shape) - (values.rank or 1) + 1
    where = places(indices, shape=shape[:axes])
    found = reduce_by_ids(values, where, math.prod(shape[:axes]), "sum")
    return catalogue.reshape(found, shape=shape)

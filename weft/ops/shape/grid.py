"""Grids of numbers and of coordinates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.errors import ShapeError
from weft.ir.dtype import DType, as_dtype, float32
from weft.ir.node import Value
from weft.ir.shape import show
from weft.ops.declaration import Array, catalogue, constant_of
from weft.ops.declaration.rule import concrete
from weft.ops.shape.creation import arange, full, iota

__all__ = ["broadcast_arrays", "linspace", "logspace", "meshgrid", "tri", "vander"]


def broadcast_arrays(*xs: Value) -> tuple[Value, ...]:
    """All values broadcast to their common shape, which must be known."""
    shape = np.broadcast_shapes(*[concrete(x) for x in xs])
    return tuple(catalogue.broadcast_to(x, shape=shape) for x in xs)


def meshgrid(*xs: Value, indexing: str = "xy") -> tuple[Value, ...]:
    """Coordinate grids from a vector for each axis, in NumPy's order `xy` or `ij`.

    Raises:
        ShapeError: values of a rank other than 0 and 1, or another order.
    """
    if indexing not in ("xy", "ij"):
        raise ShapeError.here(f"meshgrid: expected order xy or ij, got {indexing!r}")
    if any(len(concrete(x)) > 1 for x in xs):
        shapes = ", ".join(show(x.shape) for x in xs)
        raise ShapeError.here(f"meshgrid: expected rank 0 or 1, got {shapes}")
    order = list(range(len(xs)))
    if indexing == "xy" and len(xs) > 1:
        order[:2] = [1, 0]
    sizes = [math.prod(concrete(x)) for x in xs]
    shape = tuple(sizes[order.index(i)] for i in range(len(xs)))
    lines = [
        catalogue.reshape(x, shape=tuple(sizes[n] if k == i else 1 for k in range(len(xs))))
        for n, (x, i) in enumerate(zip(xs, order, strict=True))
    ]
    return tuple(catalogue.broadcast_to(line, shape=shape) for line in lines)


def tri(rows: int, columns: int | None = None, k: int = 0, dtype: Any = float32) -> Value:
    """Ones up to the `k`-th diagonal, zeros above."""
    wide = rows if columns is None else columns
    line, column = iota(shape=(1, wide), axis=1), iota(shape=(rows, 1), axis=0)
    return catalogue.cast(catalogue.less_equal(line, column + k), dtype=as_dtype(dtype))


def linspace(
    start: float | Value, stop: float | Value, num: int, endpoint: bool = True, dtype: Any = float32
) -> Value:
    """`num` evenly spaced numbers from `start` to `stop`, inclusive if `endpoint`.

    `start` and `stop` may be values that broadcast, and get gradients; the new axis is the first.
    """
    kind = as_dtype(dtype)
    if not isinstance(start, Value) and not isinstance(stop, Value):
        return _numbers(np.linspace(start, stop, num, endpoint), kind)
    first, last = (
        v if isinstance(v, Value) else constant_of(np.array(v, kind.numpy)) for v in (start, stop)
    )
    first, last = broadcast_arrays(first, last)
    shape = (num, *[1] * len(concrete(first)))
    part = iota(shape=shape, axis=0, dtype=first.dtype) / max(num - endpoint, 1)
    return catalogue.cast(first * (1 - part) + last * part, dtype=kind)


def _numbers(x: Array, dtype: DType) -> Value:
    """Numbers as a constant of a dtype; integers are rounded down, as in NumPy."""
    return constant_of((np.floor(x) if dtype.is_integer else x).astype(dtype.numpy))


def evenly_spaced(start: Value, stop: Value, *, count: int) -> Value:
    """`count` numbers from `start` to `stop`, inclusive, which round as TensorFlow's."""
    if count == 1:
        return catalogue.expand_dims(start, axis=0)
    line = iota(shape=(count,), dtype=start.dtype)
    inner = start + line * ((stop - start) / (count - 1))
    return catalogue.select(catalogue.equal(line, count - 1), stop, inner)


def length_mask(lengths: Value, limit: Value | None = None, *, most: int | None = None) -> Value:
    """Where places along a new last axis are below lengths.

    Args:
        limit, most: the size of the axis, as a value or a number; by default the largest length.
    """
    stop: Any = most
    if stop is None:
        stop = catalogue.max(lengths, axes=None) if limit is None else limit
    line = arange(start=0, stop=stop, step=1, dtype=lengths.dtype)
    return catalogue.less(line, catalogue.expand_dims(lengths, axis=-1))


def logspace(
    start: float, stop: float, num: int, endpoint: bool = True, base: float = 10.0,
    dtype: Any = float32,
) -> Value:  # fmt: skip
    """`base` to the powers of `linspace(start, stop, num, endpoint)`."""
    return _numbers(np.logspace(start, stop, num, endpoint, base), as_dtype(dtype))


def vander(x: Value, columns: int | None = None, increasing: bool = False) -> Value:
    """The Vandermonde matrix of a vector, highest power first unless `increasing`.

    Raises:
        ShapeError: a rank other than 1.
    """
    dims = concrete(x)
    if len(dims) != 1:
        raise ShapeError.here(f"vander: expected x of rank 1, got shape {show(dims)}")
    count = dims[0] if columns is None else columns
    ones = full((dims[0], min(count, 1)), 1, x.dtype)
    if count <= 1:
        return ones
    column = catalogue.reshape(x, shape=(dims[0], 1))
    same = catalogue.broadcast_to(column, shape=(dims[0], count - 1))
    powers = catalogue.cumprod(catalogue.concatenate(ones, same, axis=1), axis=1)
    return powers if increasing else catalogue.flip(powers, axes=(1,))

"""Sums and products with NumPy in blocks, where it would add one row after another.

NumPy adds pairwise only along a contiguous last axis. Along the others, a float32 sum of ones ends
at 2**24, and one of a million numbers has four digits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from weft.ops.declaration.op import Array

BLOCK: Final = 1024
"""How many numbers may be added one after another."""


def reduced(ufunc: np.ufunc, x: Array, axes: Sequence[int] | None, keepdims: bool = False) -> Array:
    """`ufunc.reduce(x, axes)` in the dtype of `x`, for `np.add` and `np.multiply`."""
    axis = None if axes is None else tuple(axes)
    if x.size <= BLOCK or x.dtype.kind not in "fc" or not _is_chain(x, axis):
        # The ufuncs' reduce instead of np.sum, which takes three times as long for small arrays.
        return ufunc.reduce(x, axis=axis, dtype=x.dtype, keepdims=keepdims)
    gone = sorted([at % x.ndim for at in (range(x.ndim) if axis is None else axis)])
    y = x
    for at in reversed(gone):
        y = _along(ufunc, y, at)
    return y if keepdims else y.squeeze(tuple(gone))


def _is_chain(x: Array, axes: tuple[int, ...] | None) -> bool:
    """Whether NumPy would combine more than `BLOCK` numbers one after another."""
    if x.flags.c_contiguous and (axes is None or len(axes) == x.ndim):
        return False
    gone = range(x.ndim) if axes is None else [at % x.ndim for at in axes]
    return math.prod([x.shape[at] for at in gone if not _is_pairwise(x, at)]) > BLOCK


def _is_pairwise(x: Array, at: int) -> bool:
    return at == x.ndim - 1 and x.strides[at] == x.itemsize


def _along(ufunc: np.ufunc, x: Array, at: int) -> Array:
    """The reduction along one axis, which is kept as 1."""
    size, dims = x.shape[at], x.shape
    if size <= BLOCK or _is_pairwise(x, at):
        return ufunc.reduce(x, axis=at, keepdims=True)
    whole = size // BLOCK * BLOCK
    head, rest = np.split(x, [whole], at)
    blocks = head.reshape(*dims[:at], whole // BLOCK, BLOCK, *dims[at + 1 :])
    y = _along(ufunc, ufunc.reduce(blocks, axis=at + 1), at)
    return y if size == whole else ufunc(y, ufunc.reduce(rest, axis=at, keepdims=True))

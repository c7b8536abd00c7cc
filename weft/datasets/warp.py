"""Images moved by a matrix, as SciPy's `affine_transform` of order 1."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]
MODES: Final = ("nearest", "constant", "reflect", "wrap")


def warped(x: Array, matrix: Array, mode: str, value: float) -> Array:
    """An image [height, width, channels] whose pixel p is `x` at `matrix @ p`, interpolated.

    Args:
        matrix: [3, 3], from rows and columns of the result to those of `x`.
        mode: what is outside of `x`: one of MODES.
        value: outside, if the mode is "constant".
    """
    rows, columns = np.meshgrid(*map(np.arange, x.shape[:2]), indexing="ij")
    at = np.tensordot(matrix[:2], np.stack([rows, columns, np.ones_like(rows)]), 1)
    size = np.reshape(x.shape[:2], (2, 1, 1))
    if mode == "wrap":  # SciPy's period: the last row is the first one again
        at = np.where((at < 0) | (at > size - 1), at % np.maximum(size - 1, 1), at)
    low = np.floor(at)
    part = (at - low).astype(x.dtype)[..., None]
    found = np.zeros_like(x)
    for down in (0, 1):
        for right in (0, 1):
            share = (part[0] if down else 1 - part[0]) * (part[1] if right else 1 - part[1])
            found += share * _at(x, low[0] + down, low[1] + right, mode, value)
    if mode == "constant":  # as in SciPy, also beside the border
        found[((at < 0) | (at > size - 1)).any(0)] = value
    return found


def _at(x: Array, row: Array, column: Array, mode: str, value: float) -> Array:
    """The pixels at whole positions."""
    given = [_inside(i, n, mode) for i, n in zip((row, column), x.shape, strict=False)]
    found = x[given[0], given[1]]
    if mode == "constant":
        outside = (row < 0) | (row >= x.shape[0]) | (column < 0) | (column >= x.shape[1])
        found = np.where(outside[..., None], np.asarray(value, x.dtype), found)
    return found


def _inside(index: Array, count: int, mode: str) -> Array:
    """Positions within 0 to `count` - 1."""
    whole = index.astype(np.int64)
    if mode == "reflect":
        turn = whole % (2 * count)
        return np.where(turn < count, turn, 2 * count - 1 - turn)
    return whole.clip(0, count - 1)

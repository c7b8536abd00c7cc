"""Discrete cosine transforms, and mel filters, as matmuls with known matrices."""

from __future__ import annotations

import math

import numpy as np

from weft.ir.node import Value
from weft.ops.declaration import catalogue, constant_of
from weft.ops.declaration.memory_check import check_table

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]


def cosine_transform(x: Value, *, kind: int, size: int, orthonormal: bool) -> Value:
    """The transform of type 1, 2, 3 or 4 along the last axis, which has `size` elements.

    Source: Makhoul, "A Fast Cosine Transform in One and Two Dimensions" (1980), section I.
    """
    check_table("dct", (size, size), x.dtype)
    matrix = cosine_matrix(kind, size, orthonormal)
    return catalogue.matmul(x, constant_of(matrix.T.astype(x.dtype.numpy)))


def cosine_matrix(kind: int, n: int, orthonormal: bool) -> Matrix:
    """The matrix of a transform of n elements; the orthonormal one has none of type 1."""
    k, j = np.arange(n)[:, None], np.arange(n)
    if kind == 1:
        inner = np.where((j == 0) | (j == n - 1), 1.0, 2.0)
        return inner * np.cos(np.pi * j * k / (n - 1))
    if kind == 4:
        found = 2.0 * np.cos(np.pi * (2 * k + 1) * (2 * j + 1) / (4 * n))
        return found * math.sqrt(1 / (2 * n)) if orthonormal else found
    if kind == 3:
        turned = cosine_matrix(2, n, orthonormal).T
        return turned if orthonormal else turned * np.where(j == 0, 0.5, 1.0)
    found = 2.0 * np.cos(np.pi * k * (2 * j + 1) / (2 * n))
    return found * np.sqrt(np.where(k == 0, 1 / (4 * n), 1 / (2 * n))) if orthonormal else found


def mel_filters(count: int, bins: int, sample_rate: float, lower: float, upper: float) -> Matrix:
    """Triangular filters on the mel scale, shape (bins, count); the lowest bin has no weight.

    Source: Young et al., "The HTK Book" (2006), section 5.4.
    """

    def mel(hertz: np.ndarray) -> np.ndarray:
        return 1127.0 * np.log(1.0 + hertz / 700.0)

    at = mel(np.linspace(0.0, sample_rate / 2, bins)[1:])[:, None]
    first, last = mel(np.array([lower, upper])).tolist()
    edges = np.linspace(first, last, count + 2)
    left, center, right = edges[:-2], edges[1:-1], edges[2:]
    found = np.minimum((at - left) / (center - left), (right - at) / (right - center))
    return np.pad(np.maximum(found, 0.0), ((1, 0), (0, 0)))

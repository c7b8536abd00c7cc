"""Adasum: adds gradients that are orthogonal and averages gradients that are parallel."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.errors import ArgumentError, DTypeError
from weft.ir.dtype import as_dtype
from weft.transport import collective
from weft.transport.base import Array
from weft.transport.group import Group


def adasum(group: Group, x: Array) -> Array:
    """The Adasum of all ranks' vectors; every rank gets the same bits.

    Two vectors become `(1 - a.b / 2 a.a) a + (1 - a.b / 2 b.b) b`: their sum if they are
    orthogonal, their mean if they are equal. Neighboring ranks are combined first, then
    neighboring results. (Maleki et al., "Scaling Distributed Training with Adaptive Summation",
    2020.)

    Every rank gathers all vectors: (p - 1) (a + n b).

    Raises:
        ArgumentError: the number of ranks is not a power of two.
        DTypeError: the elements are not real floating-point numbers.
    """
    if group.size & (group.size - 1):
        raise ArgumentError.here(
            f"Adasum: expected a power of two as the number of ranks, got {group.size}"
        )
    dtype = as_dtype(x.dtype)
    if not dtype.is_inexact or dtype.is_complex:
        raise DTypeError.here(f"Adasum: expected real floating elements, got {dtype}")
    out = np.empty((group.size, x.size), x.dtype)
    what = f"adasum of {dtype}[{','.join(map(str, x.shape))}]"
    collective.all_gather(group, x.reshape(-1), list(out), what)
    rows: list[Array] = [row.astype(np.float64) for row in out]
    while len(rows) > 1:
        rows = [combined(a, b) for a, b in zip(rows[::2], rows[1::2], strict=True)]
    return rows[0].astype(x.dtype).reshape(x.shape)


def combined(a: Array, b: Array) -> Array:
    """The Adasum of two vectors.

    Example:
        >>> combined(np.array([1.0, 0.0]), np.array([0.0, 2.0])).tolist()
        [1.0, 2.0]
        >>> combined(np.array([1.0, 3.0]), np.array([1.0, 3.0])).tolist()
        [1.0, 3.0]
    """
    both = float(a @ b)
    total: Any = _less(a, both) * a + _less(b, both) * b
    return total


def _less(x: Array, both: float) -> float:
    """The factor of a vector; 1 for zeros, where any factor is right."""
    own = float(x @ x)
    return 1.0 - both / (2.0 * own) if own > 0.0 else 1.0

"""Copies of values for those who receive them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from weft.cluster.rpc.segment import pool
from weft.ir.node import TensorType
from weft.ir.shape import is_stack, known, size
from weft.runtime.memory.recycled import empty

Array = np.ndarray[Any, Any]
SHARED_BYTES: Final = 1 << 14
"""Values of so many bytes are put in memory that tasks share; smaller ones are copied."""


def copied(array: Array) -> Array:
    """A copy, in memory that earlier results have freed."""
    if array.dtype.hasobject:
        return array.copy()
    made = empty(array.shape, array.dtype)
    np.copyto(made, array)
    return made


def own(array: Array) -> Array:
    """The array, or a copy of it, that its receiver may change."""
    return array if array.flags.writeable else copied(array)


def fresh(array: Array, shared: bool = False) -> Any:
    """A result that its receiver may change: an array, or a NumPy scalar of rank 0.

    Args:
        array: a result.
        shared: whether something else has the same array.
    """
    if not array.ndim:
        return array[()]
    return copied(array) if shared else own(array)


def lent(array: Array, shared: bool) -> Array:
    """A copy to be sent; in memory that the receiver shares, if it can."""
    if not shared or array.nbytes < SHARED_BYTES:
        return copied(array)
    made = pool().allocate(array.shape, array.dtype)
    np.copyto(made, array)
    return made


def shared_memory(kind: TensorType) -> Array | None:
    """Memory that tasks of this host share, for a large value; `None` for others."""
    if is_stack(kind.shape) or size(kind.shape) * kind.dtype.size < SHARED_BYTES:
        return None
    return pool().allocate(known(kind.shape), kind.dtype.numpy)

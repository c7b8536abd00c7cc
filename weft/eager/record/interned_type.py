"""Interned types: the types of values are compared by identity, and their `id` serves as a key."""

from __future__ import annotations

from operator import index
from typing import Any, Final

from weft.eager.record.placed_type import placed
from weft.ir.dtype import DType
from weft.ir.node import TensorType

_types: Final[dict[tuple[Any, ...], TensorType]] = {}

recall_type: Final = _types.get
"""The type with a dtype and a shape on the first CPU, if it is interned; by both as a tuple."""


_made: Final = tuple.__new__


def new_type(pair: tuple[DType, tuple[int, ...]]) -> TensorType:
    """`intern` for sizes that are plain integers, of a type that is probably new."""
    kind = _made(TensorType, pair)
    return _types.setdefault(kind, kind)


def intern(dtype: DType, shape: tuple[int, ...], device: int = 0) -> TensorType:
    """The one `TensorType` of this dtype and shape; its `id` may serve as a key.

    Args:
        device: the number of the CPU of such tensors.

    Raises:
        TypeError: a size is no integer, such as 2.0, which is equal to 2.
    """
    key = (dtype, shape, device) if device else (dtype, shape)
    known = _types.get(key)
    if known is None:
        exact = tuple([index(size) for size in shape])
        key = (dtype, exact, *key[2:])
        known = _types.setdefault(key, placed(TensorType(dtype, exact), device))
    return known

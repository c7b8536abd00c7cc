"""Interned types: the types of values are compared by identity, and their `id` serves as a key."""

from __future__ import annotations

import sys
from operator import index
from typing import Final

from weft.eager.record.call.placed_type import placed
from weft.ir.dtype import DType
from weft.ir.node import TensorType
from weft.runtime.flight import LEAF, new_lock

MOST_TYPES: Final = 1 << 14
"""About 4 MB; unused ones are dropped when there are more."""

Pair = tuple[DType, tuple[int, ...]]
_types: Final[dict[Pair, TensorType]] = {}  # each is its own key
_placed: Final[dict[tuple[DType, tuple[int, ...], int], TensorType]] = {}
_kept: Final = [0]  # how many were used when the others were dropped
_changing: Final = new_lock(LEAF)
_made: Final = tuple.__new__

recall_type: Final = _types.get
"""The type with a dtype and a shape on the first CPU, if it is interned; by both as a tuple."""


def new_type(pair: Pair) -> TensorType:
    """`intern` for sizes that are plain integers, of a type that is probably new."""
    with _changing:
        if len(_types) >= MOST_TYPES and len(_types) >= 2 * _kept[0]:
            _forget()
        kind = _made(TensorType, pair)
        return _types.setdefault(kind, kind)  # pyright: ignore[reportArgumentType]


def _forget() -> None:
    """Drop types that nothing refers to."""
    for kind in list(_types.values()):
        # References of the key, the value, the list, the local variable and the call
        if sys.getrefcount(kind) <= 5:
            del _types[kind]  # pyright: ignore[reportArgumentType]
            if sys.getrefcount(kind) > 3:  # another thread has just looked it up
                _types[kind] = kind  # pyright: ignore[reportArgumentType]
    _kept[0] = len(_types)


def intern(dtype: DType, shape: tuple[int, ...], device: int = 0) -> TensorType:
    """The one `TensorType` of this dtype and shape; its `id` may serve as a key while it is kept.

    Args:
        device: the number of the CPU of such tensors.

    Raises:
        TypeError: a size is no integer, such as 2.0, which is equal to 2.
    """
    known = _placed.get((dtype, shape, device)) if device else _types.get((dtype, shape))
    if known is not None:
        return known
    exact = tuple([index(size) for size in shape])
    if not device:
        return new_type((dtype, exact))
    return _placed.setdefault((dtype, exact, device), placed(TensorType(dtype, exact), device))

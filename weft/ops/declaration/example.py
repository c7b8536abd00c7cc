"""Example arrays for operations that only move elements: every element is different."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from weft.ir.dtype import NAMED, bool_, float32
from weft.ops.declaration.op import Array, Case

ALL: Final = tuple(NAMED.values())
ARITHMETIC: Final = tuple(d for d in ALL if d is not bool_)
NUMBERS: Final = tuple(d for d in ARITHMETIC if not d.is_complex)


def count(shape: tuple[int, ...], dtype: Any = float32) -> Array:
    """1, 2, 3, ... in the given shape and dtype; every dtype holds numbers up to 127."""
    size = int(np.prod(shape))
    if dtype is bool_:
        return (np.arange(size) % 3 == 0).reshape(shape)
    return (np.arange(size) % 127 + 1).astype(dtype.numpy).reshape(shape)


def each_dtype(size: tuple[int, ...], **attrs: Any) -> Iterator[Case]:
    """The same example in every dtype."""
    for dtype in ALL:
        yield Case((count(size, dtype),), attrs)

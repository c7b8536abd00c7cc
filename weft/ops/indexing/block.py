"""Blocks of known sizes that begin where the step computes."""

from __future__ import annotations

import numpy as np

from weft.ir.dtype import int32
from weft.ir.node import Value
from weft.ops.declaration import catalogue, constant_of
from weft.ops.indexing.subscript import subscript


def block_at(x: Value, begin: Value, *, size: int, axis: int) -> Value:
    """The `size` elements from `begin` on along an axis; an error where they are not inside.

    Its gradient is dense, as that of a slice.

    Args:
        begin: a scalar.
    """
    first = catalogue.reshape(catalogue.cast(begin, dtype=int32), shape=(1,))
    rows = first + constant_of(np.arange(size, dtype=np.int32))
    found = catalogue.gather(subscript(x, (None,)), rows, axis=axis + 1)
    return subscript(found, (0,))

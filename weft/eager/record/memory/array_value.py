"""NumPy arrays as leaves of the lazy graph, without a copy."""

from __future__ import annotations

from weft.eager.record.call.interned_type import intern
from weft.eager.record.call.placed_type import device_of
from weft.eager.record.memory.memory_pool import lend
from weft.eager.record.memory.snapshot import loan_of
from weft.eager.record.pending.lazy import Array, Lazy, known
from weft.ir.dtype import as_dtype


def leaf(array: Array, like: Lazy | None = None) -> Lazy:
    """A leaf with this array, which nothing else may write to; on the device of `like`."""
    device = 0 if like is None else device_of(like.type)
    return known(array, intern(as_dtype(array.dtype), array.shape, device))


def borrowed(array: Array) -> Lazy:
    """A leaf with an array that others may write to: a record reads what it held at its line."""
    found = leaf(array)
    lend(array)
    found.loan = loan_of(array)
    return found

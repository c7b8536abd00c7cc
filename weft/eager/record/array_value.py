"""Arrays as values of the recording, without a copy."""

from __future__ import annotations

from weft.eager.record.lazy import Array, Lazy, known
from weft.eager.record.memory_pool import lend
from weft.eager.record.plan import intern
from weft.eager.record.snapshot import loan_of
from weft.ir.dtype import as_dtype


def leaf(array: Array) -> Lazy:
    """An array as a value."""
    return known(array, intern(as_dtype(array.dtype), array.shape))


def borrowed(array: Array) -> Lazy:
    """An array of others, who may write to it; it is not copied."""
    found = leaf(array)
    lend(array)
    found.loan = loan_of(array)
    return found

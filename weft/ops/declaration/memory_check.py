"""Refuses results that cannot fit in memory before anything of their size is built."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

from weft.errors import OutOfMemoryError
from weft.host.memory import available, capacity
from weft.ir.dtype import DType, as_dtype
from weft.ir.shape import show

SMALL: Final = 1 << 26  # bytes; a process without them would not have come this far


def check_room(name: str, shape: Sequence[int], dtype: Any, view: bool = False) -> None:
    """Refuse an array that the process can never allocate, whatever else it frees.

    Args:
        view: it is a view of existing memory; only check that its size is addressable.

    Raises:
        OutOfMemoryError: names the operation, both sizes, and the user's line.
    """
    kind = as_dtype(dtype)
    size = math.prod(shape) * kind.size
    if size > SMALL:
        _check(name, size, sys.maxsize if view else capacity(), kind, shape)
    elif not size and max(shape) > SMALL:  # no elements, but an axis may be too long
        _check(name, max(shape) * kind.size, sys.maxsize, kind, shape)


def check_table(name: str, shape: Sequence[int], dtype: Any) -> None:
    """Refuse a table, to be built now, for which there is not enough free memory.

    Raises:
        OutOfMemoryError: as for `check_room`.
    """
    check_room(name, shape, dtype)
    kind = as_dtype(dtype)
    size = math.prod(shape) * kind.size
    if size > SMALL:
        _check(name, size, available() or capacity(), kind, shape)


def has_room(shape: Sequence[int], dtype: DType) -> bool:
    """Whether the process can allocate an array at all."""
    size = math.prod(shape) * dtype.size
    return size <= SMALL or size <= capacity()


def _check(name: str, size: int, most: int, dtype: DType, shape: Sequence[int]) -> None:
    if size > most:
        raise OutOfMemoryError.here(
            f"{name}: not enough memory: expected at most {most:,} bytes, got {size:,} for "
            f"{dtype} of shape {show(tuple(shape))}"
        )


@contextlib.contextmanager
def in_memory(name: str) -> Iterator[None]:
    """Turns MemoryError inside it into Weft's error, with the user's line.

    Raises:
        OutOfMemoryError: an allocation failed.
    """
    try:
        yield
    except OutOfMemoryError:
        raise
    except MemoryError as error:
        why = str(error) or "an allocation failed"
        raise OutOfMemoryError.here(f"{name}: not enough memory: {why}") from error

"""Large arrays whose memory is used again: mapping fresh memory takes longer than filling it.

64 MB that the system maps anew take 12 to 80 ms, as much as a lookup of a million rows.
"""

from __future__ import annotations

import math
import threading
from typing import Any, Final

import numpy as np

from weft.runtime.memory.address import address_of

Array = np.ndarray[Any, Any]
LEAST_BYTES: Final = 1 << 17
STEP_BYTES: Final = 1 << 16
MOST_KEPT: Final = 1 << 28
"""Bytes that are kept for later arrays."""


class _Block:
    """Memory that arrays refer to; it is kept for others once none does."""

    def __init__(self, memory: Array) -> None:
        self.memory = memory
        self.__array_interface__ = {
            "shape": (memory.size,), "typestr": "|u1", "version": 3,
            "data": (address_of(memory), False),
        }  # fmt: skip

    def __del__(self) -> None:
        _pool.give(self.memory)


class _Pool:
    """Memory that no array refers to, by size."""

    def __init__(self) -> None:
        self._free: dict[int, list[Array]] = {}
        self._kept = 0
        # A garbage collection within may end a block
        self._lock = threading.RLock()

    def take(self, size: int) -> Array:
        """Bytes of this size."""
        with self._lock:
            found = self._free.get(size)
            if found:
                self._kept -= size
                return found.pop()
        return np.empty(size, np.uint8)

    def give(self, memory: Array) -> None:
        """Keeps memory, or lets it go where enough is kept."""
        with self._lock:
            if self._kept + memory.size <= MOST_KEPT:
                self._kept += memory.size
                self._free.setdefault(memory.size, []).append(memory)


_pool: Final = _Pool()


def empty(shape: int | tuple[int, ...], dtype: Any) -> Array:
    """As `np.empty`; a large array's memory is used again once no array refers to it."""
    dims = (shape,) if isinstance(shape, int) else shape
    kind = np.dtype(dtype)
    count = math.prod(dims)
    size = count * kind.itemsize
    if size < LEAST_BYTES:
        return np.empty(dims, kind)
    block = _Block(_pool.take(-(-size // STEP_BYTES) * STEP_BYTES))
    return np.asarray(block)[:size].view(kind).reshape(dims)


def zeros(shape: int | tuple[int, ...], dtype: Any) -> Array:
    """As `np.zeros`, see `empty`."""
    found = empty(shape, dtype)
    found.fill(0)
    return found

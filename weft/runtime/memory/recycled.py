"""Memory for results: freed blocks are kept and used again.

Fresh memory costs a page fault for every 4 KB, which is slower than most arithmetic. So freed
blocks are handed out again, the most recent first, because it may still be in the cache.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from weft.errors import OutOfMemoryError
from weft.host.memory import LINE as ALIGNMENT
from weft.host.memory import capacity
from weft.runtime.flight import LEAF, land, new_lock
from weft.runtime.memory.arena import no_room, refuse_too_much

Array = np.ndarray[Any, Any]
SMALLEST: Final = 16 << 10  # bytes; below, NumPy's own cache is as good
MOST_KEPT: Final = min(max(1 << 29, capacity() // 16), 1 << 31)  # bytes of free blocks
MAPPED: Final = 4 << 20
"""Bytes from which on NumPy asks for huge pages. Where memory is fragmented, the system moves
others' pages to make one, which takes longer than a first run; so such blocks are mapped here."""
LARGE: Final = 1 << 28  # bytes; asking the system whether it has them takes no time beside them


class Pool:
    """Free memory by size; the sizes that were given last are at the end."""

    def __init__(self) -> None:
        self.free: dict[int, list[Array]] = {}
        self.kept = 0
        self.lock = new_lock(LEAF)  # reentrant: a finalizer may run while this thread holds it

    def take(self, size: int) -> tuple[Array, int] | None:
        """A free block of this size, if there is one, and its size; a large one may be larger."""
        with self.lock:
            blocks = self.free.get(size)
            if not blocks and size >= LARGE:
                fitting = [n for n, found in self.free.items() if found and size <= n <= 2 * size]
                size = min(fitting, default=size)
                blocks = self.free.get(size)
            if not blocks:
                return None
            self.kept -= size
            return blocks.pop(), size

    def give(self, size: int, raw: Array) -> None:
        """Keeps a block that is not used any more, rather than those that came back before it."""
        if size > MOST_KEPT:
            return
        with self.lock:  # KeyboardInterrupt comes after calls, and must not come after acquire()
            blocks = self.free.pop(size, None) or []
            while self.free and self.kept + size > MOST_KEPT:
                oldest = next(iter(self.free))
                self.kept -= oldest * len(self.free.pop(oldest))
            if self.kept + size <= MOST_KEPT:
                self.kept += size
                blocks.append(raw)
            self.free[size] = blocks

    def clear(self, least: int = 0) -> None:
        """Returns the free blocks of at least so many bytes to the system."""
        with self.lock:
            for size in [size for size in self.free if size >= least]:
                self.kept -= size * len(self.free.pop(size))


POOL: Final = Pool()


class Block:
    """The owner of a block; every array on it keeps it alive.

    It is no array itself: the base of a NumPy view skips owners that are arrays.
    """

    __slots__ = ("__array_interface__", "__weakref__", "_raw", "_size")

    def __init__(self, raw: Array, size: int) -> None:
        address = raw.__array_interface__["data"][0]
        start = address + -address % ALIGNMENT
        self.__array_interface__: dict[str, Any] = {
            "data": (start, False), "shape": (size,), "typestr": "|u1", "version": 3
        }  # fmt: skip
        self._size, self._raw = size, raw

    def __del__(self, give: Any = POOL.give) -> None:
        raw = getattr(self, "_raw", None)
        if raw is not None:  # its constructor ran to the end
            give(self._size, raw)


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An uninitialized C-contiguous array, aligned to a cache line unless it is tiny."""
    size = math.prod(shape) * dtype.itemsize
    if size < SMALLEST:
        return np.empty(shape, dtype)
    found = POOL.take(size)
    if found is None:
        if size >= LARGE:
            refuse_too_much(size, "tensor")
        found = allocated(np.empty, size + ALIGNMENT), size
    return np.ndarray(shape, dtype, np.asarray(Block(*found)))


def allocated(make: Callable[..., Array], size: int) -> Array:
    """Fresh memory: `size` bytes.

    Args:
        make: what makes a small array, `np.empty` or `np.zeros`.

    Raises:
        OutOfMemoryError: the system has no more.
    """
    try:
        if size < MAPPED:
            return make(size, np.uint8)
        block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        return np.frombuffer(block, np.uint8)
    except (MemoryError, OSError, OverflowError, ValueError):
        raise OutOfMemoryError(no_room("tensor", size)) from None


def empty_cache() -> None:
    """Return the free blocks to the system."""
    release(0)


def release(least: int) -> None:
    """Returns the free blocks of at least so many bytes to the system."""
    land()  # memory of a step that is still running is not free yet
    POOL.clear(least)

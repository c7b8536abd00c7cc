"""Memory for results: freed blocks are kept and used again.

Fresh memory costs a page fault for every 4 KB, which is slower than most arithmetic. So freed
blocks are handed out again, the most recent first, because it may still be in the cache.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from weft.errors import OutOfMemoryError
from weft.host.memory import LINE as ALIGNMENT
from weft.ops.declaration.memory_check import check_room
from weft.runtime.flight import LEAF, land, new_lock
from weft.runtime.memory.arena import no_room, refuse_too_much

Array = np.ndarray[Any, Any]
SMALLEST: Final = 16 << 10  # bytes; below, NumPy's own cache is as good
MOST_KEPT: Final = 1 << 29  # bytes of free blocks
LARGE: Final = 1 << 28  # bytes; asking the system whether it has them takes no time beside them


class _Pool:
    """Free memory by size."""

    def __init__(self) -> None:
        self.free: dict[int, list[Array]] = {}
        self.kept = 0
        self.lock = new_lock(LEAF)  # reentrant: a finalizer may run while this thread holds it

    def take(self, size: int) -> Array | None:
        with self.lock:
            blocks = self.free.get(size)
            if not blocks:
                return None
            self.kept -= size
            return blocks.pop()

    def give(self, size: int, raw: Array) -> None:
        with self.lock:  # KeyboardInterrupt comes after calls, and must not come after acquire()
            if self.kept + size <= MOST_KEPT:
                blocks = self.free.setdefault(size, [])
                self.kept += size
                blocks.append(raw)

    def clear(self) -> None:
        with self.lock:
            self.free.clear()
            self.kept = 0


_POOL: Final = _Pool()


class _Block:
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

    def __del__(self, give: Any = _POOL.give) -> None:
        raw = getattr(self, "_raw", None)
        if raw is not None:  # its constructor ran to the end
            give(self._size, raw)


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An uninitialized C-contiguous array, aligned to a cache line unless it is tiny."""
    size = math.prod(shape) * dtype.itemsize
    if size < SMALLEST:
        return np.empty(shape, dtype)
    raw = _POOL.take(size)
    if raw is None:
        if size >= LARGE:
            refuse_too_much(size, "tensor")
        raw = _allocated(np.empty, size + ALIGNMENT)
    return np.ndarray(shape, dtype, np.asarray(_Block(raw, size)))


def _allocated(make: Callable[..., Array], size: int) -> Array:
    try:
        return make(size, np.uint8)
    except MemoryError:
        raise OutOfMemoryError(no_room("tensor", size)) from None


def zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Zeros, aligned to a cache line; pages that are never written take no memory."""
    check_room("empty", shape, dtype)
    size = math.prod(shape) * dtype.itemsize
    block = _allocated(np.zeros, size + ALIGNMENT)
    start = -block.__array_interface__["data"][0] % ALIGNMENT
    return block[start : start + size].view(dtype).reshape(shape)


def copied(array: Array, dtype: np.dtype[Any]) -> Array:
    """A C-contiguous copy of another dtype, aligned to a cache line unless it is tiny.

    Worth it for what is read at every step: each unaligned vector read touches two cache lines.
    """
    found = empty(array.shape, dtype)
    found[...] = array
    return found


class _Lease:
    """A reference that others hold to shared memory; every array on it keeps it alive."""

    __slots__ = ("__array_interface__", "__weakref__", "array")

    def __init__(self, array: Array) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__


class _Lent:
    """Memory that others may read or write to at any time."""

    def __init__(self) -> None:
        self._roots: dict[int, weakref.ref[Any]] = {}
        self._leases: dict[int, list[weakref.ref[Any]]] = {}  # of our own memory, by root
        self._shown: weakref.WeakValueDictionary[int, Array] = weakref.WeakValueDictionary()

    def add(self, array: Array) -> None:
        root = _root(array)
        key = id(root)
        if key not in self._roots:
            self._roots[key] = weakref.ref(root, lambda _: self._roots.pop(key, None))

    def lease(self, array: Array) -> Array:
        found = self._shown.get(id(array))
        if found is None:
            lease = _Lease(array)
            key = id(_root(array))  # which the lease keeps alive, as it does the array
            self._leases.setdefault(key, []).append(weakref.ref(lease, partial(self._end, key)))
            found = self._shown[id(array)] = np.asarray(lease).view(array.dtype)
        return found

    def _end(self, key: int, reference: weakref.ref[Any]) -> None:
        leases = self._leases[key]
        leases.remove(reference)
        if not leases:
            del self._leases[key]

    def has(self, array: Array) -> bool:
        if not (self._roots or self._leases):
            return False
        base: Any = array.base
        key = id(base if type(base) is _Block else _root(array))
        return key in self._roots or key in self._leases


def _root(array: Array) -> Any:
    """The owner of an array's memory, as far as it is known."""
    while True:
        base: Any = array.base
        if type(base) is _Block:
            return base
        if type(base) is _Lease:
            base = base.array
        if not isinstance(base, np.ndarray):
            return array
        array = base


_LENT: Final = _Lent()


def lend(array: Array) -> None:
    """Note that others can see the memory of an array, as it came from them."""
    _LENT.add(array)


lease: Final = _LENT.lease
"""A view of one of our arrays for others, who may see its memory as long as they hold it."""


is_lent: Final = _LENT.has
"""Whether others may see the memory of an array."""


def empty_cache() -> None:
    """Return the free blocks to the system."""
    land()  # memory of a step that is still running is not free yet
    _POOL.clear()

"""Memory of tensors: new, copied, or lent to others, who see what it holds."""

from __future__ import annotations

import math
import weakref
from functools import partial
from typing import Any, Final

import numpy as np

from weft.host.memory import LINE as ALIGNMENT
from weft.ops.declaration.memory_check import check_room
from weft.runtime.memory.recycled import Block, allocated, empty
from weft.runtime.memory.recycled import empty_cache as empty_cache

Array = np.ndarray[Any, Any]


def zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Zeros, aligned to a cache line; pages that are never written take no memory."""
    check_room("empty", shape, dtype)
    size = math.prod(shape) * dtype.itemsize
    block = allocated(np.zeros, size + ALIGNMENT)
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
        key = id(base if type(base) is Block else _root(array))
        return key in self._roots or key in self._leases


def _root(array: Array) -> Any:
    """The owner of an array's memory, as far as it is known."""
    while True:
        base: Any = array.base
        if type(base) is Block:
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

"""Anonymous shared memory that is mapped without keeping a descriptor open."""

from __future__ import annotations

import ctypes
import math
import mmap
import os
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from weft.errors import OutOfMemoryError

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = [
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
]  # fmt: skip
_LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
Array = np.ndarray[Any, Any]
_FAILED: Final = ctypes.c_void_p(-1).value


class _Mapping:
    """A mapped piece of memory, which arrays refer to; it is unmapped with the last of them."""

    def __init__(self, address: int, size: int, descriptor: int | None = None) -> None:
        self.address, self.size, self.descriptor = address, size, descriptor
        self.__array_interface__ = {
            "shape": (size,), "typestr": "|u1", "data": (address, False), "version": 3,
        }  # fmt: skip

    def __del__(self, unmap: Any = _LIBC.munmap, close: Any = os.close) -> None:
        unmap(self.address, self.size)
        if self.descriptor is not None:
            close(self.descriptor)


def mapped(memory: int, size: int, keep: bool = False, own: bool = False) -> memoryview:
    """The bytes of shared memory or a file, given its descriptor, which may be closed afterwards.

    Python's `mmap` would keep a copy of the descriptor, and a process has few of them.

    Args:
        keep: whether the descriptor is kept, for `descriptor_of`, and closed with the last array.
        own: what is written is seen by this process alone.

    Raises:
        OutOfMemoryError: it cannot be mapped.
    """
    access = mmap.PROT_READ | mmap.PROT_WRITE
    sharing = mmap.MAP_PRIVATE if own else mmap.MAP_SHARED
    address = _LIBC.mmap(None, size, access, sharing, memory, 0)
    if address in (_FAILED, None):
        why = os.strerror(ctypes.get_errno())
        raise OutOfMemoryError(f"{size} bytes of shared memory cannot be mapped: {why}")
    found: Any = np.asarray(_Mapping(address, size, memory if keep else None))
    return memoryview(found)


def filled(size: int, write: Callable[[memoryview], None]) -> int:
    """The descriptor of new shared memory, whose bytes `write` sets."""
    memory = os.memfd_create("weft", os.MFD_CLOEXEC)
    try:
        os.ftruncate(memory, size)
        write(mapped(memory, size))
    except BaseException:
        os.close(memory)
        raise
    return memory


def shared_copy(array: Array) -> Array:
    """A copy of an array in shared memory, which other processes can map."""
    size = max(array.nbytes, 1)

    def write(memory: memoryview) -> None:
        _on(memory, array.dtype, array.shape)[...] = array

    return _on(mapped(filled(size, write), size, keep=True), array.dtype, array.shape)


def array_on(memory: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """The array of `shared_copy`, given the descriptor of its memory in this process."""
    size = max(dtype.itemsize * math.prod(shape), 1)
    return _on(mapped(memory, size, keep=True), dtype, shape)


def _on(memory: memoryview, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    found: Any = np.frombuffer(memory, np.uint8, math.prod(shape) * dtype.itemsize)
    return found.view(dtype).reshape(shape)


def is_shared(array: Any) -> bool:
    """Whether an array lies in such memory."""
    return _mapping_of(array) is not None


def descriptor_of(array: Any) -> int | None:
    """The descriptor of the memory of `shared_copy`, which starts with the array; else `None`."""
    mapping = _mapping_of(array)
    whole = mapping is not None and array.__array_interface__["data"][0] == mapping.address
    return mapping.descriptor if whole and mapping is not None else None


def _mapping_of(array: Any) -> _Mapping | None:
    while array is not None and not isinstance(array, _Mapping):
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
    return array

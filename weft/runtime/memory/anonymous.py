"""Anonymous shared memory that is mapped without keeping a descriptor open."""

from __future__ import annotations

import ctypes
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
_FAILED: Final = ctypes.c_void_p(-1).value


class _Mapping:
    """A mapped piece of memory, which arrays refer to; it is unmapped with the last of them."""

    def __init__(self, address: int, size: int) -> None:
        self.address, self.size = address, size
        self.__array_interface__ = {
            "shape": (size,), "typestr": "|u1", "data": (address, False), "version": 3,
        }  # fmt: skip

    def __del__(self, unmap: Any = _LIBC.munmap) -> None:
        unmap(self.address, self.size)


def mapped(memory: int, size: int) -> memoryview:
    """The bytes of shared memory, given its descriptor, which may be closed afterwards.

    Python's `mmap` would keep a copy of the descriptor, and a process has few of them.

    Raises:
        OutOfMemoryError: it cannot be mapped.
    """
    access = mmap.PROT_READ | mmap.PROT_WRITE
    address = _LIBC.mmap(None, size, access, mmap.MAP_SHARED, memory, 0)
    if address in (_FAILED, None):
        why = os.strerror(ctypes.get_errno())
        raise OutOfMemoryError(f"data loader: {size} bytes of a batch cannot be mapped: {why}")
    found: Any = np.asarray(_Mapping(address, size))
    return memoryview(found)


def filled(size: int, write: Callable[[memoryview], None]) -> int:
    """The descriptor of new shared memory, whose bytes `write` sets."""
    memory = os.memfd_create("weft-batch", os.MFD_CLOEXEC)
    try:
        os.ftruncate(memory, size)
        write(mapped(memory, size))
    except BaseException:
        os.close(memory)
        raise
    return memory


def is_shared(array: Any) -> bool:
    """Whether an array lies in such memory."""
    while array is not None and not isinstance(array, _Mapping):
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
    return array is not None

"""Mappings of files that can have large pages.

A processor looks up each page of 4 KiB that it touches. Copying to or from 100 MB of them takes 1.5
times as long as with pages of 2 MiB, which arrays of NumPy have. Systems seldom give those to
shared memory by themselves, but do so on request (Linux 6.1); file and address must be aligned.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
from typing import Final

import numpy as np

LARGE: Final = 2 << 20
_COLLAPSE: Final = 25  # MADV_COLLAPSE
_FIXED: Final = 0x10  # MAP_FIXED
_FAILED: Final = ctypes.c_void_p(-1).value
_libc: Final = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
]  # fmt: skip
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class Mapping:
    """A file, mapped as a whole for reading and writing.

    Attributes:
        address: where it begins.

    Raises:
        OSError: it cannot be mapped.
    """

    def __init__(self, file: int, size: int) -> None:
        self.size: Final = size
        if size < LARGE:
            self._memory = mmap.mmap(file, size, mmap.MAP_SHARED | mmap.MAP_POPULATE)
            self.address = _address(self._memory)
            return
        # Addresses are taken first, and given back with this object; the file comes over them
        self._memory = mmap.mmap(-1, size + LARGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        begin = _address(self._memory)
        self.address = begin + -begin % LARGE
        flags = mmap.MAP_SHARED | mmap.MAP_POPULATE | _FIXED
        access = mmap.PROT_READ | mmap.PROT_WRITE
        if _libc.mmap(self.address, size, access, flags, file, 0) == _FAILED:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def words(self, size: int) -> memoryview:
        """The first bytes, as 64-bit numbers."""
        begin = self.address - _address(self._memory)
        return memoryview(self._memory)[begin : begin + size].cast("Q")

    def enlarge_pages(self) -> None:
        """Have large pages from now on, where the system gives them; other mappings too."""
        for offset in range(0, self.size - LARGE + 1, LARGE):
            failed = _libc.madvise(self.address + offset, LARGE, _COLLAPSE)
            if failed and ctypes.get_errno() not in (errno.EAGAIN, errno.EBUSY):
                return  # an older system, or no such memory


def _address(memory: mmap.mmap) -> int:
    return np.frombuffer(memory, np.uint8).ctypes.data

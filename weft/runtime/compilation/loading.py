"""Object code in this process: linked, and put into memory that may be executed."""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import struct
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from weft.codegen import llvm
from weft.errors import CompileError
from weft.runtime.compilation.image import linked
from weft.runtime.memory.address import address

_filled: Final[list[object]] = []
"""Memory with code, which others have the addresses of: it stays."""


def loaded(objects: Sequence[tuple[str, bytes]]) -> list[int]:
    """Links object files into this process, for as long as it lives; returns their addresses.

    LLVM, which takes 35 ms to load, links only what is no ELF, or refers to more than kernels do.

    Raises:
        CompileError: an object is damaged or lacks its symbol, or no memory may be executed.
    """
    try:
        return _loaded_alone(objects)
    except (CompileError, LookupError, OSError, ValueError, struct.error):
        found = _library().link(dict(objects))
        return [found[symbol] for symbol, _ in objects]


@functools.cache
def _library() -> llvm.Library:
    return llvm.Library()


def _loaded_alone(objects: Sequence[tuple[str, bytes]]) -> list[int]:
    image = linked(objects, mmap.PAGESIZE)
    size = len(image.code)
    block = mmap.mmap(-1, size + max(image.table, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    block[:size] = image.code
    base = filled(np.frombuffer(block, np.uint8), size, image.bases, image.imports)
    return [base + symbol for symbol in image.symbols]


def filled(
    block: np.ndarray[Any, Any], size: int, bases: Sequence[tuple[int, int]],
    imports: Sequence[tuple[int, str]],
) -> int:  # fmt: skip
    """Fills the table of an image in memory, and lets its code be executed; returns its address.

    Args:
        size: of the code, behind which the table is.

    Raises:
        CompileError: the system refuses.
    """
    base, table = address(block), block[size:].data
    libc = ctypes.CDLL(None, use_errno=True)
    for place, target in bases:
        struct.pack_into("<Q", table, place, base + target)
    for place, name in imports:
        function = getattr(libc, name, None)
        if function is None:
            raise CompileError(f"the C library has no {name}")
        struct.pack_into("<Q", table, place, ctypes.cast(function, ctypes.c_void_p).value or 0)
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    if libc.mprotect(base, size, mmap.PROT_READ | mmap.PROT_EXEC):
        raise CompileError(f"no memory can be executed: {os.strerror(ctypes.get_errno())}")
    _filled.append(block)
    return base

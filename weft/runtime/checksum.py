"""Checksums by a native kernel, if the processor has carry-less multiplication."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from weft.codegen import checksum, llvm
from weft.codegen.target import current
from weft.errors import CompileError, NoCompilerError
from weft.passes.launch import Kernel
from weft.runtime.compilation.compiler import compile_kernels
from weft.runtime.memory.address import address_of

Update = Callable[[Any, int], int]  # (contiguous bytes, old state) -> new state
_WIDE: Final = "+avx512f,+avx512vl,+pclmul,+vpclmulqdq"
_NARROW: Final = "+sse4.1,+pclmul"
_found: Final[dict[int, Update | None]] = {}


def crc_update(polynomial: int, worthwhile: bool = True) -> Update | None:
    """A function that updates a CRC by bytes in memory, releasing the GIL; `None` without a kernel.

    Args:
        polynomial: reflected.
        worthwhile: whether to compile the kernel now, if that has not been done.
    """
    if worthwhile and polynomial not in _found:
        _found[polynomial] = _made(polynomial)
    return _found.get(polynomial)


def _made(polynomial: int) -> Update | None:
    kernel = _kernel(polynomial)
    if kernel is None:
        return None
    try:
        address = compile_kernels([kernel], current())[kernel]
    except (NoCompilerError, CompileError):
        return None
    update = ctypes.CFUNCTYPE(
        ctypes.c_uint32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint32
    )(address)  # fmt: skip

    def updated(content: Any, state: int) -> int:
        array = np.frombuffer(content, np.uint8)
        return update(address_of(array), len(array), state)

    return updated


def _kernel(polynomial: int) -> Kernel | None:
    has = llvm.host()[1]
    if not (has.get("pclmul") and has.get("sse4.1")):
        return None
    if current().vector_bits == 512 and has.get("vpclmulqdq"):
        return checksum.kernel(polynomial, 4, _WIDE)
    return checksum.kernel(polynomial, 1, _NARROW)

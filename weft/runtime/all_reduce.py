"""The native function of an all-reduce in shared memory, for calls that Python makes."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from weft.codegen import all_reduce
from weft.codegen.target import current
from weft.errors import CompileError, NoCompilerError
from weft.runtime.compilation.compiler import compile_kernels
from weft.runtime.memory.address import address_of


@functools.cache
def all_reduce_function(
    name: str, dtype: np.dtype[Any], members: int
) -> Callable[[int], Callable[[Any, Any], None]] | None:
    """See `weft.transport.native.Native`; keeps Python's lock, and is compiled if need be."""
    kernel = all_reduce.kernel(name, dtype, members)
    if kernel is None:
        return None
    try:
        address = compile_kernels([kernel], current())[kernel]
    except (NoCompilerError, CompileError):
        return None
    native = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(address)  # it has no chunks

    def bound(table: int) -> Callable[[Any, Any], None]:
        slots = np.array([table, 0, 0])
        pointer, places = ctypes.c_void_p(address_of(slots)), memoryview(cast(Any, slots))

        def call(x: Any, out: Any) -> None:
            places[1], places[2] = address_of(x), address_of(out)
            native(pointer)

        return call

    return bound

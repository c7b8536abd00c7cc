"""A kernel that copies bytes: for what cannot be updated or fetched in place."""

from __future__ import annotations

from typing import Final

from weft.codegen.builder import integer, kernel_builder
from weft.ir.extent import largest
from weft.passes.launch import Argument, Kernel, Launch

CHUNK: Final = 256 * 1024  # bytes: a quarter of L2, and some 10 us of work


def copy(source: Argument, target: Argument, size: int) -> Launch:
    """Copy `size` bytes between buffers that do not overlap."""
    chunks = largest(1, -(-size // CHUNK))
    return Launch(_kernel(), (source, target, size), (1,), chunks, bytes=2.0 * size)


def _kernel() -> Kernel:
    f = kernel_builder()
    source, target, size = f.argument(0), f.argument(1), f.argument(2, "i64")
    with f.loop(f.params[1], f.params[2]) as chunk:
        start = f.mul(chunk.index, CHUNK)
        rest = f.binary("sub", size, start)
        count = f.call("i64", "llvm.smin.i64", [rest, integer(CHUNK)])
        f.declarations.add("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        f.line(
            f"call void @llvm.memcpy.p0.p0.i64({f.offset(target, start)}, "
            f"{f.offset(source, start)}, {count}, i1 false)"
        )
    return Kernel("copy", f.module())

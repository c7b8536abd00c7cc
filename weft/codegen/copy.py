"""Kernels that copy bytes: values that cannot be updated or fetched in place, and slices.

The start of a slice is an argument, so that all slices of an unrolled loop share one kernel.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from weft.codegen.builder import integer, kernel_builder
from weft.ir.extent import largest
from weft.ir.node import Node
from weft.ir.shape import known, size
from weft.ops.declaration import op_of
from weft.ops.indexing.slicing import slice_
from weft.passes.launch import Argument, Kernel, Launch

CHUNK: Final = 256 * 1024  # bytes: a quarter of L2, and some 10 us of work


def slice_as_copy(node: Node) -> Launch | None:
    """The launch of a slice of contiguous elements; `None` for any other node."""
    if op_of(node) is not slice_:
        return None
    (x,), (y,) = node.inputs, node.outputs
    dims, lengths, begin = known(x.shape), known(y.shape), node.attrs["begin"]
    parted = [a for a, (n, d) in enumerate(zip(lengths, dims, strict=True)) if n != d]
    single = all([n == 1 for n in lengths[: max(parted, default=0)]])
    if not (single and size(lengths) and all([s == 1 for s in node.attrs["strides"]])):
        return None
    first = 0
    for d, b in zip(dims, begin, strict=True):
        first = first * d + b
    launch = copy(x, y, size(lengths) * y.dtype.size)
    return replace(launch, kernel=copy_kernel(True), args=(*launch.args, first * y.dtype.size))


def copy(source: Argument, target: Argument, count: int, kernel: Kernel | None = None) -> Launch:
    """Copy `count` bytes between buffers that do not overlap.

    Args:
        kernel: what `copy_kernel` has made, if it is there already.
    """
    chunks = largest(1, -(-count // CHUNK))
    kernel = kernel or copy_kernel()
    return Launch(kernel, (source, target, count), (1,), chunks, bytes=2.0 * count)


def copy_kernel(part: bool = False) -> Kernel:
    """The kernel of all copies, or of those that begin at a place given as an argument."""
    f = kernel_builder()
    source, target, count = f.argument(0), f.argument(1), f.argument(2, "i64")
    if part:
        source = f.offset(source, f.argument(3, "i64"))
    with f.loop(f.params[1], f.params[2]) as chunk:
        start = f.mul(chunk.index, CHUNK)
        rest = f.binary("sub", count, start)
        some = f.call("i64", "llvm.smin.i64", [rest, integer(CHUNK)])
        f.declarations.add("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        f.line(
            f"call void @llvm.memcpy.p0.p0.i64({f.offset(target, start)}, "
            f"{f.offset(source, start)}, {some}, i1 false)"
        )
    return Kernel("copy_part" if part else "copy", f.module())

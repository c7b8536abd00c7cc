"""Small kernels written by hand, so that these tests need no code generator."""

from __future__ import annotations

import numpy as np

from weft.codegen.builder import Reg, constant, kernel_builder
from weft.codegen.kernel import Kernel
from weft.codegen.target import current
from weft.runtime.arena import Arena
from weft.runtime.call import Call, InArena
from weft.runtime.compiler import compile_kernels
from weft.runtime.program import Program

BLOCK = 64  # floats in one chunk


def affine(scale: float, shift: float) -> Kernel:
    """y = x * scale + shift, in chunks of 64 floats; args (x, y)."""
    b = kernel_builder()
    x, y = b.argument(0), b.argument(1)
    with b.loop(b.mul(b.params[1], BLOCK), b.mul(b.params[2], BLOCK), 8) as loop:
        v = b.load("<8 x float>", b.offset(x, loop.index, "float"), 4)
        v = b.binary("fmul", v, constant(scale, "<8 x float>"))
        v = b.binary("fadd", v, constant(shift, "<8 x float>"))
        b.store(v, b.offset(y, loop.index, "float"), 4)
    return Kernel(f"affine_{scale}_{shift}", b.module())


def threads_seen() -> Kernel:
    """y[chunk] = thread + 1 as int64; args (y,)."""
    b = kernel_builder()
    y = b.argument(0)
    with b.loop(b.params[1], b.params[2]) as loop:
        thread = b.add(b.params[3], 1)
        b.store(thread, b.offset(y, loop.index, "i64"), 8)
    return Kernel("threads_seen", b.module())


def nothing() -> Kernel:
    return Kernel("nothing", kernel_builder().module())


def fails(tag: int, position: int, value: int) -> Kernel:
    """Sets the error cell; args (cell,)."""
    b = kernel_builder()
    cell = b.argument(0)
    for slot, number in enumerate((1, tag, position, value)):
        b.store(Reg("i64", str(number)), b.offset(cell, slot, "i64"), 8)
    return Kernel("fails", b.module())


def chain(
    length: int, blocks: int, threads: int, flops: float = 1e6
) -> tuple[Program, np.ndarray, np.ndarray]:
    """`length` dependent calls between two buffers; the program, its input, its output."""
    size = blocks * BLOCK * 4
    arena = Arena(2 * size)
    places = InArena(0, size), InArena(size, size)
    kernels = [affine(1.0 + i % 3 / 8, 0.5) for i in range(length)]
    calls = [
        Call(k, (places[i % 2], places[1 - i % 2]), (1,), blocks, flops)
        for i, k in enumerate(kernels)
    ]
    program = Program(calls, compile_kernels(kernels, current()), arena, threads=threads)
    views = [arena.view(p.offset, np.dtype(np.float32), (blocks * BLOCK,)) for p in places]
    return program, views[0], views[length % 2]

"""Measures this machine's peaks: arithmetic from registers, memory bandwidth."""

from __future__ import annotations

import statistics
import time
from typing import Final, NamedTuple

from weft.codegen import target as targets
from weft.codegen.builder import constant, kernel_builder
from weft.codegen.copy import copy
from weft.codegen.microkernel import Right, largest_tile, microkernel, strided
from weft.ir.dtype import float32
from weft.passes.launch import Kernel, Scratch
from weft.runtime.compilation.compiler import compile_kernels
from weft.runtime.execution.call import Call, InArena
from weft.runtime.execution.program import Program
from weft.runtime.memory.arena import Arena

BLOCK: Final = 64 << 20  # bytes read: far more than L2, or a share of L3
CHUNK: Final = 256 << 10
PANEL: Final = 128 << 10  # bytes for the operands and the result of one microkernel
DEPTH, TIMES = 256, 600  # some 4 ms per core


class Peak(NamedTuple):
    """Billions of floating-point operations and of bytes per second, all threads together."""

    gflops: float
    gbytes: float


class Meter:
    """Measures the peaks on request; `peak` is the median.

    Arithmetic is the float32 microkernel on operands in L1, on every thread. Traffic is the faster
    of reading and copying blocks larger than any cache.
    """

    def __init__(self, threads: int) -> None:
        arena = Arena(2 * BLOCK)
        source, target = InArena(0, BLOCK), InArena(BLOCK, BLOCK)
        reader, copier = _read(), copy(Scratch(BLOCK), Scratch(BLOCK), BLOCK)
        calls = [
            Call(reader, (source, target), (1,), BLOCK // CHUNK, bytes=float(BLOCK)),
            Call(copier.kernel, (source, target, BLOCK), (1,), copier.chunks, bytes=2.0 * BLOCK),
        ]
        functions = compile_kernels([reader, copier.kernel], targets.current())
        traffic = [Program([call], functions, arena, threads=threads) for call in calls]
        self._programs = [arithmetic(threads), *traffic]
        self._found: tuple[list[float], ...] = ([], [], [])
        for program in self._programs:
            program.run()

    def take(self, rounds: int = 3) -> None:
        """Measure."""
        for _ in range(rounds):
            for program, found in zip(self._programs, self._found, strict=True):
                start = time.perf_counter_ns()
                program.run()
                ns = time.perf_counter_ns() - start
                call = program.calls[0]
                found.append((call.flops or call.bytes) / ns)

    @property
    def peak(self) -> Peak:
        """The medians so far."""
        gflops, read, copied = map(statistics.median, self._found)
        return Peak(gflops, max(read, copied))


def arithmetic(threads: int) -> Program:
    """Calls of the microkernel on panels of each thread's own, with their work."""
    kernel, flops = _multiply()
    call = Call(kernel, (InArena(0, PANEL * threads),), (0,), threads, flops=flops * threads)
    functions = compile_kernels([kernel], targets.current())
    return Program([call], functions, Arena(PANEL * threads), threads=threads)


def _multiply() -> tuple[Kernel, float]:
    """The kernel of `arithmetic`, and a thread's work."""
    tile = largest_tile(targets.current(), float32)
    b = kernel_builder()
    own = b.offset(b.argument(0), b.mul(b.params[3], PANEL))
    with b.loop(0, TIMES):
        left = strided(b, own, DEPTH * 4 + 64, tile.rows, 4)
        right = Right(b.offset(own, PANEL // 4), tile.columns * 4)
        sums = microkernel(b, tile, left, right, DEPTH)
        for i, register in enumerate(r for row in sums for r in row):
            b.store(register, b.offset(own, PANEL * 3 // 4 + i * tile.lanes * 4), 4)
    return Kernel("peak", b.module()), 2.0 * tile.rows * tile.columns * DEPTH * TIMES


def _read() -> Kernel:
    """The sum of each chunk in sixteen accumulators, so that only reading takes time."""
    lanes, streams = 16, 4
    b = kernel_builder()
    x, y = b.argument(0), b.argument(1)
    zeros = [constant(0.0, f"<{lanes} x float>")] * streams
    with b.loop(b.params[1], b.params[2]) as chunk:
        start = b.offset(x, b.mul(chunk.index, CHUNK))
        with b.loop(0, CHUNK, lanes * streams * 4, carried=zeros) as loop:
            for i, total in enumerate(loop.carried):
                where = b.offset(start, b.add(loop.index, i * lanes * 4))
                loop.next[i] = b.binary("fadd", total, b.load(f"<{lanes} x float>", where, 4))
        for i, total in enumerate(loop.results):
            where = b.add(b.mul(chunk.index, lanes * streams * 4), i * lanes * 4)
            b.store(total, b.offset(y, where), 4)
    return Kernel("read", b.module())

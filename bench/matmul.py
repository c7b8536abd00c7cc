"""Matrix product kernels alone: `python -m bench.matmul [--threads N] [--rounds N] [NAME ...]`.

Time, GFLOP/s, and the share of the peak: what the microkernel reaches with both operands in the
first-level cache, on the same threads, measured in turns with the product. The runtime's own step
programs run both, so the hand-over between threads is part of the time. Figures are medians.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft import ops
from weft.codegen import target as targets
from weft.codegen.builder import kernel_builder
from weft.codegen.family.matmul import matmul
from weft.codegen.kernel import Kernel, Launch, Scratch
from weft.codegen.microkernel import Right, largest_tile, microkernel, strided
from weft.ir.dtype import as_dtype, float32
from weft.ir.graph import Graph
from weft.ir.node import Value
from weft.ir.shape import known, size
from weft.passes.group import Group
from weft.runtime.arena import Arena
from weft.runtime.call import Call, InArena
from weft.runtime.compiler import compile_kernels
from weft.runtime.program import Program

ROUND_SECONDS = 1e-3


@dataclass(frozen=True)
class Case:
    """One product, `m x k` by `k x n`; a turned operand lies transposed in memory."""

    m: int
    k: int
    n: int
    turn_x: bool = False
    turn_y: bool = False
    dtype: str = "float32"

    @property
    def flops(self) -> float:
        return 2.0 * self.m * self.k * self.n

    def launches(self) -> tuple[Launch, ...]:
        dtype = as_dtype(self.dtype)
        with Graph().as_default():
            x = ops.placeholder(
                dtype=dtype, shape=(self.k, self.m) if self.turn_x else (self.m, self.k)
            )
            y = ops.placeholder(
                dtype=dtype, shape=(self.n, self.k) if self.turn_y else (self.k, self.n)
            )
            out = ops.matmul(x, y, transpose_x=self.turn_x, transpose_y=self.turn_y)
        return matmul(Group((out.node,), (x, y), (out,)), targets.current())


CASES = {
    "cube 512": Case(512, 512, 512),
    "cube 1024": Case(1024, 1024, 1024),
    "cube 2048": Case(2048, 2048, 2048),
    "cube 1024 x'": Case(1024, 1024, 1024, turn_x=True),
    "cube 1024 y'": Case(1024, 1024, 1024, turn_y=True),
    "cube 1024 float64": Case(1024, 1024, 1024, dtype="float64"),
    "cube 1024 bfloat16": Case(1024, 1024, 1024, dtype="bfloat16"),
    "thin 4096x64x4096": Case(4096, 64, 4096),
    "softmax forward": Case(100, 784, 10),
    "softmax gradient": Case(784, 100, 10, turn_x=True),
    "layer 128x784x512": Case(128, 784, 512),
    "layer 128x512x512": Case(128, 512, 512),
    "layer 128x512x10": Case(128, 512, 10),
    "by weight 784x128x512": Case(784, 128, 512, turn_x=True),
    "by weight 512x128x512": Case(512, 128, 512, turn_x=True),
    "by weight 512x128x10": Case(512, 128, 10, turn_x=True),
    "by data 128x512x512": Case(128, 512, 512, turn_y=True),
    "by data 128x10x512": Case(128, 10, 512, turn_y=True),
    "vector 1x4096x4096": Case(1, 4096, 4096),
    "vector 1x4096x4096 y'": Case(1, 4096, 4096, turn_y=True),
}


def program(launches: tuple[Launch, ...], threads: int, times: int) -> Program:
    """A step program that does the launches `times` times, on random numbers."""
    places: dict[Value | Scratch, InArena] = {}
    total = 0
    for launch in launches:
        for argument in launch.args:
            if isinstance(argument, int) or argument in places:
                continue
            if isinstance(argument, Scratch):
                need = argument.size * (threads if argument.per_thread else 1)
            else:
                need = size(known(argument.shape)) * argument.dtype.size
            places[argument] = InArena(total, need)
            total += -(-need // 4096) * 4096 + 64
    arena = Arena(total)
    rng = np.random.default_rng(0)
    for argument, place in places.items():
        if isinstance(argument, Value):
            shape = known(argument.shape)
            view = arena.view(place.offset, argument.dtype.numpy, shape)
            view[...] = rng.uniform(-1, 1, shape).astype(argument.dtype.numpy)
        else:
            arena.view(place.offset, np.dtype(np.uint8), (place.size,))[...] = 0
    calls = [
        Call(
            launch.kernel, tuple(a if isinstance(a, int) else places[a] for a in launch.args),
            launch.writes, launch.chunks, launch.flops, launch.bytes,
        )
        for launch in launches
    ]  # fmt: skip
    functions = compile_kernels([launch.kernel for launch in launches], targets.current())
    return Program(calls * times, functions, arena, threads=threads)


def peak(threads: int) -> tuple[Launch, float]:
    """The microkernel on panels in L1, every thread its own; and its work."""
    tile = largest_tile(targets.current(), float32)
    depth, times = 256, 600
    b = kernel_builder()
    own = b.offset(b.argument(0), b.mul(b.params[3], 1 << 17))
    with b.loop(0, times):
        left = strided(b, own, depth * 4 + 64, tile.rows, 4)
        right = Right(b.offset(own, 1 << 15), tile.columns * 4)
        sums = microkernel(b, tile, left, right, depth)
        for i, register in enumerate(r for row in sums for r in row):
            b.store(register, b.offset(own, (1 << 16) + (1 << 15) + i * tile.lanes * 4), 4)
    flops = 2.0 * tile.rows * tile.columns * depth * times * threads
    memory = Scratch(1 << 17, per_thread=True)
    return Launch(Kernel("peak", b.module()), (memory,), (0,), threads, flops=flops), flops


def measure(case: Case, threads: int, rounds: int) -> tuple[float, float]:
    """Seconds of the product, and the peak in flop/s, rounds taken in turns."""
    times = max(1, min(1000, round(ROUND_SECONDS / (case.flops / (2e11 * threads) + 1e-6))))
    ours = program(case.launches(), threads, times)
    launch, flops = peak(threads)
    best = program((launch,), threads, 1)
    found: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds + 1):
        for run, seconds in ((best, found[1]), (ours, found[0])):
            start = time.perf_counter()
            run.run()
            if turn:  # the first turn warms up
                seconds.append(time.perf_counter() - start)
    seconds, best_seconds = map(statistics.median, found)
    return seconds / times, flops / best_seconds


def report(names: Sequence[str], threads: int, rounds: int = 40) -> None:
    """Print a line per case whose name begins as one of `names`."""
    print(f"{threads} threads{'time':>28}{'GFLOP/s':>10}{'peak':>8}{'share':>8}")
    for name, case in CASES.items():
        if names and not any(name.startswith(n) for n in names):
            continue
        seconds, best = measure(case, threads, rounds)
        rate = case.flops / seconds
        share = rate / best * as_dtype(case.dtype).size / (4 if case.dtype != "bfloat16" else 2)
        print(
            f"{name:24}{seconds * 1e6:10.1f} us{rate / 1e9:10.1f}{best / 1e9:8.1f}{share:8.1%}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.matmul", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="cases whose name begins so")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=40)
    given = parser.parse_args()
    report(given.names, given.threads, given.rounds)


if __name__ == "__main__":
    main()

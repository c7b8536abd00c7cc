"""Small kernels written by hand, so that these tests need no code generator."""

from __future__ import annotations

import mmap
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from weft.codegen.builder import Reg, constant, integer, kernel_builder
from weft.codegen.target import current
from weft.passes.launch import Kernel
from weft.passes.memory import Step, plan
from weft.runtime.compilation.compiler import compile_kernels
from weft.runtime.execution.call import Call, InArena, PythonCall
from weft.runtime.execution.program import Program
from weft.runtime.memory.arena import Arena

BLOCK = 64  # floats in one chunk
LONG = 1e7  # flops: enough for a program to go to the team


def python(function: Callable[[], object]) -> PythonCall:
    """A call of a Python function without arguments."""

    def call(_: int) -> None:
        function()

    return PythonCall(call)


def affine(scale: float, shift: float, work: int = 0) -> Kernel:
    """y = x * scale + shift, in chunks of 64 floats, `work` halvings later; args (x, y)."""
    b = kernel_builder()
    x, y = b.argument(0), b.argument(1)
    with b.loop(b.mul(b.params[1], BLOCK), b.mul(b.params[2], BLOCK), 8) as loop:
        v = b.load("<8 x float>", b.offset(x, loop.index, "float"), 4)
        v = b.binary("fmul", v, constant(scale, "<8 x float>"))
        v = b.binary("fadd", v, constant(shift, "<8 x float>"))
        with b.loop(integer(0), integer(work + 1), carried=[v]) as more:
            more.next[0] = b.binary("fmul", more.carried[0], constant(0.5, "<8 x float>"))
        b.store(more.results[0], b.offset(y, loop.index, "float"), 4)
    return Kernel(f"affine_{scale}_{shift}", b.module())


def add() -> Kernel:
    """z = x - y / 2, in chunks of 64 floats; args (x, y, z)."""
    b = kernel_builder()
    x, y, z = (b.argument(i) for i in range(3))
    with b.loop(b.mul(b.params[1], BLOCK), b.mul(b.params[2], BLOCK), 8) as loop:
        left, right = (b.load("<8 x float>", b.offset(p, loop.index, "float"), 4) for p in (x, y))
        half = b.binary("fmul", right, constant(0.5, "<8 x float>"))
        b.store(b.binary("fsub", left, half), b.offset(z, loop.index, "float"), 4)
    return Kernel("add", b.module())


def threads_seen() -> Kernel:
    """y[chunk] = thread + 1 as int64, after some work; args (y,)."""
    b = kernel_builder()
    y = b.argument(0)
    with b.loop(b.params[1], b.params[2]) as loop:
        with b.loop(integer(0), integer(2000), carried=[integer(0)]) as spin:
            spin.next[0] = b.binary("mul", b.binary("xor", spin.carried[0], spin.index), spin.index)
        own = b.binary("or", b.binary("and", spin.results[0], integer(0)), b.params[3])
        b.store(b.add(own, 1), b.offset(y, loop.index, "i64"), 8)
    return Kernel("threads_seen", b.module())


def nothing() -> Kernel:
    return Kernel("nothing", kernel_builder().module())


def increment() -> Kernel:
    """x[chunk] += 1 as int64; args (x,)."""
    b = kernel_builder()
    x = b.argument(0)
    with b.loop(b.params[1], b.params[2]) as loop:
        place = b.offset(x, loop.index, "i64")
        b.store(b.add(b.load("i64", place, 8), 1), place, 8)
    return Kernel("increment", b.module())


def fails(tag: int, position: int, value: int) -> Kernel:
    """Sets the error cell; args (cell,)."""
    b = kernel_builder()
    cell = b.argument(0)
    for slot, number in enumerate((1, tag, position, value)):
        b.store(Reg("i64", str(number)), b.offset(cell, slot, "i64"), 8)
    return Kernel("fails", b.module())


def block_of(array: np.ndarray) -> mmap.mmap:
    """The mapping that a view of an arena keeps alive."""
    base = array.base
    while isinstance(base, np.ndarray):
        base = base.base
    block = base.obj if isinstance(base, memoryview) else base
    assert isinstance(block, mmap.mmap)
    return block


def make(
    calls: Sequence[Call], arena: Arena, threads: int = 1, externals: int = 0, long: bool = False
) -> Program:
    """A program; `long` makes it large enough for the team."""
    if long:
        calls = [replace(call, flops=LONG) for call in calls]
    kernels = [call.function for call in calls if isinstance(call.function, Kernel)]
    return Program(calls, compile_kernels(kernels, current()), arena, externals, threads)


def random_program(
    seed: int, threads: int, length: int = 30, blocks: int = 40
) -> tuple[Program, np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """A program of many shapes of dependence, planned; its input; (result, expectation) pairs.

    The expectation is computed by NumPy when the input is set by the caller to `arange % 17`.
    """
    draw = random.Random(seed)
    sizes = {b: draw.randint(1, blocks) * BLOCK * 4 for b in range(length)}
    sizes[0] = blocks * BLOCK * 4
    values = {0: (np.arange(blocks * BLOCK) % 17).astype(np.float32)}
    steps = [Step((), (0,))]
    recipes: list[tuple[Kernel, tuple[int, ...]]] = []
    for new in range(1, length):
        sources = [draw.randrange(max(0, new - 6), new) for _ in range(draw.choice([1, 2]))]
        sizes[new] = min(sizes[s] for s in sources)
        count = sizes[new] // 4
        if len(sources) == 1:
            scale, shift = draw.choice([0.5, 1.25]), draw.choice([1.0, 3.0])
            work = draw.choice([0, 50, 400])
            kernel = affine(scale, shift, work)
            value = values[sources[0]][:count] * np.float32(scale) + np.float32(shift)
            for _ in range(work + 1):
                value = value * np.float32(0.5)
        else:
            kernel = add()
            value = values[sources[0]][:count] - values[sources[1]][:count] * np.float32(0.5)
        values[new] = value
        recipes.append((kernel, (*sources, new)))
        pairs = tuple((new, s) for s in sources)
        steps.append(Step(tuple(sources), (new,), pairs))
    keep = [0, length - 1, length - 2, length // 2]
    where = plan(steps, sizes, keep)
    arena = Arena(where.total)
    calls = [
        Call(
            kernel, tuple(InArena(where.offsets[b], sizes[b]) for b in buffers),
            (len(buffers) - 1,), sizes[buffers[-1]] // (BLOCK * 4), flops=draw.choice([1e5, 1e6]),
        )
        for kernel, buffers in recipes
    ]  # fmt: skip
    program = make(calls, arena, threads)

    def view(buffer: int) -> np.ndarray:
        shape = (sizes[buffer] // 4,)
        return arena.view(where.offsets[buffer], np.dtype(np.float32), shape)

    view(0)[:] = values[0]
    return program, view(0), [(view(b), values[b]) for b in keep]

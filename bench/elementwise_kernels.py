"""Generated elementwise kernels alone, beside a plain copy of as many bytes.

`python -m bench.elementwise_kernels [NAME ...]`

One thread; medians of interleaved runs. A ratio of 1 is the bandwidth of the copy. Outputs take the
memory of inputs only where the name says so, as an optimizer's update does.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft import ops
from weft.codegen import llvm, target
from weft.codegen.loop.schedule import loops
from weft.ir.graph import Graph
from weft.ir.shape import size
from weft.passes.group import Group
from weft.passes.launch import SYMBOL, Launch, Scratch

TURNS = 9
LIBRARIES: list[llvm.Library] = []


def softmax(x: Any) -> Any:
    e = ops.exp(x - ops.max(x, axes=(1,), keepdims=True))
    return e / ops.sum(e, axes=(1,), keepdims=True)


def adam(w: Any, m: Any, v: Any, g: Any) -> Any:
    m, v = m * 0.9 + g * 0.1, v * 0.999 + g * g * 0.001
    return w - 0.001 * m / (ops.sqrt(v) + 1e-8), m, v


def chain(x: Any) -> Any:
    for _ in range(5):
        x = x * 1.0001 + 0.5
    return x


@dataclass(frozen=True)
class Work:
    """What to compute on placeholders of the given shapes."""

    build: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    inplace: bool = False


WORK = {
    "softmax 100x10": Work(softmax, ((100, 10),)),
    "softmax 4096x1024": Work(softmax, ((4096, 1024),)),
    "relu 1M": Work(ops.relu, ((1 << 20,),)),
    "Adam 1M in place": Work(adam, ((1 << 20,),) * 4, True),
    "10 operations on 64M": Work(chain, ((1 << 26,),)),
    "sum of 4096x1024": Work(lambda x: ops.sum(x, axes=None), ((4096, 1024),)),
    "sum over rows of 4096x1024": Work(lambda x: ops.sum(x, axes=(0,)), ((4096, 1024),)),
    "sum over columns of 4096x1024": Work(lambda x: ops.sum(x, axes=(1,)), ((4096, 1024),)),
    "bias gradient 401408x64": Work(lambda x: ops.sum(x, axes=(0,)), ((401408, 64),)),
    "transpose 2048x2048": Work(lambda x: ops.transpose(x, perm=(1, 0)), ((2048, 2048),)),
    "NHWC to NCHW": Work(lambda x: ops.transpose(x, perm=(0, 3, 1, 2)), ((32, 56, 56, 64),)),
    "concatenate": Work(lambda x, y: ops.concatenate(x, y, axis=1), ((4096, 500), (4096, 300))),
    "bias of 3 channels": Work(lambda x, y: x + y, ((1 << 20, 3), (3,))),
}


def buffer(count: int) -> np.ndarray:
    """Bytes that start at a cache line."""
    memory = np.full(count + 64, 63, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + count]


def compiled(work: Work) -> tuple[Callable[[], None], int]:
    """What runs the kernels, and the bytes that they move."""
    with Graph().as_default() as graph:
        xs = [ops.placeholder(dtype="float32", shape=s) for s in work.shapes]
        ys = work.build(*xs)
    outputs = ys if isinstance(ys, tuple) else (ys,)
    nodes = tuple(n for n in graph.nodes if n.op != "placeholder")
    launches = loops(Group(nodes, tuple(xs), outputs), target.current())
    memory: dict[Any, np.ndarray] = {x: buffer(size(x.shape) * 4) for x in xs}
    calls = [call_of(launch, memory, work.inplace) for launch in launches]

    def run(_alive: object = memory) -> None:
        for function, slots, chunks in calls:
            function(ctypes.addressof(slots), 0, chunks, 0)

    return run, int(sum(launch.bytes for launch in launches))


def call_of(launch: Launch, memory: dict[Any, np.ndarray], inplace: bool) -> tuple[Any, Any, int]:
    """A kernel as a function, its arguments and its chunks."""
    hosts = dict(launch.inplace) if inplace else {}
    for n, a in enumerate(launch.args):
        if isinstance(a, int) or a in memory:
            continue
        bytes_ = a.size if isinstance(a, Scratch) else size(a.shape) * a.dtype.size
        memory[a] = memory[launch.args[hosts[n]]] if n in hosts else buffer(bytes_)
    machine = target.current()
    library = llvm.Library()
    LIBRARIES.append(library)
    code = llvm.to_object(launch.kernel.ir, machine.cpu, machine.features)
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[ctypes.c_int64] * 3)
    function = kind(library.link({SYMBOL: code})[SYMBOL])
    values = [a if isinstance(a, int) else memory[a].ctypes.data for a in launch.args]
    return function, (ctypes.c_int64 * len(values))(*values), launch.chunks


def measure(work: Work) -> tuple[float, float, int]:
    """Seconds of the kernels and of a copy of as many bytes, and these bytes."""
    run, moved = compiled(work)
    source, destination = buffer(moved // 2), buffer(moved // 2)
    sides = (run, lambda: np.copyto(destination, source))
    times: tuple[list[float], list[float]] = ([], [])
    repeats = max(1, int(2e8 / max(moved, 1) / 10))
    for _ in range(TURNS):
        for side, found in zip(sides, times, strict=True):
            side()
            start = time.perf_counter()
            for _ in range(min(repeats, 1000)):
                side()
            found.append((time.perf_counter() - start) / min(repeats, 1000))
    return statistics.median(times[0]), statistics.median(times[1]), moved


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names of what to run")
    names = parser.parse_args().names
    print(f"{'':32}{'us':>10}{'GB/s':>8}{'copy':>8}{'ratio':>8}")
    for name, work in WORK.items():
        if names and not any(part in name for part in names):
            continue
        ours, copy, moved = measure(work)
        print(
            f"{name:32}{ours * 1e6:10.1f}{moved / ours / 1e9:8.1f}{moved / copy / 1e9:8.1f}"
            f"{copy / ours:8.2f}"
        )


if __name__ == "__main__":
    main()

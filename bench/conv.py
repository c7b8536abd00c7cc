"""Convolution kernels alone, forward and both gradients: `python -m bench.conv [NAME ...]`.

Figures are GFLOP/s, medians of interleaved runs, and the share of the peak that the microkernel
reaches on the same threads between the runs.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft import ops
from weft.codegen import llvm
from weft.codegen import target as targets
from weft.codegen.builder import kernel_builder
from weft.codegen.family import conv as family
from weft.codegen.kernel import SYMBOL, Kernel, Launch, Scratch
from weft.codegen.microkernel import Right, largest_tile, microkernel, strided
from weft.ir.dtype import float32
from weft.ir.graph import Graph
from weft.ir.node import Value
from weft.ops.convolution import conv_geometry
from weft.passes.group import Group


@dataclass(frozen=True)
class Layer:
    """One convolution of a network."""

    x: tuple[int, ...]
    w: tuple[int, ...]
    stride: int = 1
    groups: int = 1

    @property
    def flops(self) -> float:
        n, height, width, _ = self.x
        pixels = n * -(-height // self.stride) * -(-width // self.stride)
        return 2.0 * pixels * self.w[0] * self.w[1] * self.w[2] * self.w[3]


LAYERS = {
    "resnet 3x3 56x56x64": Layer((16, 56, 56, 64), (3, 3, 64, 64)),
    "resnet 3x3 28x28x128": Layer((16, 28, 28, 128), (3, 3, 128, 128)),
    "resnet 3x3 14x14x256": Layer((16, 14, 14, 256), (3, 3, 256, 256)),
    "resnet 3x3 7x7x512": Layer((16, 7, 7, 512), (3, 3, 512, 512)),
    "resnet 1x1 56x56 64-256": Layer((16, 56, 56, 64), (1, 1, 64, 256)),
    "resnet 1x1 14x14 1024-256": Layer((16, 14, 14, 1024), (1, 1, 1024, 256)),
    "resnet 1x1/2 56x56 256-512": Layer((16, 56, 56, 256), (1, 1, 256, 512), 2),
    "resnet 3x3/2 56x56x128": Layer((16, 56, 56, 128), (3, 3, 128, 128), 2),
    "resnet 7x7/2 224x224 3-64": Layer((16, 224, 224, 3), (7, 7, 3, 64), 2),
    "vgg 3x3 224x224 3-64": Layer((4, 224, 224, 3), (3, 3, 3, 64)),
    "vgg 3x3 112x112 64-128": Layer((4, 112, 112, 64), (3, 3, 64, 128)),
    "mobilenet depthwise 112x112x32": Layer((16, 112, 112, 32), (3, 3, 1, 32), 1, 32),
    "mobilenet depthwise 14x14x512": Layer((16, 14, 14, 512), (3, 3, 1, 512), 1, 512),
    "mobilenet 1x1 112x112 32-64": Layer((16, 112, 112, 32), (1, 1, 32, 64)),
    "digits 5x5 28x28 1-16": Layer((64, 28, 28, 1), (5, 5, 1, 16)),
    "digits 3x3 14x14 16-32": Layer((64, 14, 14, 16), (3, 3, 16, 32)),
    "digits 3x3 28x28 1-16": Layer((128, 28, 28, 1), (3, 3, 1, 16)),
}
KINDS = ("conv", "conv_grad_input", "conv_grad_weight")
Run = Callable[[], None]
_libraries: list[llvm.Library] = []


def linked(kernel: Kernel) -> Any:
    """A kernel's native function."""
    target = targets.current()
    library = llvm.Library()
    code = llvm.to_object(kernel.ir, target.cpu, target.features)
    _libraries.append(library)
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    return kind(library.link({SYMBOL: code})[SYMBOL])


def group_of(layer: Layer, kind: str) -> Group:
    """A group of the layer's operation alone."""
    rules: dict[str, Any] = {
        "strides": (layer.stride,) * 2, "padding": "same", "dilation": None,
        "groups": layer.groups,
    }  # fmt: skip
    geometry = conv_geometry(layer.x, layer.w, **rules)
    rules |= {"padding": geometry.padding, "dilation": geometry.dilation}
    with Graph().as_default():
        shapes = {"x": layer.x, "w": layer.w, "g": (layer.x[0], *geometry.output, layer.w[3])}
        x, w, g = (ops.placeholder(dtype=float32, shape=s) for s in shapes.values())
        if kind == "conv":
            node = ops.conv(x, w, **rules).node
        elif kind == "conv_grad_input":
            node = ops.conv_grad_input(g, w, shape=layer.x, **rules).node
        else:
            node = ops.conv_grad_weight(x, g, shape=layer.w, **rules).node
    return Group((node,), node.data_inputs, node.outputs)


def prepared(launches: tuple[Launch, ...], threads: int) -> Run:
    """A function that does the launches on `threads` threads, chunks dealt in equal shares."""
    memory: dict[Any, np.ndarray[Any, Any]] = {}
    steps: list[tuple[Any, Any, int]] = []
    rng = np.random.default_rng(0)
    for launch in launches:
        slots = (ctypes.c_int64 * len(launch.args))()
        for i, arg in enumerate(launch.args):
            if isinstance(arg, int):
                slots[i] = arg
                continue
            if arg not in memory:
                memory[arg] = aligned(arg, threads, rng)
            slots[i] = memory[arg].ctypes.data
        steps.append((linked(launch.kernel), slots, launch.chunks))

    def run() -> None:
        for function, slots, chunks in steps:
            parallel(function, slots, chunks, threads)

    run.memory = memory  # type: ignore[attr-defined]
    return run


def aligned(arg: Value | Scratch, threads: int, rng: np.random.Generator) -> Any:
    if isinstance(arg, Scratch):
        count = arg.size * (threads if arg.per_thread else 1) // 4
    else:
        count = int(np.prod([d or 0 for d in arg.shape or ()]))
    room = np.empty(count + 1024, np.float32)
    room[:] = rng.uniform(-1, 1, room.shape)
    start = -room.ctypes.data % 4096 // 4
    return room[start : start + count]


def parallel(function: Any, slots: Any, chunks: int, threads: int) -> None:
    if threads == 1 or chunks == 1:
        function(slots, 0, chunks, 0)
        return
    cuts = [i * chunks // threads for i in range(threads + 1)]
    team = [
        threading.Thread(target=function, args=(slots, cuts[i], cuts[i + 1], i))
        for i in range(1, threads)
    ]
    for member in team:
        member.start()
    function(slots, 0, cuts[1], 0)
    for member in team:
        member.join()


def peak(threads: int) -> tuple[Run, float]:
    """The microkernel on panels in L1, and its work."""
    tile = largest_tile(targets.current(), float32)
    depth, times = 256, 1000
    b = kernel_builder()
    a, y, out = (b.argument(i) for i in range(3))
    with b.loop(b.params[1], b.params[2]) as loop:
        left = strided(b, a, depth * 4 + 64, tile.rows, 4)
        sums = microkernel(b, tile, left, Right(y, tile.columns * 4), depth)
        own = b.offset(out, b.mul(b.params[3], tile.rows * tile.columns * 4))
        for i, register in enumerate(r for row in sums for r in row):
            b.store(register, b.offset(own, i * tile.lanes * 4), 4)
    del loop
    space = Scratch(64 * 1024), Scratch(64 * 1024), Scratch(64 * 1024)
    launch = Launch(Kernel("peak", b.module()), space, (2,), times)
    return prepared((launch,), threads), 2.0 * tile.rows * tile.columns * depth * times


def seconds(runs: dict[str, Run], best: Run, rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Times of each, in turns, and of the peak at the same moment: the clock is not steady."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for run in (best, *runs.values()):
        run()
    for _ in range(rounds):
        for name, run in runs.items():
            marks = [time.perf_counter()]
            for part in (best, run, best):
                part()
                marks.append(time.perf_counter())
            before, own, after = (b - a for a, b in itertools.pairwise(marks))
            times[name].append((own, (before + after) / 2))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.conv", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="layers whose name begins so")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    best, work = peak(given.threads)
    print(f"{'GFLOP/s (share of the peak)':32}" + "".join(f"{k:>18}" for k in KINDS))
    for name, layer in LAYERS.items():
        if given.names and not any(name.startswith(n) for n in given.names):
            continue
        target = targets.current()
        runs = {
            kind: prepared(getattr(family, kind)(group_of(layer, kind), target), given.threads)
            for kind in KINDS
        }
        times = seconds(runs, best, given.rounds)
        print(f"{name:32}" + "".join(cell(layer, times[kind], work) for kind in KINDS))


def cell(layer: Layer, times: list[tuple[float, float]], work: float) -> str:
    """GFLOP/s, and the share of the peak."""
    rate = layer.flops / statistics.median(own for own, _ in times)
    share = statistics.median(layer.flops / own * peak / work for own, peak in times)
    return f"{rate / 1e9:11.0f} ({share:4.0%})"


if __name__ == "__main__":
    main()

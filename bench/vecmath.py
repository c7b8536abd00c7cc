"""Vector maths alone, on numbers in the first-level cache: `python -m bench.vecmath [NAME ...]`.

Figures are elements per nanosecond of one thread, medians of interleaved runs, beside NumPy and
PyTorch where they have the function.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import time
from collections.abc import Callable

import numpy as np

from weft.codegen import llvm, target, vecmath
from weft.codegen.builder import kernel_builder, vector

NAMES = (
    "exp", "expm1", "log", "log1p", "tanh", "sigmoid", "erf", "sin", "cos", "tan", "asin", "acos",
    "atan", "sinh", "cosh", "rsqrt", "power", "atan2",
)  # fmt: skip
NUMPY = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2"}
TORCH = {"power": "pow"}
SIZE = 2048
TURNS = 9
REPEATS = 200
LIBRARY = llvm.Library()


def compiled(name: str, inputs: int) -> Callable[..., None]:
    """A function that applies `name` to its arrays, so often, into the last of them."""
    machine = target.current()
    lanes = machine.lanes(4)
    f = kernel_builder()
    pointers = [f.argument(i) for i in range(inputs + 1)]
    type_ = vector("float", lanes)
    with f.loop(f.params[1], f.params[2]), f.loop(0, SIZE, lanes) as loop:
        xs = [f.load(type_, f.offset(p, loop.index, "float")) for p in pointers[:-1]]
        y = getattr(vecmath, name)(f, *xs)
        f.store(y, f.offset(pointers[-1], loop.index, "float"))
    code = llvm.to_object(f.module(), machine.cpu, machine.features)
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[ctypes.c_int64] * 3)
    function = kind(LIBRARY.link({"weft_kernel": code})["weft_kernel"])

    def run(*arrays: np.ndarray) -> None:
        slots = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
        function(ctypes.addressof(slots), 0, REPEATS, 0)

    return run


def contestants(name: str) -> dict[str, Callable[[], None]]:
    """What to time; each does the function `REPEATS` times."""
    inputs = 2 if name in ("power", "atan2") else 1
    low = 0.01 if name in ("log", "log1p", "rsqrt", "power") else -5.0
    high = 1.0 if name in ("asin", "acos") else 5.0
    rng = np.random.default_rng(0)
    xs = [rng.uniform(max(low, -high), high, SIZE).astype(np.float32) for _ in range(inputs)]
    y = np.empty_like(xs[0])
    ours, theirs = compiled(name, inputs), getattr(np, NUMPY.get(name, name), None)
    found: dict[str, Callable[[], None]] = {"weft": lambda: ours(*xs, y)}
    if theirs is not None:
        found["numpy"] = lambda: [theirs(*xs, out=y) for _ in range(REPEATS)]
    try:
        import torch
    except ImportError:
        return found
    torch.set_num_threads(1)
    tensors, out = [torch.from_numpy(x) for x in xs], torch.from_numpy(y)
    function = getattr(torch, TORCH.get(name, name))
    found["torch"] = lambda: [function(*tensors, out=out) for _ in range(REPEATS)]
    return found


def main() -> None:
    """Print one line a function."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME")
    for name in parser.parse_args().names:
        runs = contestants(name)
        seconds: dict[str, list[float]] = {who: [] for who in runs}
        for _ in range(TURNS):
            for who, run in runs.items():
                start = time.perf_counter()
                run()
                seconds[who].append(time.perf_counter() - start)
        speeds = {w: SIZE * REPEATS / statistics.median(s) * 1e-9 for w, s in seconds.items()}
        print(f"{name:8}" + "  ".join(f"{who} {speed:5.2f}" for who, speed in speeds.items()))


if __name__ == "__main__":
    main()

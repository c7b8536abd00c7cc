"""What `bench/distributed.py` starts on several ranks: prints one line of JSON from rank 0."""

from __future__ import annotations

import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import weft as wf
import weft.distributed as dist
from weft.transport import collective, session

SIZES = (4, 1 << 10, 1 << 14, 1 << 17, 1 << 20, 1 << 24, 100_000_000)  # bytes
TURNS = 9


def reductions() -> dict[str, list[float]]:
    """Seconds of all-reduce by size: ours, and MPI's own on the same buffer, in turns."""
    mpi: Any = importlib.import_module("mpi4py.MPI")
    group, found = session.world(), {}
    for size in SIZES:
        x, out = np.ones(size // 4, np.float32), np.empty(size // 4, np.float32)
        ways: list[Callable[[], None]] = [
            lambda x=x, out=out: collective.all_reduce(group, x, out, "sum", "bench"),
            lambda x=x, out=out: mpi.COMM_WORLD.Allreduce(x, out),
        ]
        times: list[list[float]] = [[], []]
        for _ in range(TURNS):
            for way, taken in zip(ways, times, strict=True):
                mpi.COMM_WORLD.Barrier()
                begin = time.perf_counter()
                way()
                taken.append(time.perf_counter() - begin)
        found[str(size)] = [statistics.median(t) for t in times]
    return found


NETWORKS: dict[str, tuple[Callable[[], wf.nn.Module], tuple[int, ...], int]] = {
    "perceptron": (
        lambda: wf.nn.Sequential(
            wf.nn.Linear(784, 512), wf.nn.ReLU(), wf.nn.Linear(512, 512), wf.nn.ReLU(),
            wf.nn.Linear(512, 10),
        ), (784,), 256,
    ),
    "convolutions": (
        lambda: wf.nn.Sequential(
            wf.nn.Conv2d(3, 32, 3, padding=1), wf.nn.ReLU(), wf.nn.MaxPool2d(2),
            wf.nn.Conv2d(32, 64, 3, padding=1), wf.nn.ReLU(), wf.nn.MaxPool2d(2),
            wf.nn.Flatten(), wf.nn.Linear(64 * 64, 10),
        ), (3, 32, 32), 64,
    ),
}  # fmt: skip


def training(name: str, seconds: float, **options: Any) -> float:
    """Examples a second, over all ranks."""
    make, shape, batch = NETWORKS[name]
    wf.manual_seed(0)
    model: Any = make()
    ranks = dist.get_world_size()
    if ranks > 1 or options:
        model = wf.nn.parallel.DistributedDataParallel(model, **options)
    optimizer = wf.optim.SGD(model.parameters(), lr=0.01)
    x, y = wf.randn(batch // ranks, *shape), wf.randint(0, 10, (batch // ranks,))

    def step() -> None:
        loss = wf.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()

    for _ in range(5):
        step()
    count = 0
    more = np.ones(1, np.int64)
    begin = time.perf_counter()
    while more[0]:
        for _ in range(10):
            step()
        count += 10
        more[0] = time.perf_counter() - begin < seconds
        collective.broadcast(session.world(), more, 0, "bench: more")
    return count * batch / (time.perf_counter() - begin)


def main() -> None:
    what, seconds = sys.argv[1], float(sys.argv[2])
    dist.init_process_group()
    if what == "reductions":
        found: Any = reductions()
    elif what == "start":
        dist.all_reduce(wf.ones(1))
        found = True
    else:
        options = {"shards": int(sys.argv[3])} if len(sys.argv) > 3 else {}
        found = training(what, seconds, **options)
    if dist.get_rank() == 0:
        print(json.dumps(found))


main()

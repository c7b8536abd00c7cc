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
from bench.work.resident import resident
from bench.work.sharded import BATCH, sharded
from bench.work.sizes import SIZES, turns_of
from weft.cli.workload import training_step, workload
from weft.transport import collective, session

BUCKET = 8 << 20  # bytes; what DistributedDataParallel reduces at a time


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
        for _ in range(turns_of(size)):
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


def training(name: str, seconds: float, grow: bool = False, **options: Any) -> float:
    """Examples a second, over all ranks; the batch is of all, or of each where it is to `grow`."""
    make, shape, batch = NETWORKS[name]
    wf.manual_seed(0)
    model: Any = make()
    ranks = dist.get_world_size()
    batch *= ranks if grow else 1
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


def bert() -> wf.nn.Module:
    """As many parameters as BERT's base model without its embeddings, 85 M, in plain layers."""
    pairs = [(wf.nn.Linear(768, 4608), wf.nn.ReLU(), wf.nn.Linear(4608, 768)) for _ in range(12)]
    return wf.nn.Sequential(*[layer for pair in pairs for layer in pair])


def bert_step(model: wf.nn.Module, batch: int) -> Callable[[], float]:
    """A training step of it on so many rows."""
    optimizer, x = wf.optim.SGD(model.parameters(), lr=1e-3), wf.randn(batch, 768)

    def step() -> float:
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return float(loss.detach())

    return step


def overlap(name: str, batch: int, steps: int) -> dict[str, float]:
    """Seconds of a step alone, of its gradients' reduction alone, and of both together."""
    work = None if name == "bert" else workload(name)
    make = bert if work is None else work.make

    def step_of(model: wf.nn.Module) -> Callable[[], float]:
        return bert_step(model, batch) if work is None else training_step(work, model, batch)

    wf.manual_seed(0)
    alone = make()
    size = sum(p.numel() * 4 for p in alone.parameters())
    compute = step_of(alone)
    together = step_of(wf.nn.parallel.DistributedDataParallel(make()))
    group = session.world()
    parts = [np.ones(min(BUCKET, size - at) // 4, np.float32) for at in range(0, size, BUCKET)]

    def communicate() -> None:
        for part in parts:
            collective.all_reduce(group, part, part, "max", "bench")

    found: dict[str, list[float]] = {"compute": [], "communication": [], "step": []}
    for turn in range(steps + 3):  # the first ones compile
        for name, way in (
            ("compute", compute), ("communication", communicate), ("step", together)
        ):  # fmt: skip
            collective.barrier(group)
            begin = time.perf_counter()
            way()
            wf.synchronize()
            if turn >= 3:
                found[name].append(time.perf_counter() - begin)
    return {"bytes": size, **{name: statistics.median(times) for name, times in found.items()}}


def memory(width: int) -> dict[str, float]:
    """Bytes that a rank has with ZeRO 1 above what a small network leaves, and parameters'."""
    _zero_steps(64)
    before = resident()
    held = _zero_steps(width)
    after = resident()
    del held
    return {"resident": after - before, "parameters": 12 * width * width * 4}


def _zero_steps(width: int) -> Any:
    """Some steps of ZeRO 1 with Adam, gradients kept; what has to stay."""
    wf.manual_seed(0)  # ranks have to begin with the same parameters
    model = wf.nn.Sequential(*[wf.nn.Linear(width, width, bias=False) for _ in range(12)])
    optimizer = wf.optim.ZeroRedundancyOptimizer(model.parameters(), wf.optim.Adam, lr=1e-3)
    x = wf.randn(1, width)
    for _ in range(5):
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        wf.synchronize()
    return model, optimizer


def main() -> None:
    what, seconds = sys.argv[1], float(sys.argv[2])
    dist.init_process_group(timeout=120)
    if what == "reductions":
        found: Any = reductions()
    elif what == "start":
        dist.all_reduce(wf.ones(1))
        found = True
    elif what == "overlap":
        found = overlap(sys.argv[3], int(sys.argv[4]), int(seconds))
    elif what == "grow":
        name = sys.argv[3]
        rate = training(name, seconds, grow=True)
        size = sum(p.numel() * 4 for p in NETWORKS[name][0]().parameters())
        batch = NETWORKS[name][2] * dist.get_world_size()
        found = {"step": batch / rate, "bytes": size}
    elif what == "memory":
        found = memory(int(seconds))
    elif what == "sharded":
        batch = int(sys.argv[4]) if len(sys.argv) > 4 else BATCH
        found = sharded(int(seconds), sys.argv[3], batch)
    else:
        options: dict[str, Any] = {"shards": int(sys.argv[3])} if len(sys.argv) > 3 else {}
        found = training(what, seconds, **options)
    if dist.get_rank() == 0:
        print(json.dumps(found))


main()

"""Memory and time of twelve layers whose parameters ranks divide, or have all of."""

from __future__ import annotations

import statistics
import time

import weft as wf
import weft.distributed as dist
from bench.work.resident import resident
from weft.distributed.fsdp import fully_shard

BATCH = 128  # of all ranks, unless another number is given
STEPS, WARM = 12, 4


def layers(width: int, way: str) -> wf.nn.Module:
    """The network: `whole`, `ddp`, or with parameters gathered once (`kept`) or twice (`again`)."""
    parts = [wf.nn.Linear(width, width, bias=False) for _ in range(12)]
    model: wf.nn.Module = wf.nn.Sequential(*parts)
    if way == "ddp":
        return wf.nn.parallel.DistributedDataParallel(model)
    if way != "whole":
        for unit in (*parts, model):
            fully_shard(unit, reshard_after_forward=way == "again")
    return model


def sharded(width: int, way: str, batch: int = BATCH) -> dict[str, float]:
    """Seconds of a step, bytes above what a small network leaves, and parameters' bytes."""
    wf.config.change("compile", True)  # the interpreter keeps all values of a step
    _steps(16, way, batch)
    before = resident()
    held, seconds = _steps(width, way, batch)
    found = {"resident": resident() - before, "parameters": 12 * width * width * 4}
    del held
    return {**found, "seconds": seconds}


def _steps(width: int, way: str, batch: int) -> tuple[object, float]:
    """Some steps with Adam; what has to stay, and the time of a step."""
    model = layers(width, way)
    optimizer = wf.optim.Adam(model.parameters(), lr=1e-3)
    x = wf.randn(batch // dist.get_world_size(), width)
    times: list[float] = []
    for _ in range(STEPS):
        begin = time.perf_counter()
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        wf.synchronize()
        times.append(time.perf_counter() - begin)
    return (model, optimizer), statistics.median(times[WARM:])

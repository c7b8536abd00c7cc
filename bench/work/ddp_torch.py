"""A network under PyTorch's DistributedDataParallel on gloo, or gloo's all-reduce: one process.

`python -m bench.work.ddp_torch NETWORK BATCH SECONDS`, with RANK, WORLD_SIZE, MASTER_ADDR and
MASTER_PORT set; rank 0 prints one line of JSON.
"""

from __future__ import annotations

import json
import statistics
import sys
import time

import torch
import torch.distributed as dist

from bench.work.batches import batch_of
from bench.work.networks import NETWORKS
from bench.work.sizes import SIZES, turns_of


def reductions() -> dict[str, float]:
    """Seconds of gloo's all-reduce by size."""
    found = {}
    for size in SIZES:
        x, times = torch.ones(size // 4), []
        for _ in range(turns_of(size)):
            dist.barrier()
            begin = time.perf_counter()
            dist.all_reduce(x)
            times.append(time.perf_counter() - begin)
            x.fill_(1.0)
        found[str(size)] = statistics.median(times)
    return found


def training(name: str, batch: int, seconds: float) -> float:
    """Examples a second, over all ranks."""
    torch.manual_seed(0)
    network = NETWORKS[name]
    inputs, labels = batch_of(name, batch // dist.get_world_size())
    inputs, labels = [torch.from_numpy(x) for x in inputs], torch.from_numpy(labels)
    model = torch.nn.parallel.DistributedDataParallel(network.make())
    optimizer = network.optimize(model)

    def step() -> None:
        loss = network.loss(model(*inputs), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss.item()

    step()
    times: list[float] = []
    more = torch.ones(1)
    begin = time.perf_counter()
    while more.item():
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
        more.fill_(float(time.perf_counter() - begin < seconds or len(times) < 3))
        dist.broadcast(more, 0)
    return batch / statistics.median(times)


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    name = sys.argv[1]
    found = reductions() if name == "reductions" else training(
        name, int(sys.argv[2]), float(sys.argv[3])
    )  # fmt: skip
    if dist.get_rank() == 0:
        print(json.dumps(found), flush=True)
    dist.destroy_process_group()


main()

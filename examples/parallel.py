"""Digits on several processes: `weft launch -n 2 examples/parallel.py`; also as one process.

The numbered lines are those that several processes need. With `--shards 4`, parameters are bitwise
equal on 1, 2 and 4 ranks, as the printed digest shows.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence

from common import load_digits, options

import weft as wf
import weft.distributed as dist

BATCH = 64


def main(arguments: Sequence[str] | None = None) -> tuple[float, str]:
    """Train; returns the test accuracy and the parameters' digest."""
    parser = options(__doc__, 60)
    parser.add_argument("--shards", type=int, help="parts of the batch, added in a fixed tree")
    given = parser.parse_args(arguments)
    dist.init_process_group()  # 1
    rank, ranks = dist.get_rank(), dist.get_world_size()
    data = load_digits()
    wf.manual_seed(0)
    net = wf.nn.Sequential(
        wf.nn.Flatten(), wf.nn.Linear(784, 64), wf.nn.ReLU(), wf.nn.Linear(64, 10)
    )
    model = wf.nn.parallel.DistributedDataParallel(net, shards=given.shards)  # 2
    optimizer = wf.optim.Adam(model.parameters(), lr=0.003)
    for step in range(given.steps):
        begin = step * BATCH % (len(data.labels) - BATCH)
        own = slice(begin + rank * BATCH // ranks, begin + (rank + 1) * BATCH // ranks)  # 3
        loss = wf.nn.functional.cross_entropy(model(data.images[own]), data.labels[own])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with wf.no_grad():
        guesses = net(data.test_images).argmax(1)
    accuracy = float((guesses == data.test_labels).float().mean())
    memory = b"".join(p.detach().numpy().tobytes() for p in net.parameters())
    digest = hashlib.sha256(memory).hexdigest()[:12]
    if rank == 0:  # 4
        print(f"test accuracy {accuracy:.3f} on {ranks} ranks, parameters {digest}")
    dist.destroy_process_group()
    return accuracy, digest


if __name__ == "__main__":
    main(sys.argv[1:])

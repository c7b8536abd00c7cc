"""Pipeline parallelism on digits: `weft launch -n 2 examples/stages.py`; also as one process.

The network is split into one stage per rank. A batch passes through in micro-batches: while a stage
works on one, the stages before it work on the next ones.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from common import load_digits, options

import weft as wf
import weft.distributed as dist
from weft.distributed.pipelining import Schedule1F1B, SplitPoint, pipeline

BATCH, MICRO_BATCHES = 64, 4


def network() -> wf.nn.Module:
    """The network, with the same weights on all ranks."""
    wf.manual_seed(0)
    layers: list[wf.nn.Module] = [wf.nn.Flatten(), wf.nn.Linear(784, 64)]
    for _ in range(3):
        layers += [wf.nn.ReLU(), wf.nn.Linear(64, 64)]
    return wf.nn.Sequential(*layers, wf.nn.ReLU(), wf.nn.Linear(64, 10))


def main(arguments: Sequence[str] | None = None) -> float:
    """Train; returns the test accuracy, on the last rank."""
    given = options(__doc__, 60).parse_args(arguments)
    dist.init_process_group()
    rank, ranks = dist.get_rank(), dist.get_world_size()
    data = load_digits()
    cuts = {str(10 * i // ranks): SplitPoint.BEGINNING for i in range(1, ranks)}
    pipe = pipeline(network(), (data.images[:1],), split_spec=cuts)
    stage = pipe.build_stage(rank)
    schedule = Schedule1F1B(stage, MICRO_BATCHES, wf.nn.CrossEntropyLoss())
    optimizer = wf.optim.Adam(stage.submod.parameters(), lr=0.003)
    for step in range(given.steps):
        begin = step * BATCH % (len(data.labels) - BATCH)
        rows = slice(begin, begin + BATCH)
        optimizer.zero_grad()
        schedule.step(data.images[rows], target=data.labels[rows])
        optimizer.step()
    count = len(data.test_labels) // MICRO_BATCHES * MICRO_BATCHES
    guesses = schedule.eval(data.test_images[:count])
    accuracy = 0.0
    if guesses is not None:
        accuracy = float((guesses.argmax(1) == data.test_labels[:count]).float().mean())
        print(f"test accuracy {accuracy:.3f} on {ranks} stages")
    dist.destroy_process_group()
    return accuracy


if __name__ == "__main__":
    main(sys.argv[1:])

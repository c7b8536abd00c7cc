"""Digits with Horovod's names: `weft launch -n 2 --max-restarts 3 examples/elastic.py`.

Kill a rank while it trains: all ranks restart from the last commit. It also runs as one process.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from common import load_digits, options

import weft as wf
import weft.horovod.torch as hvd

BATCH = 64


@hvd.elastic.run
def train(state: Any, images: wf.Tensor, labels: wf.Tensor, steps: int) -> None:
    """Train up to `steps` steps; commit every tenth."""
    while state.step < steps:
        begin = state.step * BATCH % (len(labels) - BATCH) + hvd.rank()
        own = slice(begin, begin + BATCH - hvd.rank(), hvd.size())
        state.optimizer.zero_grad()
        loss = wf.nn.functional.cross_entropy(state.model(images[own]), labels[own])
        loss.backward()
        state.optimizer.step()
        state.step += 1
        if state.step % 10 == 0:
            state.commit()


def main(arguments: Sequence[str] | None = None) -> float:
    """Train; returns the test accuracy."""
    given = options(__doc__, 60).parse_args(arguments)
    hvd.init()
    data = load_digits()
    wf.manual_seed(0)
    model = wf.nn.Sequential(
        wf.nn.Flatten(), wf.nn.Linear(784, 64), wf.nn.ReLU(), wf.nn.Linear(64, 10)
    )
    adam = wf.optim.Adam(model.parameters(), lr=0.003)
    optimizer = hvd.DistributedOptimizer(adam, named_parameters=model.named_parameters())
    state: Any = hvd.elastic.TorchState(model, optimizer, step=0)
    train(state, data.images, data.labels, given.steps)
    with wf.no_grad():
        guesses = model(data.test_images).argmax(1)
    accuracy = float((guesses == data.test_labels).float().mean())
    if hvd.rank() == 0:
        print(f"test accuracy {accuracy:.3f} on {hvd.size()} ranks after {state.step} steps")
    hvd.shutdown()
    return accuracy


if __name__ == "__main__":
    main(sys.argv[1:])

"""Input pipelines beside PyTorch's DataLoader and tf.data, in turns in one process."""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

ROWS, WIDTH, BATCH = 60_000, 784, 128
TURNS = 7
Epoch = Callable[[], Iterable[Any]]


def arrays() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """As large as MNIST."""
    random = np.random.default_rng(0)
    return random.random((ROWS, WIDTH), np.float32), random.integers(0, 10, ROWS)


def contestants() -> dict[str, Epoch]:
    """Shuffled batches of the same arrays."""
    from weft.data import Dataset
    from weft.utils.data import DataLoader, TensorDataset

    x, y = arrays()
    dataset = Dataset.from_tensor_slices((x, y)).shuffle(ROWS).batch(BATCH)
    loader = DataLoader(TensorDataset(x, y), BATCH, shuffle=True)
    found: dict[str, Epoch] = {"weft.data": lambda: dataset, "weft DataLoader": lambda: loader}
    if importlib.util.find_spec("torch"):
        import torch
        from torch.utils import data

        tensors = data.TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
        theirs = data.DataLoader(tensors, BATCH, shuffle=True)
        found["torch DataLoader"] = lambda: theirs
    if importlib.util.find_spec("tensorflow"):
        import tensorflow as tf

        slices = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(ROWS).batch(BATCH)
        found["tf.data"] = lambda: slices
    return found


def step() -> Callable[[Any, Any], None]:
    """A compiled training step of softmax regression."""
    import weft as wf

    model = wf.nn.Linear(WIDTH, 10)
    optimizer = wf.optim.SGD(model.parameters(), lr=0.1)
    loss_of = wf.nn.CrossEntropyLoss()

    def train(x: Any, y: Any) -> None:
        optimizer.zero_grad()
        loss_of(model(x), y).backward()
        optimizer.step()

    return train


def seconds(epoch: Epoch) -> float:
    """Of a batch, the median over an epoch's parts of 50."""
    times: list[float] = []
    start = time.perf_counter()
    for count, _ in enumerate(epoch(), 1):
        if count % 50 == 0:
            now = time.perf_counter()
            times.append((now - start) / 50)
            start = now
    return statistics.median(times)


def measure() -> dict[str, float]:
    """Seconds of a batch, the median over turns."""
    turns: dict[str, list[float]] = {}
    epochs = contestants()
    for _ in range(TURNS):
        for name, epoch in epochs.items():
            turns.setdefault(name, []).append(seconds(epoch))
    return {name: statistics.median(times) for name, times in turns.items()}


def fed_step() -> tuple[float, float]:
    """Seconds of a training step on one batch again and again, and fed by a pipeline."""
    train, x_y = step(), arrays()
    from weft.data import Dataset

    dataset = Dataset.from_tensor_slices(x_y).shuffle(ROWS).batch(BATCH, drop_remainder=True)
    same = next(iter(dataset))

    def epoch(batches: Iterable[Any]) -> float:
        start, count = time.perf_counter(), 0
        for x, y in batches:
            train(x, y)
            count += 1
        return (time.perf_counter() - start) / count

    times = [(epoch([same] * 400), epoch(dataset)) for _ in range(TURNS)]
    constant, fed = (statistics.median(column) for column in zip(*times, strict=True))
    return constant, fed


def report() -> None:
    """Print both tables."""
    title = f"Shuffled batches of {BATCH} from {ROWS:,} rows of {WIDTH} float32 in memory"
    print(f"\n{title} (bar: 5x PyTorch's loader, 2x tf.data)")
    found = measure()
    for name, each in found.items():
        print(f"  {name:18} {each * 1e6:8.1f} us a batch  {each / found['weft.data']:6.2f}x")
    constant, fed = fed_step()
    print("Softmax regression trained on them, eager, batches of 128")
    print(f"  the same batch {constant * 1e6:8.1f} us a step, the pipeline's {fed * 1e6:8.1f} us")

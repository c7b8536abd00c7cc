"""Checkpoints of 100 MB beside `torch.save` and `torch.load`, in turns in one process."""

from __future__ import annotations

import importlib.util
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

COUNT, SHAPE = 20, (1000, 1250)  # float32: 100 MB
TURNS = 7
WIDTH, BATCH, STEPS = 1024, 256, 60
Deed = Callable[[], object]


def arrays() -> dict[str, np.ndarray[Any, Any]]:
    """The parameters of a model."""
    random = np.random.default_rng(0)
    return {f"layer{i}.weight": random.random(SHAPE, np.float32) for i in range(COUNT)}


def deeds(folder: Path) -> dict[str, Deed]:
    """What is measured, in this order: each loads what one before it has saved."""
    import weft as wf
    from weft.checkpoint import Checkpointer

    own = {name: wf.from_numpy(array) for name, array in arrays().items()}
    checkpoints = Checkpointer(folder / "run", keep=1)
    path = folder / "weft.safetensors"
    found: dict[str, Deed] = {
        "Checkpointer.save returns": lambda: checkpoints.save(1, own),
        "... and is on the disk": checkpoints.wait,
        "Checkpointer.restore": checkpoints.restore,
        "weft.save (synced)": lambda: wf.save(own, path),
        "weft.load": lambda: wf.load(path),
        "weft.load(mmap=True)": lambda: wf.load(path, mmap=True),
    }
    if importlib.util.find_spec("torch"):
        import torch

        theirs = {name: torch.from_numpy(array) for name, array in arrays().items()}
        other = folder / "torch.pt"
        found["torch.save (not synced)"] = lambda: torch.save(theirs, other)
        found["torch.save, then fsync"] = lambda: synced(lambda: torch.save(theirs, other), other)
        found["torch.load"] = lambda: torch.load(other)
        found["torch.load(mmap=True), unverified"] = lambda: torch.load(other, mmap=True)
    return found


def synced(deed: Deed, path: Path) -> None:
    """Write a file and make it last."""
    deed()
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def measure() -> dict[str, float]:
    """Seconds, the median over turns; the first turn, with new memory, is left out."""
    turns: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        chosen = deeds(Path(folder))
        for _ in range(TURNS + 1):
            for name, deed in chosen.items():
                start = time.perf_counter()
                deed()
                turns.setdefault(name, []).append(time.perf_counter() - start)
    return {name: statistics.median(times[1:]) for name, times in turns.items()}


def step() -> Deed:
    """A compiled training step on two threads."""
    import weft as wf

    layers = [wf.nn.Linear(WIDTH, WIDTH), wf.nn.ReLU(), wf.nn.Linear(WIDTH, WIDTH)]
    model = wf.nn.Sequential(*layers)
    optimizer = wf.optim.SGD(model.parameters(), lr=0.01)
    x = wf.randn(BATCH, WIDTH)

    def train() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    return train


def steps_meanwhile() -> tuple[float, float]:
    """Seconds of some steps alone, and of the same with a checkpoint begun before them.

    The copy that `save` makes is in the second; each is the median over turns.
    """
    import weft as wf
    from weft.checkpoint import Checkpointer

    train = step()
    own = {name: wf.from_numpy(array) for name, array in arrays().items()}

    def turn() -> float:
        start = time.perf_counter()
        for _ in range(STEPS):
            train()
        wf.synchronize()
        return time.perf_counter() - start

    times: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder, Checkpointer(folder, keep=1) as checkpoints:
        for _ in range(TURNS + 1):
            alone = turn()
            start = time.perf_counter()
            checkpoints.save(1, own)
            times.append((alone, time.perf_counter() - start + turn()))
            checkpoints.wait()
    without, beside = (statistics.median(column) for column in zip(*times[1:], strict=True))
    return without, beside


def report() -> None:
    """Print both tables."""
    print("\nA checkpoint of 100 MB (bar: save 1.5x torch.save, load 2x torch.load)")
    for name, seconds in measure().items():
        print(f"  {name:34} {seconds * 1e3:7.0f} ms")
    without, beside = steps_meanwhile()
    more = 100 * (beside / without - 1)
    times = f"alone {without * 1e3:.0f} ms, with a checkpoint {beside * 1e3:.0f} ms"
    print(f"{STEPS} training steps {times}: {more:.1f}% more (bar: 10%)")

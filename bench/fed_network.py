"""ResNet-50 trained on JPEG files that are decoded meanwhile, beside the same batch each time."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.pictures import MEAN, STD, write_pictures

BATCH, STEPS, TURNS = 16, 6, 5
PICTURES = 256


def batches(folder: Path) -> Iterator[Any]:
    """Decoded, cropped, flipped, normalized, one epoch after the other, by a thread."""
    from weft.data import transforms
    from weft.datasets import ImageFolder
    from weft.utils.data import DataLoader

    augment = transforms.Compose([
        transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(),
        transforms.ToTensor(), transforms.Normalize(MEAN, STD),
    ])  # fmt: skip
    images = ImageFolder(folder, augment)
    loader = DataLoader(
        images, BATCH, True, num_workers=1, drop_last=True, multiprocessing_context="thread"
    )
    while True:
        yield from loader


def step() -> Callable[[Any, Any], None]:
    """A training step of ResNet-50."""
    import weft as wf
    from weft.models import resnet50

    model = resnet50().train()
    optimizer = wf.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def train(x: Any, y: Any) -> None:
        optimizer.zero_grad()
        wf.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        wf.synchronize()

    return train


def measure() -> tuple[float, float, float]:
    """Seconds of a step on one batch, of one that is fed, and of making a batch alone."""
    with tempfile.TemporaryDirectory() as folder:
        write_pictures(Path(folder), PICTURES)
        feed, train = batches(Path(folder)), step()
        same = next(feed)
        for _ in range(3):
            train(*same)
        times: list[tuple[float, float]] = []
        for _ in range(TURNS):
            constant = _seconds(lambda: train(*same))
            train(
                *next(feed)
            )  # what was decoded meanwhile is used up, but for what is always ahead
            times.append((constant, _seconds(lambda: train(*next(feed)))))
        for _ in range(STEPS):  # what is ahead is used up
            next(feed)
        alone = statistics.median([_seconds(lambda: next(feed)) for _ in range(3)])
    constant, fed = (statistics.median(column) for column in zip(*times, strict=True))
    return constant, fed, alone


def _seconds(deed: Callable[[], object]) -> float:
    """Of one, the mean over some."""
    start = time.perf_counter()
    for _ in range(STEPS):
        deed()
    return (time.perf_counter() - start) / STEPS


def report() -> None:
    """Print what feeding costs, and what two cores allow."""
    constant, fed, alone = measure()
    print(f"\nResNet-50, batch {BATCH}, fed from JPEG files of 300 x 300 (bar: 3%)")
    print(f"  the same batch {constant * 1e3:8.0f} ms a step, fed {fed * 1e3:8.0f} ms", end="")
    print(f" ({100 * (fed / constant - 1):+.1f}%)")
    print(
        f"  making a batch {alone * 1e3:8.0f} ms on one core: {_share(alone, constant):.1f}% of two"
    )


def _share(alone: float, constant: float) -> float:
    return 100 * alone / (2 * constant)

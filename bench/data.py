"""Input pipelines beside PyTorch's DataLoader and tf.data, in turns in one process."""

from __future__ import annotations

import importlib.util
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from bench import fed_network
from bench.pictures import MEAN, STD, write_pictures

ROWS, WIDTH, BATCH = 60_000, 784, 128
RECORDS = 20_000
PICTURES = 512
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


def records(folder: Path) -> dict[str, Epoch]:
    """Examples of 1 KB in a TFRecord file, parsed in batches."""
    from weft.data import FixedLenFeature, ParseExample, TFRecordDataset
    from weft.formats.example import encode
    from weft.formats.tfrecord import RecordWriter

    path = str(folder / "examples.tfrecord")
    random = np.random.default_rng(0)
    with RecordWriter(path) as writer:
        for label in range(RECORDS):
            writer.write(encode({"x": random.random(240, np.float32), "y": [label]}))
    features = {"x": FixedLenFeature([240], "float32"), "y": FixedLenFeature([], "int64")}
    ours = TFRecordDataset(path).batch(BATCH).map(ParseExample(features)).prefetch(2)
    found: dict[str, Epoch] = {"weft.data": lambda: ours}
    if importlib.util.find_spec("tensorflow"):
        import tensorflow as tf

        spec = {
            "x": tf.io.FixedLenFeature([240], tf.float32),
            "y": tf.io.FixedLenFeature([], tf.int64),
        }
        theirs = tf.data.TFRecordDataset(path).batch(BATCH)
        theirs = theirs.map(lambda r: tf.io.parse_example(r, spec)).prefetch(2)
        found["tf.data"] = lambda: theirs
    return found


def pictures(folder: Path) -> dict[str, Epoch]:
    """JPEG files of 300 x 300: decoded, cropped to 224, flipped, normalized, by two workers."""
    from weft.data import transforms
    from weft.datasets import ImageFolder
    from weft.utils.data import DataLoader

    write_pictures(folder, PICTURES)
    names = ("RandomResizedCrop", "RandomHorizontalFlip", "ToTensor", "Normalize")
    arguments = ((224,), (), (), (MEAN, STD))

    def augment(module: Any) -> Any:
        return module.Compose(
            [getattr(module, n)(*a) for n, a in zip(names, arguments, strict=True)]
        )

    ours = ImageFolder(folder, augment(transforms))
    threads = DataLoader(ours, 32, True, num_workers=2, multiprocessing_context="thread")
    processes = DataLoader(ours, 32, True, num_workers=2, persistent_workers=True)
    found: dict[str, Epoch] = {
        "weft, threads": lambda: threads,
        "weft, processes": lambda: processes,
    }
    if importlib.util.find_spec("torchvision"):
        import torchvision
        from torch.utils import data

        images = torchvision.datasets.ImageFolder(str(folder), augment(torchvision.transforms))
        theirs = data.DataLoader(images, 32, True, num_workers=2, persistent_workers=True)
        found["torchvision"] = lambda: theirs
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
    """Of a batch, over an epoch."""
    start, count = time.perf_counter(), 0
    for count, _ in enumerate(epoch(), 1):  # noqa: B007
        pass
    return (time.perf_counter() - start) / count


def measure(epochs: dict[str, Epoch]) -> dict[str, float]:
    """Seconds of a batch, the median over turns; a first turn starts workers and caches."""
    turns: dict[str, list[float]] = {}
    for epoch in epochs.values():
        seconds(epoch)
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


def table(title: str, epochs: dict[str, Epoch]) -> None:
    """Print a comparison."""
    print(f"\n{title}")
    found = measure(epochs)
    first = next(iter(found.values()))
    for name, each in found.items():
        print(f"  {name:18} {each * 1e6:10.1f} us a batch  {each / first:6.2f}x")


def report() -> None:
    """Print all tables."""
    title = f"Shuffled batches of {BATCH} from {ROWS:,} rows of {WIDTH} float32 in memory"
    table(f"{title} (bar: 5x PyTorch's loader, 2x tf.data)", contestants())
    constant, fed = fed_step()
    print("Softmax regression trained on them, eager, batches of 128")
    print(f"  the same batch {constant * 1e6:8.1f} us a step, the pipeline's {fed * 1e6:8.1f} us")
    with tempfile.TemporaryDirectory() as folder:
        table("TFRecords of 1 KB parsed, batches of 128 (bar: 1.5x)", records(Path(folder)))
    with tempfile.TemporaryDirectory() as folder:
        title = "JPEG 300 x 300: crop, flip, normalize, 2 workers, batches of 32 (bar: 1.2x)"
        table(title, pictures(Path(folder)))
    fed_network.report()

"""MNIST as TF1 tutorials use it: `mnist.train.next_batch(100)`, `mnist.test.images`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from weft import config
from weft.datasets.digits import load_digits
from weft.errors import DataError
from weft.formats.idx import read_idx

__all__ = ["Dataset", "Datasets", "get_mnist"]

Array = np.ndarray[Any, Any]
SIDE: Final = 28
CLASSES: Final = 10
# If only the 10,000 test images exist, this many of them are used for training.
TRAIN_OF_TEST: Final = 8_000
TRAIN_OF_DIGITS: Final = 1_437  # 80%


class Dataset:
    """Images with labels, in shuffled batches, epoch after epoch.

    Args:
        images: (count, features) or images of any shape.
        labels: one for each image.
        seed: of the orders.
    """

    def __init__(self, images: Array, labels: Array, seed: int = 0) -> None:
        if len(images) != len(labels):
            raise DataError(f"expected a label per image, got {len(images)} and {len(labels)}")
        self.images = images
        self.labels = labels
        self.epochs_completed = 0
        self._random = np.random.default_rng(seed)
        self._order = self._random.permutation(len(images))
        self._next = 0

    @property
    def num_examples(self) -> int:
        """The number of images."""
        return len(self.images)

    def next_batch(self, batch_size: int, shuffle: bool = True) -> tuple[Array, Array]:
        """The next `batch_size` images and labels; every epoch yields each image once.

        Raises:
            DataError: the batch is empty or larger than the data.
        """
        if not 1 <= batch_size <= self.num_examples:
            raise DataError(
                f"next_batch: expected 1 <= batch_size <= {self.num_examples}, got {batch_size}"
            )
        picked = self._order[self._next : self._next + batch_size]
        self._next += batch_size
        missing = batch_size - len(picked)
        if missing:
            self.epochs_completed += 1
            if shuffle:
                self._order = self._random.permutation(self.num_examples)
            picked = np.concatenate([picked, self._order[:missing]])
            self._next = missing
        return self.images[picked], self.labels[picked]


@dataclass(frozen=True)
class Datasets:
    """Training and test images.

    Attributes:
        train: for training.
        test: for the accuracy in the end.
    """

    train: Dataset
    test: Dataset


def get_mnist(
    flatten: bool = True,
    onehot: bool = True,
    directory: str | Path | None = None,
    seed: int = 0,
) -> Datasets:
    """Handwritten digits as float32 in [0, 1].

    Args:
        flatten: images of shape (n, 784) instead of (n, 28, 28).
        onehot: labels of shape (n, 10), float32, instead of (n,), uint8.
        directory: where the IDX files are, plain or gzip; by default `WEFT_DATA`. Without the
            training files, 8,000 of the test images are used for training. Without any file, the
            digits bundled with Weft (8x8, interpolated) are used, and a line says so.
        seed: of the batch order, and of the split of the bundled digits.

    Raises:
        DataError: `directory` is given and lacks the files, or a file is damaged.

    >>> mnist = get_mnist()
    >>> mnist.train.next_batch(5)[0].shape
    (5, 784)
    """
    folder = directory if directory is not None else str(config.get("data"))
    train, test = _from_files(Path(folder)) if folder else _bundled(seed)

    def prepared(pair: tuple[Array, Array]) -> Dataset:
        images, labels = pair
        if flatten:
            images = images.reshape(len(images), -1)
        return Dataset(images, one_hot(labels) if onehot else labels, seed)

    return Datasets(prepared(train), prepared(test))


def one_hot(labels: Array) -> Array:
    """Labels as one-hot rows, float32."""
    return np.eye(CLASSES, dtype=np.float32)[labels]


Pair = tuple[Array, Array]


def _from_files(folder: Path) -> tuple[Pair, Pair]:
    test = _pair(folder, "t10k")
    if test is None:
        raise DataError(
            f"{folder}: expected t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, plain or .gz"
        )
    train = _pair(folder, "train")
    if train is not None:
        return train, test
    images, labels = test
    cut = TRAIN_OF_TEST
    return (images[:cut], labels[:cut]), (images[cut:], labels[cut:])


def _pair(folder: Path, name: str) -> Pair | None:
    images = _file(folder, f"{name}-images-idx3-ubyte")
    labels = _file(folder, f"{name}-labels-idx1-ubyte")
    if images is None or labels is None:
        return None
    return read_idx(images).astype(np.float32) / 255, read_idx(labels)


def _file(folder: Path, name: str) -> Path | None:
    return next((p for p in (folder / name, folder / f"{name}.gz") if p.exists()), None)


def _bundled(seed: int) -> tuple[Pair, Pair]:
    print(
        "datasets: no MNIST files (set WEFT_DATA to their folder); "
        f"using the 1,797 bundled UCI digits, 8x8 interpolated to {SIDE}x{SIDE}",
        file=sys.stderr,
    )
    images, labels = load_digits(SIDE)
    order = np.random.default_rng(seed).permutation(len(images))
    images, labels, cut = images[order], labels[order], TRAIN_OF_DIGITS
    return (images[:cut], labels[:cut]), (images[cut:], labels[cut:])

"""`input_data.read_data_sets`: MNIST as TensorFlow's tutorials read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from weft.datasets import mnist
from weft.errors import DataError
from weft.tf1.framework.dtypes import as_dtype, uint8

__all__ = ["DataSet", "Datasets", "load_mnist", "read_data_sets"]

Array = np.ndarray[Any, Any]


class DataSet(mnist.Dataset):
    """Images with labels, in shuffled batches, epoch after epoch."""

    def next_batch(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, batch_size: int, fake_data: bool = False, shuffle: bool = True
    ) -> tuple[Array, Array]:
        """The next images and labels; every epoch yields each image once.

        Raises:
            DataError: the batch is empty or larger than the data, or `fake_data` is asked for.
        """
        if fake_data:
            raise DataError("next_batch: expected fake_data=False, got True")
        return super().next_batch(batch_size, shuffle)


class Datasets(NamedTuple):
    """Training, validation and test images."""

    train: DataSet
    validation: DataSet
    test: DataSet


def read_data_sets(
    train_dir: str, fake_data: bool = False, one_hot: bool = False, dtype: Any = "float32",
    reshape: bool = True, validation_size: int = 5000, seed: int | None = None,
    source_url: str = "",
) -> Datasets:  # fmt: skip
    """Handwritten digits; nothing is downloaded.

    Args:
        train_dir: the folder with MNIST's files, plain or gzip; without them, that in `WEFT_DATA`;
            without that, the digits bundled with Weft, and a line says so.
        one_hot: labels of shape (n, 10), instead of (n,) of uint8.
        dtype: float32 in [0, 1], or uint8.
        reshape: images of shape (n, 784) instead of (n, 28, 28, 1).
        validation_size: the number of training images for validation; of fewer than 20,000
            images, a tenth.
        seed: of the batches' order.
        fake_data, source_url: refused and unused.

    Raises:
        DataError: `fake_data` is asked for.

    >>> digits = read_data_sets("MNIST_data", one_hot=True)
    >>> digits.train.next_batch(5)[0].shape
    (5, 784)
    """
    del source_url
    if fake_data:
        raise DataError("read_data_sets: expected fake_data=False, got True")
    own = (Path(train_dir) / f"t10k-images-idx3-ubyte{end}" for end in ("", ".gz"))
    folder = train_dir if any(path.exists() for path in own) else None
    found = mnist.get_mnist(flatten=reshape, onehot=one_hot, directory=folder, seed=seed or 0)
    bytes_wanted = as_dtype(dtype) is uint8

    def part(images: Array, labels: Array) -> DataSet:
        if not reshape:
            images = images[..., None]
        if bytes_wanted:
            images = np.rint(images * 255).astype(np.uint8)
        return DataSet(images, labels, seed or 0)

    images, labels = found.train.images, found.train.labels
    few = validation_size if len(images) >= 20_000 else min(validation_size, len(images) // 10)
    return Datasets(
        part(images[few:], labels[few:]), part(images[:few], labels[:few]),
        part(found.test.images, found.test.labels),
    )  # fmt: skip


def load_mnist(train_dir: str = "MNIST-data") -> Datasets:
    """`read_data_sets` with its defaults."""
    return read_data_sets(train_dir)

"""Labeled images from a local folder, with torchvision's names."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from weft import config
from weft.documentation import arguments_of
from weft.errors import DataError
from weft.formats.idx import read_idx
from weft.formats.image import opened
from weft.pipeline.file.sources import listed_images

__all__ = ["CIFAR10", "CIFAR100", "MNIST", "FashionMNIST", "ImageFolder", "Images"]

Array = np.ndarray[Any, Any]
Transform = Callable[[Any], Any]


def found(root: str | Path | None, names: Sequence[str], what: str, source: str) -> list[Path]:
    """The files of a data set, plain or .gz, in `root` or in one of its subfolders.

    Raises:
        DataError: files are missing; the message says which, and where to get them.
    """
    folder = Path(root if root is not None else str(config.get("data")) or ".")
    paths: list[Path] = []
    for name in names:
        inside = [p for end in ("", ".gz") for p in (folder / (name + end),) if p.is_file()]
        inside += sorted(p for end in ("", ".gz") for p in folder.glob(f"**/{name}{end}"))
        if not inside:
            raise DataError(
                f"{what}: expected {name} (or {name}.gz) in {folder.resolve()} or a folder in it; "
                f"get the data set from {source}, and name its folder by root or WEFT_DATA"
            )
        paths.append(inside[0])
    return paths


class Images:
    """Images (n, height, width) or (n, height, width, 3), uint8, with labels.

    Samples are pairs of an image (height, width, channels), transformed, and its label. `data` and
    `targets` are arrays: `Dataset.from_tensor_slices((mnist.data, mnist.targets))`.

    Args:
        data: the images.
        targets: one label for each.
        transform: a function of each image.
        target_transform: a function of each label.
    """

    classes: Sequence[str] = ()

    def __init__(
        self, data: Array, targets: Array, transform: Transform | None = None,
        target_transform: Transform | None = None,
    ) -> None:  # fmt: skip
        if len(data) != len(targets):
            raise DataError(f"expected a label per image, got {len(data)} and {len(targets)}")
        self.data, self.targets = data, targets
        self.transform, self.target_transform = transform, target_transform

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image: Any = self.data[index]
        image = image if image.ndim == 3 else image[..., None]
        label: Any = int(self.targets[index])
        image = image if self.transform is None else self.transform(image)
        return image, label if self.target_transform is None else self.target_transform(label)


class _Stored(Images):
    """Images in files of a known format, for training or for tests."""

    source: ClassVar[str]

    def __init__(
        self, root: str | Path | None = None, train: bool = True,
        transform: Transform | None = None, target_transform: Transform | None = None,
        download: bool = False,
    ) -> None:  # fmt: skip
        del download
        images, labels = self._read(root, train)
        super().__init__(images, labels, transform, target_transform)

    def _read(self, root: str | Path | None, train: bool) -> tuple[Array, Array]:
        raise NotImplementedError


class MNIST(_Stored):
    """70,000 handwritten digits of 28 x 28, 60,000 of them for training.

    Args:
        root: the folder of the files, or one above it; by default that of `WEFT_DATA`, or the
            current one.
        train: whether to read the training images or those for tests.
        transform: a function of each image.
        target_transform: a function of each label.
        download: no effect: where files are missing, the error says where to get them.

    Raises:
        DataError: files are missing or damaged.
    """

    source: ClassVar[str] = "https://ossci-datasets.s3.amazonaws.com/mnist/"
    folder: ClassVar[str] = ""
    classes = tuple(str(n) for n in range(10))

    def _read(self, root: str | Path | None, train: bool) -> tuple[Array, Array]:
        part = "train" if train else "t10k"
        names = [f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte"]
        base = root if root is not None else str(config.get("data")) or "."
        own = Path(base) / type(self).__name__
        paths = found(own if own.is_dir() else base, names, type(self).__name__, self.source)
        return read_idx(paths[0]), read_idx(paths[1])


@arguments_of(MNIST)
class FashionMNIST(MNIST):
    """70,000 images of clothes of 28 x 28, in MNIST's format (in a folder FashionMNIST)."""

    source = "https://github.com/zalandoresearch/fashion-mnist"
    classes = (
        "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag",
        "Ankle boot",
    )  # fmt: skip


@arguments_of(MNIST)
class CIFAR10(_Stored):
    """60,000 images of 32 x 32 in 10 classes, 50,000 of them for training: the binary version.

    Raises:
        DataError: files are missing or damaged.
    """

    source: ClassVar[str] = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
    train_files: ClassVar[Sequence[str]] = [f"data_batch_{n}.bin" for n in range(1, 6)]
    test_files: ClassVar[Sequence[str]] = ["test_batch.bin"]
    labels: ClassVar[int] = 1  # bytes before an image; the last one is its class
    classes = (
        "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
    )  # fmt: skip

    def _read(self, root: str | Path | None, train: bool) -> tuple[Array, Array]:
        names = self.train_files if train else self.test_files
        paths = found(root, names, type(self).__name__, self.source)
        rows = np.concatenate([self._rows(path) for path in paths])
        images = rows[:, self.labels :].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        targets = rows[:, self.labels - 1].astype(np.int64)
        return np.ascontiguousarray(images), targets

    def _rows(self, path: Path) -> Array:
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
        size = self.labels + 3 * 32 * 32
        if not data or len(data) % size:
            raise DataError(f"{path}: expected rows of {size} bytes, got {len(data)} bytes")
        return np.frombuffer(data, np.uint8).reshape(-1, size)


@arguments_of(MNIST)
class CIFAR100(CIFAR10):
    """60,000 images of 32 x 32 in 100 classes: the binary version."""

    source = "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz"
    train_files: ClassVar[Sequence[str]] = ["train.bin"]
    test_files: ClassVar[Sequence[str]] = ["test.bin"]
    labels = 2
    classes = ()


class ImageFolder:
    """Images in subfolders named after their classes; samples are pairs of image and label.

    Args:
        root: the folder of the classes' folders.
        transform: a function of each image.
        target_transform: a function of each label.

    Raises:
        DataError: there are no images, or, while reading, one is broken.
    """

    def __init__(
        self,
        root: str | Path,
        transform: Transform | None = None,
        target_transform: Transform | None = None,
    ) -> None:
        paths, self.targets, self.classes = listed_images(root)
        self.samples = list(zip(paths, self.targets, strict=True))
        self.class_to_idx = {name: number for number, name in enumerate(self.classes)}
        self.transform, self.target_transform = transform, target_transform

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, target = self.samples[index]
        image = opened(Path(path).read_bytes(), path).convert("RGB")
        image = image if self.transform is None else self.transform(image)
        return image, target if self.target_transform is None else self.target_transform(target)

"""`tf.keras.utils`: one-hot labels, batches by index, custom objects."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from weft.errors import DataError
from weft.tf1.framework.graph import fail
from weft.tf1.keras.storage.serialization import (
    custom_object_scope,
    get_custom_objects,
    serialize,
)  # fmt: skip

__all__ = [
    "CustomObjectScope", "Sequence", "custom_object_scope", "get_custom_objects", "get_file",
    "normalize",
    "plot_model", "register_keras_serializable", "serialize_keras_object", "to_categorical",
]  # fmt: skip

CustomObjectScope = custom_object_scope
serialize_keras_object = serialize


def register_keras_serializable(
    package: str = "Custom", name: str | None = None
) -> Callable[[Any], Any]:
    """A decorator: models with the class or function can be loaded.

    Args:
        package: a prefix of the name in files.
        name: in files; the class's own by default.
    """

    def register(thing: Any) -> Any:
        objects = get_custom_objects()
        objects[thing.__name__] = objects[f"{package}>{name or thing.__name__}"] = thing
        return thing

    return register


def get_file(
    fname: str, origin: str = "", untar: bool = False, md5_hash: str | None = None,
    file_hash: str | None = None, cache_subdir: str = "datasets", hash_algorithm: str = "auto",
    extract: bool = False, archive_format: str = "auto", cache_dir: str | None = None,
) -> str:  # fmt: skip
    """The path of a file in Keras's folder; nothing is downloaded.

    Args:
        fname: the file, or with `untar` the folder that an archive holds.
        origin: where the file can be had, for the error.
        untar, extract: of an archive, which has to be unpacked already.
        md5_hash, file_hash, hash_algorithm, archive_format: accepted.
        cache_subdir: the folder below `cache_dir`.
        cache_dir: `KERAS_HOME`, or `~/.keras`, by default.

    Raises:
        DataError: there is no such file; the message says where it belongs.
    """
    del untar, md5_hash, file_hash, hash_algorithm, extract, archive_format
    home = cache_dir or os.environ.get("KERAS_HOME") or os.path.join("~", ".keras")
    path = os.path.join(os.path.expanduser(home), cache_subdir, fname)
    if not os.path.exists(path):
        text = f"nothing is downloaded: get {origin or fname}, and put it at {path}"
        raise fail(DataError, f"get_file: {text}")
    return path


def plot_model(model: Any, to_file: str = "model.png", **options: Any) -> None:
    """Says what to write instead: as in TensorFlow without Graphviz, no image is drawn.

    Args:
        model: a model, whose `summary()` lists its layers.
        to_file, options: without effect.
    """
    del options
    print(f"plot_model: {to_file} is not drawn; {model.name}.summary() lists the layers",
          file=sys.stderr)  # fmt: skip


def to_categorical(y: Any, num_classes: int | None = None, dtype: Any = "float32") -> Any:
    """Integers as one-hot vectors.

    >>> to_categorical([0, 2]).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    numbers = np.array(y, np.int64)
    shape = numbers.shape
    if len(shape) > 1 and shape[-1] == 1:
        shape = shape[:-1]
    count = int(num_classes or numbers.max() + 1)
    found = np.zeros((numbers.size, count), dtype)
    found[np.arange(numbers.size), numbers.ravel()] = 1
    return found.reshape(*shape, count)


def normalize(x: Any, axis: int = -1, order: int = 2) -> Any:
    """An array divided by its norms along an axis."""
    norms = np.atleast_1d(np.linalg.norm(x, order, axis))
    norms[norms == 0] = 1
    return x / np.expand_dims(norms, axis)


class Sequence:
    """Base class of data with batches by index: define `__getitem__` and `__len__`."""

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def on_epoch_end(self) -> None:
        """Called after each pass."""

    def __iter__(self) -> Iterator[Any]:
        for i in range(len(self)):
            yield self[i]

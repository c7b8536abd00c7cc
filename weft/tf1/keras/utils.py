"""`tf.keras.utils`: one-hot labels, batches by index, custom objects."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import weft.tf1 as tf
from weft.errors import DataError
from weft.tf1.framework.graph import fail
from weft.tf1.keras.storage.serialization import (
    custom_object_scope,
    get_custom_objects,
    serialize,
)  # fmt: skip

__all__ = [
    "CustomObjectScope", "Progbar", "Sequence", "custom_object_scope", "get_custom_objects",
    "get_file", "normalize", "plot_model", "register_keras_serializable",
    "serialize_keras_object", "set_random_seed", "to_categorical",
]  # fmt: skip

CustomObjectScope = custom_object_scope
serialize_keras_object = serialize


def set_random_seed(seed: int) -> None:
    """Set the seeds of Python's, NumPy's and the graph's random numbers."""
    random.seed(seed)
    np.random.seed(seed)
    tf.set_random_seed(seed)


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


class Progbar:
    """A line of progress, for loops that a program writes itself.

    Args:
        target: the number of steps; None if it is not known.
        width: of the bar, in characters.
        verbose: 1 shows a bar, 2 the last line alone, 0 nothing.
        interval: the least seconds between two lines.
        stateful_metrics: names of values that are shown as they are, not as means.
        unit_name: what a step is called.
    """

    def __init__(
        self, target: int | None, width: int = 30, verbose: int = 1, interval: float = 0.05,
        stateful_metrics: Any = None, unit_name: str = "step",
    ) -> None:  # fmt: skip
        self.target, self.width, self.verbose, self.interval = target, width, verbose, interval
        self.stateful_metrics, self.unit_name = set(stateful_metrics or ()), unit_name
        self._sums: dict[str, tuple[float, float]] = {}  # by name: sum, and number of steps
        self._seen, self._start, self._shown = 0, time.time(), 0.0

    def update(self, current: int, values: Any = None, finalize: bool | None = None) -> None:
        """Show the progress after `current` steps.

        Args:
            values: pairs of a name and its value in the last steps.
            finalize: whether this is the last line; by default at the target.
        """
        steps = current - self._seen
        for name, value in values or ():
            total, count = self._sums.get(name, (0.0, 0.0))
            kept = name in self.stateful_metrics
            self._sums[name] = (value, 1) if kept else (total + value * steps, count + steps)
        self._seen = current
        now, last = time.time(), self.target is not None and current >= self.target
        last = last if finalize is None else finalize
        if not last and (self.verbose != 1 or now - self._shown < self.interval):
            return
        self._shown = now
        if self.verbose:
            is_terminal = self.verbose == 1 and sys.stdout.isatty()
            end = "\n" if last or not is_terminal else ""
            print(("\r" if is_terminal else "") + self._line(now - self._start), end=end)

    def add(self, n: int, values: Any = None) -> None:
        """Show the progress after `n` more steps."""
        self.update(self._seen + n, values)

    def _line(self, seconds: float) -> str:
        counted = f"{self._seen}/{self.target or 'Unknown'}"
        if self.target:
            full = min(self.width, self.width * self._seen // self.target)
            counted += f" [{'=' * full}{'.' * (self.width - full)}]"
        means = [f"{n}: {total / max(count, 1):.4f}" for n, (total, count) in self._sums.items()]
        rate = f"{seconds:.0f}s {seconds / max(self._seen, 1) * 1e3:.0f}ms/{self.unit_name}"
        return " - ".join([counted, rate, *means])


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

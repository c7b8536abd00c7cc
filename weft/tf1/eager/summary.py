"""`tf.summary` of TensorFlow 2: events are written at once, to the writer that is the default."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from weft.errors import ArgumentError
from weft.tf1.framework.defaults import Defaults
from weft.tf1.framework.graph import fail
from weft.utils.tensorboard import SummaryWriter

__all__ = ["create_file_writer", "histogram", "image", "scalar", "text"]


class Writer:
    """Writes events to a folder.

    Args:
        logdir: the folder.
    """

    def __init__(self, logdir: Any) -> None:
        self.inner = SummaryWriter(logdir)

    @contextlib.contextmanager
    def as_default(self, step: Any = None) -> Iterator[Writer]:
        """Functions of `tf.summary` inside write here."""
        del step
        with _writers.within(self):
            yield self

    def set_as_default(self, step: Any = None) -> None:
        """Functions of `tf.summary` write here from now on."""
        del step
        _writers.stack.append(self)

    def flush(self) -> None:
        """Have everything in the file."""
        self.inner.flush()

    def close(self) -> None:
        """End the file."""
        self.inner.close()


_writers: Final[Defaults[Writer]] = Defaults()


def create_file_writer(
    logdir: Any, max_queue: Any = None, flush_millis: Any = None, filename_suffix: Any = None,
    name: str | None = None,
) -> Writer:  # fmt: skip
    """A writer of events.

    Args:
        logdir: the folder.
        max_queue, flush_millis, filename_suffix, name: accepted.
    """
    del max_queue, flush_millis, filename_suffix, name
    return Writer(logdir)


def _write(method: str, name: str, data: Callable[[], Any], step: Any, **options: Any) -> bool:
    """Write what a function gives, if there is a writer."""
    if not _writers.stack:
        return False
    if step is None:
        raise fail(ArgumentError, f"summary: expected a step for {name!r}, got None")
    getattr(_writers.stack[-1].inner, method)(name, data(), int(step), **options)
    return True


def scalar(name: str, data: Any, step: Any = None, description: str | None = None) -> bool:
    """Write a number."""
    del description
    return _write("add_scalar", name, lambda: float(data), step)


def histogram(
    name: str, data: Any, step: Any = None, buckets: int | None = None,
    description: str | None = None,
) -> bool:  # fmt: skip
    """Write the distribution of values."""
    del buckets, description
    return _write("add_histogram", name, lambda: np.asarray(data), step)


def image(
    name: str, data: Any, step: Any = None, max_outputs: int = 3, description: str | None = None
) -> bool:
    """Write images, [batch, height, width, channels]."""
    del description
    return _write(
        "add_images", name, lambda: np.asarray(data)[:max_outputs], step, dataformats="NHWC"
    )


def text(name: str, data: Any, step: Any = None, description: str | None = None) -> bool:
    """Write a text."""
    del description

    def told() -> str:
        found = np.asarray(data)[()]
        return found.decode() if isinstance(found, bytes) else str(found)

    return _write("add_text", name, told, step)

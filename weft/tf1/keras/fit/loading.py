"""Loaders of batches: datasets, generators, `keras.utils.Sequence`, and batch conversion."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Generic, TypeVar

import numpy as np

import weft.tf1 as tf
from weft.errors import ArgumentError
from weft.tf1.framework.graph import fail, graph_of
from weft.tf1.keras.engine import sessions

Made = TypeVar("Made")


class _ByNumber:
    """Batches by index, from a `keras.utils.Sequence`, which is notified of each pass's end."""

    def __init__(self, given: Any, shuffle: bool) -> None:
        self._given, self._shuffle = given, shuffle

    def __len__(self) -> int:
        return len(self._given)

    def __iter__(self) -> Iterator[Any]:
        order = np.arange(len(self._given))
        if self._shuffle:
            np.random.shuffle(order)
        for place, i in enumerate(order, 1):
            batch = self._given[int(i)]
            if place == len(order) and hasattr(self._given, "on_epoch_end"):
                self._given.on_epoch_end()  # nobody requests a batch after the last one
            yield batch


class Continued:
    """Batches that resume where the last pass stopped, and restart at the end."""

    def __init__(self, given: Iterable[Any]) -> None:
        self._given = given
        self._iterator: Iterator[Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        while True:
            if self._iterator is None:
                self._iterator = iter(self._given)
            empty = True
            for batch in self._iterator:
                empty = False
                yield batch
            self._iterator = None
            if empty or inspect.isgenerator(self._given):
                return


class Prepared(Generic[Made]):
    """A loader whose batches are converted as they come."""

    def __init__(self, loader: Any, prepare: Callable[[Any], Made]) -> None:
        self._loader, self._prepare = loader, prepare
        if hasattr(loader, "__len__"):
            self._length = len(loader)

    def __len__(self) -> int:
        if "_length" not in self.__dict__:
            raise TypeError("a loader without a length")
        return self._length

    def __iter__(self) -> Iterator[Made]:
        prepare = self._prepare
        for batch in self._loader:
            yield prepare(batch)


def elements_of(dataset: Any) -> Any:
    """A loader over a `tf.data` dataset, or over its iterator.

    Tensors that a dataset is made of are computed once, now, in Keras's session.
    """
    if not isinstance(dataset, tf.data.Dataset):
        return dataset
    if not dataset.inputs:
        return dataset.pipeline([])
    with graph_of(dataset.inputs).as_default():
        return dataset.pipeline(sessions.get_session().run(list(dataset.inputs)))


def is_loader(x: Any) -> bool:
    """Whether something yields batches and is not an array or a structure of arrays."""
    if isinstance(x, tf.data.Dataset) or inspect.isgenerator(x):
        return True
    plain = isinstance(x, np.ndarray | list | tuple | Mapping) or hasattr(x, "__array__")
    return not plain and (hasattr(x, "__iter__") or hasattr(x, "__getitem__"))


def loader_of(x: Any, shuffle: Any, steps: Any) -> Any:
    """A loader of batches; with a number of steps, one that resumes from pass to pass."""
    found = elements_of(x)
    if found is x and hasattr(x, "__getitem__") and hasattr(x, "__len__"):
        found = _ByNumber(x, bool(shuffle))
    return found if steps is None else Continued(found)


def begun(x: Any) -> tuple[Any, Any]:
    """The first batch of a loader, and the loader with it.

    Raises:
        ArgumentError: it is empty.
    """
    rest = iter(elements_of(x)) if not hasattr(x, "__getitem__") else (x[i] for i in range(len(x)))
    for first in rest:
        return first, chain([first], rest) if isinstance(x, Iterator) else x
    raise fail(ArgumentError, "fit: expected batches, got none")


def parts_of(batch: Any) -> tuple[Any, Any, Any]:
    """Inputs, targets and weights of a batch; `None` for missing ones."""
    if not isinstance(batch, tuple | list):
        return batch, None, None
    if not 1 <= len(batch) <= 3:
        raise fail(
            ArgumentError,
            f"fit: expected batches (x, y) or (x, y, weights), got {len(batch)} parts",
        )
    x, y, weights = [*batch, None, None][:3]
    return x, y, weights

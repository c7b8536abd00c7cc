"""Map-style and iterable datasets, and combinations of them, with PyTorch's names."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from weft.eager.functions.api import Tensor
from weft.eager.tensor.dispatch import leaf, wrap
from weft.eager.tensor.generator import Generator, default_generator
from weft.errors import ArgumentError, ShapeError
from weft.pipeline.permutation import Permutation

T = TypeVar("T", covariant=True)
Array = np.ndarray[Any, Any]


class Dataset(Generic[T]):
    """Samples by index: a subclass has `__getitem__` and usually `__len__`."""

    def __getitem__(self, index: Any) -> T:
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__")

    def __add__(self, other: Any) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T]):
    """Samples in order: a subclass has `__iter__`.

    With worker processes, each iterates a copy: `get_worker_info` tells a worker its part.
    """

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__")

    def __add__(self, other: Any) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Any, ...]]):
    """Sample i is row i of each tensor; a loader gathers whole batches at once.

    Raises:
        ShapeError: first dimensions differ.

    >>> import weft as wf
    >>> rows = TensorDataset(wf.zeros(3, 2), wf.arange(3))
    >>> len(rows), rows[1]
    (3, (tensor([0., 0.]), tensor(1)))
    """

    def __init__(self, *tensors: Any) -> None:
        lengths = {len(x) for x in tensors}
        if len(lengths) != 1:
            shapes = [tuple(x.shape) for x in tensors]
            raise ShapeError(f"TensorDataset: expected tensors of one length, got shapes {shapes}")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(x[index] for x in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])

    def gather(self, indices: Array) -> list[Any]:
        """The batch of these samples, as from `default_collate`."""
        return [_rows(x, indices) for x in self.tensors]


def _rows(x: Any, indices: Array) -> Any:
    tracked = isinstance(x, Tensor) and x.requires_grad
    if tracked:
        return x[indices]
    array = x.numpy() if isinstance(x, Tensor) else np.asarray(x)
    return wrap(leaf(array.take(indices, 0)))


class StackDataset(Dataset[Any]):
    """Zipped samples of several datasets, as tuples or dicts."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            text = "datasets either in order or by name"
            raise ArgumentError(f"StackDataset: expected {text}, got {len(args)} and {len(kwargs)}")
        self.datasets: Any = kwargs or args
        parts = kwargs.values() if kwargs else args
        lengths = {len(part) for part in parts}
        if len(lengths) != 1:
            raise ShapeError(f"StackDataset: expected one length, got {sorted(lengths)}")
        (self._length,) = lengths

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: part[index] for name, part in self.datasets.items()}
        return tuple(part[index] for part in self.datasets)

    def __len__(self) -> int:
        return self._length


class Subset(Dataset[T]):
    """A subset of a dataset, by indices."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> T:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)

    def gather(self, indices: Array) -> Any:
        """The batch of these samples, if the dataset can gather."""
        return self.dataset.gather(np.asarray(self.indices)[indices])


def can_gather(dataset: Any) -> bool:
    """Whether a dataset has a method `gather` that makes whole batches."""
    if isinstance(dataset, Subset):
        return can_gather(dataset.dataset)
    return hasattr(dataset, "gather")


class ConcatDataset(Dataset[Any]):
    """One dataset after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ArgumentError("ConcatDataset: expected at least one dataset, got none")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise ArgumentError(
                "ConcatDataset: expected datasets with indices, got an IterableDataset; "
                "ChainDataset takes those"
            )
        self.cumulative_sizes = np.cumsum([len(d) for d in self.datasets]).tolist()

    def __getitem__(self, index: int) -> Any:
        index = _checked(index, len(self))
        number = bisect_right(self.cumulative_sizes, index)
        before = self.cumulative_sizes[number - 1] if number else 0
        return self.datasets[number][index - before]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


def _checked(index: int, size: int) -> int:
    if not -size <= index < size:
        raise IndexError(f"dataset: expected {-size} <= index < {size}, got {index}")
    return index + size if index < 0 else index


class ChainDataset(IterableDataset[Any]):
    """One iterable dataset after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)

    def __iter__(self) -> Iterator[Any]:
        for dataset in self.datasets:
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self.datasets)


def random_split(
    dataset: Any, lengths: Sequence[int | float], generator: Generator | None = None
) -> list[Subset[Any]]:
    """A random split into parts of these lengths, or of fractions that add up to 1.

    Raises:
        ArgumentError: the lengths do not add up to the dataset's.

    >>> [len(part) for part in random_split(range(10), [0.7, 0.3])]
    [7, 3]
    """
    total = len(dataset)
    sizes = list(lengths)
    if math.isclose(sum(sizes), 1) and sum(sizes) <= 1 + 1e-9:
        sizes = [math.floor(total * part) for part in sizes]
        for i in range(total - sum(sizes)):  # the remainder, distributed in turn as in PyTorch
            sizes[i % len(sizes)] += 1
    if sum(sizes) != total:
        text = f"lengths that add up to {total}, or to 1"
        raise ArgumentError(f"random_split: expected {text}, got {list(lengths)}")
    seed = (generator or default_generator).next()
    order = Permutation(total, seed, 0).take(np.arange(total)).tolist() if total else []
    ends = np.cumsum(sizes).astype(int).tolist()
    starts = [0, *ends[:-1]]
    return [Subset(dataset, order[a:b]) for a, b in zip(starts, ends, strict=True)]

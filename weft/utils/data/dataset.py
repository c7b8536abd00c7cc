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
from weft.errors import ArgumentError, ShapeError, UndefinedMethodError
from weft.pipeline.permutation import Permutation

__all__ = [
    "ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "StackDataset", "Subset",
    "TensorDataset", "random_split",
]  # fmt: skip

T = TypeVar("T", covariant=True)
Array = np.ndarray[Any, Any]


class Dataset(Generic[T]):
    """Samples by index: a subclass has `__getitem__` and usually `__len__`."""

    def __getitem__(self, index: Any) -> T:
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__")

    def __add__(self, other: Any) -> ConcatDataset[Any]:
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


def _rows(x: Any, indices: Array) -> Any:
    tracked = isinstance(x, Tensor) and x.requires_grad
    if tracked:
        return x[indices]
    array = x.numpy() if isinstance(x, Tensor) else np.asarray(x)
    return wrap(leaf(array.take(indices, 0)))


class StackDataset(Dataset[T]):
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

    def __getitems__(self, indices: Sequence[Any]) -> list[Any]:
        """The samples at these indices; parts that have this method are asked once."""
        parts = self.datasets.values() if isinstance(self.datasets, dict) else self.datasets
        columns = [_several(part, indices) for part in parts]
        if any(len(column) != len(indices) for column in columns):
            sizes = [len(column) for column in columns]
            text = f"{len(indices)} samples from __getitems__ of each dataset, got {sizes}"
            raise ShapeError(f"StackDataset: expected {text}")
        rows = list(zip(*columns, strict=True))
        if isinstance(self.datasets, dict):
            return [dict(zip(self.datasets, row, strict=True)) for row in rows]
        return rows

    def __len__(self) -> int:
        return self._length


class Subset(Dataset[T]):
    """A subset of a dataset, by indices.

    Args:
        dataset: the whole dataset.
        indices: of the samples, in order.

    Raises:
        UndefinedMethodError: a subclass has its own `__getitem__` and the inherited `__getitems__`,
            by which a loader would pass it over.
    """

    def __init__(self, dataset: Any, indices: Sequence[Any]) -> None:
        kind = type(self)
        own = kind.__getitem__ is not Subset.__getitem__
        if own and kind.__getitems__ is Subset.__getitems__:
            text = "define __getitems__ too: `return [self[i] for i in indices]`"
            raise UndefinedMethodError(f"{kind.__name__} defines __getitem__ alone; {text}")
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> T:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: Sequence[Any]) -> list[T]:
        """The samples at these indices."""
        return _several(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def _several(dataset: Any, indices: Sequence[Any]) -> list[Any]:
    """Samples, by the dataset's `__getitems__` if it has one."""
    method: Any = getattr(dataset, "__getitems__", None)
    return [*method(indices)] if method is not None else [dataset[i] for i in indices]


def gets_several(dataset: Any) -> bool:
    """Whether a `__getitems__` of the user's is asked for whole batches.

    Those of `Subset` and `StackDataset` only pass the question on.
    """
    kind: Any = type(dataset)
    if isinstance(dataset, Subset) and kind.__getitems__ is Subset.__getitems__:
        return gets_several(dataset.dataset)
    if isinstance(dataset, StackDataset) and kind.__getitems__ is StackDataset.__getitems__:
        if kind.__getitem__ is not StackDataset.__getitem__:
            return False  # a subclass's own is not passed over
        parts: Any = dataset.datasets
        return any(map(gets_several, parts.values() if isinstance(parts, dict) else parts))
    return callable(getattr(dataset, "__getitems__", None))


def can_gather(dataset: Any) -> bool:
    """Whether `gathered` makes the batches that `default_collate` makes of single samples."""
    kind: Any = type(dataset)
    if isinstance(dataset, Subset):
        own = kind.__getitem__ is Subset.__getitem__ and kind.__getitems__ is Subset.__getitems__
        return own and can_gather(dataset.dataset)
    if isinstance(dataset, TensorDataset):
        plain = kind.__getitem__ is TensorDataset.__getitem__
        return plain and not hasattr(kind, "__getitems__")
    return isinstance(dataset, Tensor) and kind.__getitem__ is Tensor.__getitem__


def gathered(dataset: Any, indices: Array) -> Any:
    """The batch of these samples at once, where `can_gather`."""
    if isinstance(dataset, Subset):
        return gathered(dataset.dataset, np.asarray(dataset.indices)[indices])
    if isinstance(dataset, TensorDataset):
        return [_rows(x, indices) for x in dataset.tensors]
    return _rows(dataset, indices)


class ConcatDataset(Dataset[T]):
    """One dataset after the other.

    Args:
        datasets: datasets with sizes.
    """

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


class ChainDataset(IterableDataset[T]):
    """One iterable dataset after the other.

    Args:
        datasets: iterable datasets.
    """

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

    Args:
        dataset: the whole dataset.
        lengths: the sizes of the parts, or their shares.
        generator: draws the order; the global one by default.

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

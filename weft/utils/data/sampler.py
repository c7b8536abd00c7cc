"""Samplers: the order of samples, with PyTorch's names.

Orders are functions of a seed and a position, so a loader can resume anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from weft.collectives.process_group import get_rank, get_world_size, is_initialized
from weft.eager.tensor.generator import Generator, default_generator
from weft.errors import ArgumentError
from weft.host.mix import mix
from weft.pipeline.permutation import Permutation

__all__ = [
    "BatchSampler", "DistributedSampler", "RandomSampler", "Sampler", "SequentialSampler",
    "SubsetRandomSampler", "WeightedRandomSampler",
]  # fmt: skip

T = TypeVar("T", covariant=True)
Array = np.ndarray[Any, Any]
_BLOCK = 1024


class Sampler(Generic[T]):
    """Yields indices of samples, or lists of them; a subclass has `__iter__`.

    Args:
        data_source: no effect.
    """

    def __init__(self, data_source: Any = None) -> None:
        del data_source

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__")


class OrderSampler(Sampler[int]):
    """An order that can be computed at any position, given a seed.

    Attributes:
        planned: the seed of the next pass, if a loader has drawn it: a subclass whose `__iter__`
            calls this one goes on from a saved position.
    """

    generator: Generator | None = None
    planned: int | None = None

    def __len__(self) -> int:
        raise NotImplementedError

    def take(self, places: Array, seed: int) -> Array | list[Any]:
        """The sample indices at these positions of the pass with this seed."""
        raise NotImplementedError

    def fresh_seed(self) -> int:
        """The seed of the next pass, drawn from the generator."""
        return (self.generator or default_generator).next()

    def __iter__(self) -> Iterator[int]:
        seed, self.planned = self.planned, None
        seed, size = self.fresh_seed() if seed is None else seed, len(self)
        for start in range(0, size, _BLOCK):
            found = self.take(np.arange(start, min(start + _BLOCK, size)), seed)
            yield from found.tolist() if isinstance(found, np.ndarray) else found


class SequentialSampler(OrderSampler):
    """0, 1, 2, ...

    Args:
        data_source: a dataset, whose size counts.
    """

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __len__(self) -> int:
        return len(self.data_source)

    def fresh_seed(self) -> int:
        """No seed is needed."""
        return 0

    def take(self, places: Array, seed: int) -> Array:
        """The positions themselves."""
        return places


class _Permuted(OrderSampler):
    """Permutations of `count` indices, one after the other."""

    def __init__(self, generator: Generator | None) -> None:
        self.generator = generator
        self._last: tuple[int, int, Permutation] | None = None

    def permuted(self, places: Array, count: int, seed: int) -> Array:
        """The entries at positions in permutations of `count` indices."""
        found = np.empty(len(places), np.int64)
        turns = places // max(count, 1)
        for turn in np.unique(turns):
            key = int(turn)
            last = self._last
            if last is None or last[:2] != (seed, key) or last[2].size != count:
                last = self._last = seed, key, Permutation(count, seed, key)
            chosen = turns == turn
            found[chosen] = last[2].take(places[chosen] - key * count)
        return found


class RandomSampler(_Permuted):
    """A permutation, or draws with replacement; `num_samples` may exceed the dataset's size.

    Args:
        data_source: a dataset, whose size counts.
        replacement: whether an index may come again.
        num_samples: the number of indices of a pass; the dataset's size by default.
        generator: gives the seed of each pass; the global one by default.
    """

    def __init__(
        self, data_source: Any, replacement: bool = False, num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:  # fmt: skip
        super().__init__(generator)
        if num_samples is not None and num_samples < 1:
            raise ArgumentError(f"RandomSampler: expected num_samples > 0, got {num_samples}")
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples

    @property
    def num_samples(self) -> int:
        """How many indices a pass yields."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __len__(self) -> int:
        return self.num_samples

    def take(self, places: Array, seed: int) -> Array:
        """From permutations of all samples, or drawn independently."""
        count = len(self.data_source)
        if self.replacement:
            return np.array([mix(seed, int(place)) % count for place in places], np.int64)
        return self.permuted(places, count, seed)


class SubsetRandomSampler(_Permuted):
    """A permutation of given indices.

    Args:
        indices: of the samples.
        generator: gives the seed of each pass; the global one by default.
    """

    def __init__(self, indices: Sequence[Any], generator: Generator | None = None) -> None:
        super().__init__(generator)
        self.indices = indices

    def __len__(self) -> int:
        return len(self.indices)

    def take(self, places: Array, seed: int) -> list[Any]:
        """The given indices, permuted; they may be keys of any kind."""
        order = self.permuted(places, len(self.indices), seed)
        return [self.indices[i] for i in order.tolist()]


class WeightedRandomSampler(OrderSampler):
    """Indices drawn by weights, with or without replacement.

    Args:
        weights: of each index; they need not add up to 1.
        num_samples: the number of indices of a pass.
        replacement: whether an index may come again.
        generator: gives the seed of each pass; the global one by default.
    """

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:  # fmt: skip
        self.weights = np.asarray(weights, np.float64)
        if self.weights.ndim != 1 or not (self.weights >= 0).all() or not self.weights.sum() > 0:
            raise ArgumentError("WeightedRandomSampler: expected weights of 0 or more, not all 0")
        if num_samples < 1 or (not replacement and num_samples > np.count_nonzero(self.weights)):
            text = "1 or more, without replacement at most as many as weights above 0"
            raise ArgumentError(
                f"WeightedRandomSampler: expected num_samples to be {text}, got {num_samples}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator
        self._ends = np.cumsum(self.weights)

    def __len__(self) -> int:
        return self.num_samples

    def take(self, places: Array, seed: int) -> Array:
        """Drawn independently; without replacement, from the order of the whole pass."""
        if self.replacement:
            draws = np.array([mix(seed, int(place)) for place in places]) / 2.0**64
            return np.searchsorted(self._ends, draws * self._ends[-1], "right")
        # smallest keys first, each exponential with its weight as rate: Efraimidis and Spirakis,
        # 2006
        keys = np.random.Generator(np.random.Philox(key=seed)).exponential(size=len(self.weights))
        with np.errstate(divide="ignore"):
            order = np.argsort(keys / self.weights, kind="stable")
        return order[places]


class BatchSampler(Sampler[list[int]]):
    """Lists of `batch_size` indices of another sampler.

    Args:
        sampler: gives the indices.
        batch_size: the number of indices in a list.
        drop_last: whether a last list of fewer is left out.
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        if batch_size < 1:
            raise ArgumentError(f"BatchSampler: expected batch_size > 0, got {batch_size}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        for number in self.sampler:
            batch.append(number)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # pyright: ignore[reportArgumentType]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


class DistributedSampler(OrderSampler, Generic[T]):
    """One rank's equal part of the samples; call `set_epoch` before each epoch.

    Without `drop_last`, the first samples are repeated to fill the last round, as in PyTorch. Rank
    and number of ranks come from `weft.distributed` by default.

    Args:
        dataset: its size counts.
        num_replicas: the number of ranks.
        rank: this rank.
        shuffle: whether each epoch has an order of its own.
        seed: of the orders; the same on all ranks.
        drop_last: whether to leave out samples rather than to repeat some.
    """

    def __init__(
        self, dataset: Any, num_replicas: int | None = None, rank: int | None = None,
        shuffle: bool = True, seed: int = 0, drop_last: bool = False,
    ) -> None:  # fmt: skip
        if num_replicas is None:
            num_replicas = get_world_size() if is_initialized() else 1
        if rank is None:
            rank = get_rank() if is_initialized() else 0
        if not 0 <= rank < num_replicas:
            text = f"0 <= rank < num_replicas, got {rank} and {num_replicas}"
            raise ArgumentError(f"DistributedSampler: expected {text}")
        self.dataset = dataset
        self.num_replicas, self.rank = num_replicas, rank
        self.shuffle, self.seed, self.drop_last = shuffle, seed, drop_last
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch's order, the same on all ranks."""
        self.epoch = epoch

    def __len__(self) -> int:
        count = len(self.dataset)
        return count // self.num_replicas if self.drop_last else -(-count // self.num_replicas)

    @property
    def num_samples(self) -> int:
        """How many samples each rank has."""
        return len(self)

    @property
    def total_size(self) -> int:
        """How many all ranks have together."""
        return len(self) * self.num_replicas

    def fresh_seed(self) -> int:
        """The same on all ranks."""
        return mix(self.seed, self.epoch)

    def take(self, places: Array, seed: int) -> Array:
        """Every `num_replicas`-th entry of one order."""
        count = len(self.dataset)
        found = (places * self.num_replicas + self.rank) % count
        return Permutation(count, seed, 0).take(found) if self.shuffle else found

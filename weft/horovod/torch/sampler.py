"""`ElasticSampler`: divides an epoch's unprocessed samples among the ranks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sized
from typing import Any

import numpy as np

from weft.horovod import basics
from weft.utils.data.sampler import Sampler


class ElasticSampler(Sampler[int]):
    """A rank's share of an epoch's unprocessed samples; the number of ranks may change.

    Call `record_batch` after each batch, and give the sampler to the state:
    `hvd.elastic.TorchState(model, optimizer, batch=0, sampler=sampler)`. After a restart, the
    remaining samples are divided among the new number of ranks. If they are not divisible, some
    samples are drawn twice.

    Args:
        dataset: anything with a length.
        shuffle: whether each epoch has an order of its own.
        seed: of the orders; must be the same on all ranks.

    Attributes:
        epoch: the epoch, for `set_epoch`.
        processed_indices: samples that all ranks have processed in this epoch.

    Example:
        >>> import weft.horovod.torch as hvd
        >>> hvd.init()
        >>> sampler = hvd.elastic.ElasticSampler(range(6), shuffle=False)
        >>> sampler.record_batch(0, 2)
        >>> sampler.load_state_dict(sampler.state_dict())
        >>> list(sampler)
        [2, 3, 4, 5]
        >>> hvd.shutdown()
    """

    def __init__(self, dataset: Sized, shuffle: bool = True, seed: int = 0) -> None:
        super().__init__(dataset)
        self._count = len(dataset)
        self.shuffle, self.seed, self.epoch = shuffle, seed, 0
        self.processed_indices: set[int] = set()
        self.reset()

    def set_epoch(self, epoch: int) -> None:
        """Start an epoch with no samples processed. Call it at the end of the previous epoch."""
        self.epoch = epoch
        self.processed_indices = set()
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """Record that every rank has processed its batch of this number, counted from `reset`."""
        step = batch_size * self.num_replicas
        self.record_indices(self._order[batch_idx * step : (batch_idx + 1) * step])

    def record_indices(self, indices: Iterable[int]) -> None:
        """Record samples of all ranks as processed."""
        self.processed_indices.update(indices)

    def get_indices(self, batch_idx: int, batch_size: int) -> list[int]:
        """This rank's samples of a batch."""
        return self.indices[batch_idx * batch_size : (batch_idx + 1) * batch_size]

    def reset(self) -> None:
        """Divide the remaining samples among the current ranks."""
        self.num_replicas, self.rank = basics.size(), basics.rank()
        left = [i for i in range(self._count) if i not in self.processed_indices]
        if self.shuffle:
            np.random.default_rng([self.seed, self.epoch]).shuffle(left)
        self.num_samples = -(-len(left) // self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas
        self._order = (left * self.num_replicas)[: self.total_size]
        self.indices = self._order[self.rank :: self.num_replicas]

    def state_dict(self) -> dict[str, Any]:
        """The epoch and its processed samples: the same on all ranks."""
        return {"epoch": self.epoch, "processed_indices": sorted(self.processed_indices)}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue within an epoch, with the current ranks."""
        self.epoch = int(state_dict["epoch"])
        self.processed_indices = set(map(int, state_dict["processed_indices"]))
        self.reset()

    def __iter__(self) -> Iterator[int]:
        return iter(self.indices)

    def __len__(self) -> int:
        return len(self.indices)

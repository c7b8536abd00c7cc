"""Fetching of batches, by the loader itself or by its workers."""

from __future__ import annotations

import enum
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from weft.eager.tensor.dispatch import leaf, wrap
from weft.eager.tensor.handle import Handle
from weft.pipeline.call import keyed
from weft.pipeline.permutation import mix


class WorkerInfo(NamedTuple):
    """Information about this worker process."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_current: list[WorkerInfo] = []


def get_worker_info() -> WorkerInfo | None:
    """In a worker: its index, the number of workers, its seed, its dataset. None elsewhere."""
    return _current[-1] if _current else None


class Numbered(NamedTuple):
    """A task: the samples at these indices, or one sample if batching is off."""

    numbers: Any
    seed: int


class Next(NamedTuple):
    """A task: the next batch of an iterable dataset, in a given pass."""

    turn: int
    seed: int
    drop: bool  # whether it was used before a resume, so nobody needs it


class End(enum.Enum):
    """The result of `Next` after the last batch; a single object, also between processes."""

    ENDED = 0


@dataclass
class Fetcher:
    """Executes tasks."""

    dataset: Any
    collate: Callable[[Any], Any]
    batch_size: int | None
    drop_last: bool
    gathers: bool = False
    turn: int = -1
    running: Iterator[Any] | None = None
    given: int = 0

    def __call__(self, task: Any) -> Any:
        """The batch."""
        if isinstance(task, Next):
            return self.next(task)
        if self.gathers:
            return self.dataset.gather(task.numbers)
        if self.batch_size is None:
            return self.collate(self.sample(int(task.numbers), task.seed))
        numbers = [int(n) for n in task.numbers]
        several: Any = getattr(self.dataset, "__getitems__", None)
        if several is not None:
            return self.collate(several(numbers))
        return self.collate([self.sample(n, task.seed) for n in numbers])

    def sample(self, number: Any, seed: int) -> Any:
        """A sample, with its own random numbers for transforms."""
        with keyed(seed, number):
            try:
                return self.dataset[number]
            except Exception as error:
                error.add_note(f"raised by sample {number} of {type(self.dataset).__name__}")
                raise

    def next(self, task: Next) -> Any:
        """The next batch of an iterable dataset."""
        if task.turn != self.turn:
            self.turn, self.given, self.running = task.turn, 0, iter(self.dataset)
        assert self.running is not None
        wanted = self.batch_size or 1
        samples: list[Any] = []
        while len(samples) < wanted:
            with keyed(task.seed, self.given):
                try:
                    samples.append(next(self.running))
                except StopIteration:
                    break
            self.given += 1
        if not samples or (self.drop_last and len(samples) < wanted):
            return End.ENDED
        if task.drop:
            return None
        return self.collate(samples if self.batch_size is not None else samples[0])


class Start:
    """The setup of a worker process; spawned processes get it pickled."""

    def __init__(self, fetcher: Fetcher, count: int, seed: int, init: Any) -> None:
        self.fetcher, self.count, self.seed, self.init = fetcher, count, seed, init

    def __call__(self, number: int) -> Fetcher:
        """Seed Python's and NumPy's random numbers, and call the user's function."""
        seed = mix(self.seed, number)
        random.seed(seed)
        np.random.seed(seed % 2**32)
        _current.append(WorkerInfo(number, self.count, seed, self.fetcher.dataset))
        if self.init is not None:
            self.init(number)
        return self.fetcher


def reduce(obj: Any) -> Any:
    """How tensors are sent between processes: as arrays."""
    if isinstance(obj, Handle):
        tracked: Any = obj
        return _tensor, (tracked.detach().numpy(),)
    return NotImplemented


def _tensor(array: Any) -> Any:
    return wrap(leaf(array))

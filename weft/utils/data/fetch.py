"""Fetching of batches, by the loader itself or by its workers."""

from __future__ import annotations

import enum
import hashlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from weft.eager.tensor.dispatch import leaf, wrap
from weft.eager.tensor.generator import DrawnApart, default_generator
from weft.eager.tensor.handle import Handle
from weft.pipeline.call import keyed
from weft.utils.data.dataset import gathered, gets_several

__all__ = ["WorkerInfo", "get_worker_info"]


class WorkerInfo(NamedTuple):
    """Information about this worker process.

    Attributes:
        id: its number, from 0 on.
        num_workers: the number of workers.
        seed: of what it draws.
        dataset: its copy of the dataset.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


_current: list[WorkerInfo] = []


def get_worker_info() -> WorkerInfo | None:
    """In a worker: its index, the number of workers, its seed, its dataset. None elsewhere."""
    return _current[-1] if _current else None


class Numbered(NamedTuple):
    """A task: the samples with these keys, or one sample if batching is off.

    Keys are what a sampler yields: integers as a rule, but a dataset may take others.
    """

    keys: Any  # an array if they are known to be integers
    seed: int
    number: int = 0  # of the batch in the epoch


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
            numbers = np.asarray(task.keys)
            if numbers.dtype.kind in "iu":
                return gathered(self.dataset, numbers)
        keys = task.keys.tolist() if isinstance(task.keys, np.ndarray) else task.keys
        if self.batch_size is None:
            return self.collate(self.sample(keys, task, 0))
        if gets_several(self.dataset):
            with keyed(task.seed, task.number, _word(keys[:1])):
                return self.collate(self.dataset.__getitems__(keys))
        return self.collate([self.sample(key, task, i) for i, key in enumerate(keys)])

    def sample(self, key: Any, task: Numbered, i: int) -> Any:
        """A sample, with its own random numbers for transforms."""
        with keyed(task.seed, task.number, i, _word(key)):
            try:
                return self.dataset[key]
            except Exception as error:
                error.add_note(f"raised by sample {key} of {type(self.dataset).__name__}")
                raise

    def next(self, task: Next) -> Any:
        """The next batch of an iterable dataset."""
        if task.turn != self.turn:
            self.turn, self.given, self.running = task.turn, 0, iter(self.dataset)
        assert self.running is not None
        wanted, info = self.batch_size or 1, get_worker_info()
        first, count = (0, 1) if info is None else (info.id, info.num_workers)
        samples: list[Any] = []
        while len(samples) < wanted:
            with keyed(task.seed, self.given * count + first):
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


def _word(key: Any) -> int:
    """A number that stands for a key: itself, or a digest that is the same in all processes.

    Random numbers are keyed by a sample's place, as a key may come twice in an epoch, and by its
    key, as ranks have equal places.
    """
    if isinstance(key, int):
        return key
    digest = hashlib.blake2b(repr(key).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


class Start:
    """The setup of a worker process; spawned processes get it pickled."""

    def __init__(self, fetcher: Fetcher, count: int, seed: int, init: Any) -> None:
        self.fetcher, self.count, self.seed, self.init = fetcher, count, seed, init

    def __call__(self, number: int) -> Fetcher:
        """Seed all random numbers of the process, and call the user's function."""
        seed = self.seed + number
        default_generator.manual_seed(seed)
        random.seed(seed)
        np.random.seed(np.random.SeedSequence([number, self.seed]).generate_state(4))
        _current.append(WorkerInfo(number, self.count, seed, self.fetcher.dataset))
        if self.init is not None:
            self.init(number)
        return self.fetcher


@dataclass
class DrawingApart:
    """A fetcher for threads, which draw each batch's random numbers from a stream of its own."""

    fetcher: Fetcher
    seed: int

    def __call__(self, number: int, task: Any) -> Any:
        """The batch with this number in the epoch."""
        with DrawnApart(self.seed, number):
            return self.fetcher(task)


def reduce(obj: Any) -> Any:
    """How tensors are sent between processes: as arrays."""
    if isinstance(obj, Handle):
        tracked: Any = obj
        return _tensor, (tracked.detach().numpy(),)
    return NotImplemented


def _tensor(array: Any) -> Any:
    return wrap(leaf(array))

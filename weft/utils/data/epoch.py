"""One epoch of a loader: in this thread, by threads or by processes."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from weft.eager.tensor.generator import default_generator
from weft.errors import ArgumentError
from weft.pipeline.process import Failure, Pool
from weft.pipeline.worker import Task, Workers
from weft.utils.data.fetch import End, Fetcher, Next, Numbered
from weft.utils.data.sampler import BatchSampler, OrderSampler, SequentialSampler

VERSION: Final = 1
THREAD: Final = "thread"


class _Run:
    """The producer of an epoch's batches; it has no reference to the `Pass`, with which it ends.

    Args:
        given: the number of batches to skip.
        keeps: whether the dataset restores its own position.
    """

    def __init__(self, loader: Any, seed: int, given: int, keeps: bool) -> None:
        self.loader, self.seed, self.given, self.keeps = loader, seed, given, keeps

    def start(self) -> Iterator[Any]:
        """Batches, and errors as `Failure`."""
        loader = self.loader
        if not loader.num_workers:
            return self._here(loader.fetcher())
        if loader.multiprocessing_context == THREAD:
            return self._threads(loader.fetcher())
        return self._processes()

    def _tasks(self) -> Iterator[Any]:
        """The tasks from the current position on."""
        loader = self.loader
        sampler, batches = loader.sampler, loader.batch_sampler
        if isinstance(sampler, OrderSampler) and type(batches) in (BatchSampler, type(None)):
            yield from self._ordered(sampler, 1 if batches is None else batches.batch_size)
            return
        for number, numbers in enumerate(batches if batches is not None else sampler):
            if number >= self.given:
                yield Numbered(numbers, self.seed)

    def _ordered(self, sampler: OrderSampler, size: int) -> Iterator[Any]:
        count, drop = len(sampler), self.loader.drop_last
        for start in range(self.given * size, count, size):
            places = np.arange(start, min(start + size, count))
            if drop and len(places) < size:
                return
            numbers = sampler.take(places, self.seed)
            single = self.loader.batch_sampler is None
            yield Numbered(numbers[0] if single else numbers, self.seed)

    def _here(self, fetch: Fetcher) -> Iterator[Any]:
        if self.loader.iterable:
            tasks = self._nexts(0 if self.keeps else self.given)
        else:
            tasks = self._tasks()
        for task in tasks:
            try:
                batch = fetch(task)
            except Exception as error:
                batch = Failure(error)
            if batch is End.ENDED:
                return
            if not (isinstance(task, Next) and task.drop):
                yield batch

    def _nexts(self, dropped: int) -> Iterator[Next]:
        turn = self.loader.turn()
        while True:
            yield Next(turn, self.seed, dropped > 0)
            dropped -= 1

    def _threads(self, fetch: Fetcher) -> Iterator[Any]:
        loader = self.loader
        if loader.iterable:
            raise ArgumentError("DataLoader: threads need a dataset with indices, not an iterable")
        workers = Workers(loader.num_workers, "loader")
        waiting: deque[Task] = deque()
        tasks = self._tasks()
        try:
            while True:
                for task in tasks:
                    waiting.append(Task(functools.partial(fetch, task)))
                    workers.submit(waiting[-1])
                    if len(waiting) >= loader.num_workers * loader.prefetch_factor:
                        break
                if not waiting:
                    return
                waiting[0].wait()
                done = waiting.popleft()
                failed = isinstance(done.error, Exception)
                yield Failure(done.error) if failed else done.value()  # pyright: ignore
        finally:
            workers.close()

    def _processes(self) -> Iterator[Any]:
        loader = self.loader
        pool = loader.pool(self.seed)
        whole = False
        try:
            if loader.iterable:
                yield from self._streams(pool)
            else:
                yield from pool.map(self._tasks(), loader.prefetch_factor, loader.timeout)
            whole = True
        finally:
            if not loader.persistent_workers or (loader.iterable and not whole):
                pool.close()

    def _streams(self, pool: Pool) -> Iterator[Any]:
        """Batches of workers that each iterate their own copy, in turn until all have ended."""
        loader, turn = self.loader, self.loader.turn()
        live = deque(pool.workers)
        dropped = self.given
        for _ in range(loader.prefetch_factor):
            for worker in live:
                worker.send(Next(turn, self.seed, False))
        while live:
            worker = live.popleft()
            try:
                batch = worker.receive(loader.timeout)
            except Exception as error:
                if not worker.process.is_alive():
                    raise
                batch = Failure(error)
            if batch is End.ENDED:
                for _ in range(loader.prefetch_factor - 1):  # tasks that were queued beyond the end
                    worker.receive(loader.timeout)
                continue
            worker.send(Next(turn, self.seed, False))
            live.append(worker)
            if dropped:
                dropped -= 1
            else:
                yield batch


class Pass:
    """An epoch of a loader."""

    def __init__(self, loader: Any, state: dict[str, Any] | None) -> None:
        self.loader = loader
        self.given = 0
        self.ended = False
        self.seed: int
        self.sampler_state: Any = None
        self.own_state: Any = None  # whether the dataset keeps its own state
        if state is not None and state["seed"] is not None:
            self.seed, self.given = state["seed"], state["given"]
            self._restore(state)
        else:
            self.seed = self._fresh_seed()
            sampler = loader.batch_sampler or loader.sampler
            if hasattr(sampler, "state_dict"):
                self.sampler_state = sampler.state_dict()
        run = _Run(loader, self.seed, self.given, self.own_state is not None)
        self._batches = run.start()

    def _fresh_seed(self) -> int:
        sampler = self.loader.sampler
        if isinstance(sampler, OrderSampler) and not isinstance(sampler, SequentialSampler):
            return sampler.fresh_seed()
        return (self.loader.generator or default_generator).next()

    def _restore(self, state: dict[str, Any]) -> None:
        sampler = self.loader.batch_sampler or self.loader.sampler
        if state.get("sampler") is not None:
            self.sampler_state = state["sampler"]
            sampler.load_state_dict(state["sampler"])
        if state.get("dataset") is not None:
            self.loader.dataset.load_state_dict(state["dataset"])
            self.own_state = state["dataset"]

    def __iter__(self) -> Pass:
        return self

    def __len__(self) -> int:
        return len(self.loader)

    def __next__(self) -> Any:
        try:
            batch = next(self._batches)
        except StopIteration:
            self.ended = True
            raise
        self.given += 1
        if isinstance(batch, Failure):
            raise batch.error
        return batch

    def state_dict(self) -> dict[str, Any]:
        """See `DataLoader.state_dict`."""
        state = {"version": VERSION, "given": self.given, "seed": self.seed}
        if self.sampler_state is not None:
            state["sampler"] = self.sampler_state
        loader = self.loader
        if loader.iterable and not loader.num_workers and hasattr(loader.dataset, "state_dict"):
            state["dataset"] = loader.dataset.state_dict()
        return state

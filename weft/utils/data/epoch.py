"""One epoch of a loader: in this thread, by threads or by processes."""

from __future__ import annotations

import functools
import itertools
from collections import deque
from collections.abc import Callable, Collection, Iterator
from queue import Empty, SimpleQueue
from typing import Any, Final

import numpy as np

from weft.eager.record.pending.state import compute_all_pending
from weft.eager.tensor.generator import default_generator, splitmix64
from weft.errors import ArgumentError, StateError, WorkerError
from weft.pipeline.process import Failure, Pool, Worker, late
from weft.pipeline.worker import Task, Workers
from weft.utils.data.fetch import DrawingApart, End, Fetcher, Next, Numbered
from weft.utils.data.sampler import BatchSampler, OrderSampler, RandomSampler, SequentialSampler

VERSION: Final = 1
THREAD: Final = "thread"


class _Run:
    """The producer of an epoch's batches; it has no reference to the `Pass`, with which it ends.

    Args:
        base: the seed of the random numbers that workers draw.
        given: the number of batches to skip.
        beyond: the numbers of further batches to skip.
        keeps: whether the dataset restores its own position.
    """

    def __init__(
        self, loader: Any, seed: int, base: int, given: int, beyond: Collection[int], keeps: bool
    ) -> None:
        self.loader, self.seed, self.base = loader, seed, base
        self.given, self.beyond, self.keeps = given, frozenset(beyond), keeps

    def start(self) -> Iterator[tuple[int, Any]]:
        """Batches and their numbers, and errors as `Failure`."""
        loader = self.loader
        if not loader.num_workers:
            return self._here(loader.fetcher())
        compute_all_pending()  # instead of in each worker, and in each epoch again
        if loader.start_method == THREAD:
            return self._threads(loader.fetcher())
        return self._processes()

    def _tasks(self) -> Iterator[tuple[int, Any]]:
        """The tasks from the current position on, and their numbers."""
        loader = self.loader
        sampler, batches = _sampler_of(loader), loader.batch_sampler
        if _ordered_by_place(sampler):
            yield from self._ordered(sampler, 1 if batches is None else batches.batch_size)
            return
        if _is_drawn(sampler):
            sampler.planned = self.seed
        for number, keys in enumerate(batches if batches is not None else sampler):
            if number >= self.given and number not in self.beyond:
                yield number, Numbered(keys, self.seed, number)

    def _ordered(self, sampler: OrderSampler, size: int) -> Iterator[tuple[int, Any]]:
        count, batches = len(sampler), self.loader.batch_sampler
        drop, single = batches is not None and batches.drop_last, batches is None
        for start in range(self.given * size, count, size):
            places = np.arange(start, min(start + size, count))
            if drop and len(places) < size:
                return
            if start // size not in self.beyond:
                keys, number = sampler.take(places, self.seed), start // size
                yield number, Numbered(_key(keys[0]) if single else keys, self.seed, number)

    def _here(self, fetch: Fetcher) -> Iterator[tuple[int, Any]]:
        if self.loader.iterable:
            tasks = self._nexts(0 if self.keeps else self.given)
        else:
            tasks = self._tasks()
        for number, task in tasks:
            try:
                batch = fetch(task)
            except Exception as error:
                batch = Failure(error)
            if batch is End.ENDED:
                return
            if not (isinstance(task, Next) and task.drop):
                yield number, batch

    def _nexts(self, dropped: int) -> Iterator[tuple[int, Next]]:
        turn = self.loader.turn()
        for number in itertools.count(self.given - dropped):
            yield number, Next(turn, self.seed, number < self.given)

    def _threads(self, fetch: Fetcher) -> Iterator[tuple[int, Any]]:
        loader = self.loader
        if loader.iterable:
            raise ArgumentError("DataLoader: threads need a dataset with indices, not an iterable")
        calls, tasks = DrawingApart(fetch, self.base), self._tasks()
        workers, done = Workers(loader.num_workers, "loader"), SimpleQueue[int]()
        waiting: dict[int, Task] = {}
        try:
            while True:
                for number, task in tasks:
                    call = functools.partial(calls, number, task)
                    waiting[number] = Task(functools.partial(_noted, call, number, done))
                    workers.submit(waiting[number])
                    if len(waiting) >= loader.num_workers * loader.ahead:
                        break
                if not waiting:
                    return
                number = next(iter(waiting)) if loader.in_order else _arrived(done, loader.timeout)
                if not waiting[number].wait(loader.timeout):
                    raise WorkerError(late("a thread", loader.timeout))
                finished = waiting.pop(number)
                failed = isinstance(finished.error, Exception)
                yield number, Failure(finished.error) if failed else finished.value()  # pyright: ignore
        finally:
            workers.close()

    def _processes(self) -> Iterator[tuple[int, Any]]:
        loader = self.loader
        pool = loader.pool(self.base)
        whole = False
        try:
            if loader.iterable:
                yield from self._streams(pool)
            else:
                yield from pool.map(self._tasks(), loader.ahead, loader.timeout, loader.in_order)
            whole = True
        finally:
            if not loader.persistent_workers or (loader.iterable and not whole):
                pool.close()

    def _streams(self, pool: Pool) -> Iterator[tuple[int, Any]]:
        """Batches of workers that each iterate their own copy, in turn until all have ended.

        If the loader is not `in_order`, whichever has a batch is next.
        """
        loader, task = self.loader, Next(self.loader.turn(), self.seed, False)
        live, number = deque(pool.workers), 0
        for _ in range(loader.ahead):
            for worker in live:
                worker.send(task)
        while live:
            among = list(live)[:1] if loader.in_order else list(live)
            worker = pool.ready(among, loader.timeout)
            live.remove(worker)
            batch = _taken(worker)
            if batch is End.ENDED:
                while worker.tasks:  # that were queued beyond the end
                    _taken(pool.ready([worker], loader.timeout))
                continue
            worker.send(task)
            live.append(worker)
            if number >= self.given:
                yield number, batch
            number += 1


def _sampler_of(loader: Any) -> Any:
    """What decides the order: the batch sampler, or the sampler that it divides in plain batches.

    That of a batch sampler of the user's is not the loader's.
    """
    batches = loader.batch_sampler
    if batches is None:
        return loader.sampler
    return batches.sampler if type(batches) is BatchSampler else batches


def _ordered_by_place(sampler: Any) -> bool:
    """Whether `take` gives the order; a subclass may have an `__iter__` of its own."""
    return isinstance(sampler, OrderSampler) and type(sampler).__iter__ is OrderSampler.__iter__


def _is_drawn(sampler: Any) -> bool:
    """Whether a generator gives the seed of each pass, also where a subclass asks its base."""
    kind = type(sampler)
    return isinstance(sampler, OrderSampler) and kind.fresh_seed is OrderSampler.fresh_seed


def _key(key: Any) -> Any:
    return key.item() if isinstance(key, np.generic) else key


def _taken(worker: Worker) -> Any:
    """A worker's batch; errors as `Failure`."""
    try:
        return worker.take()[1]
    except Exception as error:
        if not worker.process.is_alive():
            raise
        return Failure(error)


def _noted(call: Callable[[], Any], number: int, done: SimpleQueue[int]) -> Any:
    """Make a call, and note that it is done."""
    try:
        return call()
    finally:
        done.put(number)


def _arrived(done: SimpleQueue[int], timeout: float) -> int:
    """The number of a batch that is done."""
    try:
        return done.get(timeout=timeout or None)
    except Empty:
        raise WorkerError(late("a thread", timeout)) from None


class Pass:
    """An epoch of a loader."""

    def __init__(self, loader: Any, state: dict[str, Any] | None) -> None:
        self.loader = loader
        self.given = 0  # batches, from the first one on
        self.beyond: set[int] = set()  # later batches that were given before earlier ones
        self.ended = False
        self.seed: int
        self.sampler_state: Any = None
        self.own_state: Any = None  # whether the dataset keeps its own state
        if state is not None and state["seed"] is not None:
            self.seed, self.given = state["seed"], state["given"]
            self.beyond = set(state.get("beyond", ()))
            self._restore(state)
            self.base = state.get("base", base_seed(self.seed))
        else:
            self.seed, self.base = self._fresh_seeds()
            sampler = loader.batch_sampler or loader.sampler
            if hasattr(sampler, "state_dict"):
                self.sampler_state = sampler.state_dict()
        keeps = self.own_state is not None
        run = _Run(loader, self.seed, self.base, self.given, self.beyond, keeps)
        self._batches = run.start()

    def _fresh_seeds(self) -> tuple[int, int]:
        """The seed of the order, and that of what workers draw, both from the generators."""
        sampler, own = _sampler_of(self.loader), self.loader.generator or default_generator
        known = _ordered_by_place(sampler) and not isinstance(sampler, SequentialSampler)
        if not (known or _is_drawn(sampler)):
            seed = own.next()
            return seed, base_seed(seed)
        seed = sampler.fresh_seed()
        drawn = isinstance(sampler, RandomSampler) and sampler.generator is self.loader.generator
        return seed, base_seed(seed if drawn else own.next())

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
            number, batch = next(self._batches)
        except StopIteration:
            self.ended = True
            raise
        self.beyond.add(number)
        while self.given in self.beyond:
            self.beyond.remove(self.given)
            self.given += 1
        if isinstance(batch, Failure):
            raise batch.error
        return batch

    def state_dict(self) -> dict[str, Any]:
        """See `DataLoader.state_dict`."""
        loader = self.loader
        if loader.iterable and loader.num_workers and not loader.in_order:
            raise StateError(
                "DataLoader.state_dict: the position of an iterable dataset needs workers in "
                "turn; make the loader with in_order=True"
            )
        state = {"version": VERSION, "given": self.given, "seed": self.seed, "base": self.base}
        if self.beyond:
            state["beyond"] = sorted(self.beyond)
        if self.sampler_state is not None:
            state["sampler"] = self.sampler_state
        if loader.iterable and not loader.num_workers and hasattr(loader.dataset, "state_dict"):
            state["dataset"] = loader.dataset.state_dict()
        return state


def base_seed(drawn: int) -> int:
    """The seed to which workers add their index, far from those of other epochs."""
    return splitmix64(drawn) >> 1

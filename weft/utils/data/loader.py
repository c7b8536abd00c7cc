"""`DataLoader`: batches of a dataset, made here or by worker processes or threads."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from multiprocessing import get_all_start_methods
from multiprocessing.context import BaseContext
from typing import Any, Final, Generic, TypeVar

from weft.eager.tensor.device import check_device
from weft.eager.tensor.generator import Generator
from weft.errors import ArgumentError, StateError
from weft.pipeline.process import Pool, Work
from weft.utils.data.collate import default_collate, default_convert
from weft.utils.data.dataset import IterableDataset, can_gather
from weft.utils.data.epoch import THREAD, VERSION, Pass
from weft.utils.data.fetch import Fetcher, Start, reduce
from weft.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler

AHEAD: Final = 2  # batches waiting for each worker, as in PyTorch
_FIXED: Final = {
    "batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers",
}  # fmt: skip
T = TypeVar("T", covariant=True)


class DataLoader(Generic[T]):
    """Batches of a dataset; each iteration over it is an epoch.

    Args:
        dataset: has `__getitem__` and `__len__`, or is an `IterableDataset`. A tensor's samples are
            its rows. If it has `__getitems__`, that is asked for the samples of a whole batch.
        batch_size: None yields single samples.
        shuffle: use a `RandomSampler`; otherwise in order, or as `sampler` or `batch_sampler` say.
        sampler: gives the order: indices of samples. Excludes `shuffle`.
        batch_sampler: gives lists of indices, one for each batch. Excludes `batch_size`, `shuffle`,
            `sampler` and `drop_last`.
        num_workers: the number of worker processes; none by default.
        collate_fn: makes a batch from a list of samples; `default_collate` by default.
        pin_memory: accepted; there is no other memory to copy to.
        drop_last: whether a last batch of fewer samples is left out.
        timeout: seconds to wait for a worker's batch; 0 waits forever.
        worker_init_fn: called in each worker with its index.
        multiprocessing_context: how processes start ("fork", "spawn", "forkserver"), or "thread"
            for threads, which share the dataset and need no pickling.
        generator: for the order and for the seeds of workers; the global one by default.
        prefetch_factor: queued batches per worker; 2 by default.
        persistent_workers: whether processes are kept between epochs.
        pin_memory_device: a CPU, or nothing.
        in_order: whether batches of workers come in the order of the sampler; otherwise each comes
            as soon as it is ready.

    Raises:
        ArgumentError: the arguments exclude each other.
        WorkerError: while iterating, a worker died or took longer than `timeout`.

    >>> loader = DataLoader(range(10), batch_size=4)
    >>> [batch.tolist() for batch in loader]
    [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    """

    def __init__(
        self, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = None,
        sampler: Any = None, batch_sampler: Any = None, num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None, pin_memory: bool = False,
        drop_last: bool = False, timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None, multiprocessing_context: Any = None,
        generator: Generator | None = None, *, prefetch_factor: int | None = None,
        persistent_workers: bool = False, pin_memory_device: str = "", in_order: bool = True,
    ) -> None:  # fmt: skip
        self.dataset = dataset
        self.iterable = isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__")
        self.num_workers, self.timeout = num_workers, timeout
        self.pin_memory, self.drop_last = pin_memory, drop_last
        check_device(pin_memory_device or None)
        self.pin_memory_device, self.in_order = pin_memory_device, in_order
        self.worker_init_fn = worker_init_fn
        self.generator = generator
        self.prefetch_factor = prefetch_factor
        if prefetch_factor is None and num_workers:
            self.prefetch_factor = AHEAD
        self.persistent_workers = persistent_workers
        self.multiprocessing_context = multiprocessing_context
        self.batch_size = None if batch_sampler is not None else batch_size
        self._refuse(shuffle, sampler, batch_sampler, batch_size)
        self.sampler: Any = sampler
        if sampler is None and not self.iterable:
            self.sampler = (
                RandomSampler(dataset, generator=generator)
                if shuffle
                else SequentialSampler(dataset)
            )
        self.batch_sampler: Any = batch_sampler
        if batch_sampler is None and batch_size is not None and not self.iterable:
            self.batch_sampler = BatchSampler(self.sampler, batch_size, drop_last)
        default = default_convert if self._single else default_collate
        self.collate_fn: Callable[[Any], Any] = default if collate_fn is None else collate_fn
        self._pool: tuple[Any, Pool] | None = None  # with what it was started with
        self._turns = 0
        self._pass: weakref.ref[Pass] | None = None
        self._waiting: dict[str, Any] | None = None
        self._made = True

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and "_made" in self.__dict__:
            raise ArgumentError(
                f"DataLoader: {name} cannot be set after the loader is made; make another one"
            )
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self) -> Any:
        """How processes start: a name, a context of `multiprocessing`, or None."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None and not self.num_workers:
            text = "multiprocessing_context needs num_workers > 0, got 0"
            raise ArgumentError(f"DataLoader: {text}")
        self._context = context
        method, known = self.start_method, (*get_all_start_methods(), THREAD)
        if method is not None and method not in known:
            text = f"expected multiprocessing_context to be one of {', '.join(known)}"
            raise ArgumentError(f"DataLoader: {text}, got {context!r}")

    @property
    def start_method(self) -> Any:
        """The name of the context."""
        context = self._context
        return context.get_start_method() if isinstance(context, BaseContext) else context

    @property
    def ahead(self) -> int:
        """How many batches each worker prepares."""
        return self.prefetch_factor or AHEAD

    @property
    def _single(self) -> bool:
        return self.batch_size is None and (self.iterable or self.batch_sampler is None)

    def _refuse(self, shuffle: bool | None, sampler: Any, batches: Any, size: int | None) -> None:
        def expect(holds: bool, text: str) -> None:
            if not holds:
                raise ArgumentError(f"DataLoader: {text}")

        workers, ahead = self.num_workers, self.prefetch_factor
        expect(workers >= 0, f"expected num_workers >= 0, got {workers}")
        expect(self.timeout >= 0, f"expected timeout >= 0, got {self.timeout}")
        expect(size is None or size > 0, f"expected batch_size > 0, got {size}")
        expect(workers > 0 or ahead is None, "prefetch_factor needs num_workers > 0, got 0")
        expect(ahead is None or ahead > 0, f"expected prefetch_factor > 0, got {ahead}")
        expect(not (shuffle and sampler is not None), "expected shuffle or sampler, got both")
        expect(
            batches is None or not (size != 1 or shuffle or sampler is not None or self.drop_last),
            "batch_sampler excludes batch_size, shuffle, sampler and drop_last",
        )
        expect(size is not None or not self.drop_last, "drop_last needs a batch_size")
        expect(
            not self.iterable or (not shuffle and sampler is None and batches is None),
            "an iterable dataset has an order of its own: no shuffle, no samplers",
        )
        expect(
            workers > 0 or not self.persistent_workers, "persistent_workers needs num_workers > 0"
        )

    def __len__(self) -> int:
        """The number of batches per epoch.

        Raises:
            TypeError: the iterable dataset has no length.
        """
        if self.batch_sampler is not None:
            return len(self.batch_sampler)
        if not self.iterable:
            return len(self.sampler)
        count, size = len(self.dataset), self.batch_size or 1
        return count // size if self.drop_last else -(-count // size)

    def __iter__(self) -> Pass:
        if self.timeout and not self.num_workers:
            raise ArgumentError("DataLoader: timeout needs num_workers > 0, got 0")
        state, self._waiting = self._waiting, None
        running = Pass(self, state)
        self._pass = weakref.ref(running)
        return running

    def state_dict(self) -> dict[str, Any]:
        """The position in the running epoch; between epochs, the start of a new one.

        Batches that workers made ahead and that were not used are made again. Samplers and datasets
        with `state_dict` save their own state; others are read again up to their position.
        """
        if self._waiting is not None:
            return self._waiting
        running = self._pass() if self._pass is not None else None
        if running is None or running.ended:
            return {"version": VERSION, "given": 0, "seed": None}
        return running.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Let the next epoch resume where `state_dict` was called.

        Raises:
            StateError: it is not a loader's state, or from a newer version.
        """
        if not isinstance(state, dict) or "given" not in state:  # pyright: ignore
            raise StateError(f"load_state_dict: expected a loader's state, got {state!r:.80}")
        if state["version"] > VERSION:
            text = f"version {VERSION} or older, got version {state['version']}"
            raise StateError(f"load_state_dict: expected {text}; a newer Weft reads it")
        self._waiting = state

    def fetcher(self) -> Fetcher:
        """The fetcher of batches."""
        size = None if self._single else (self.batch_size or 1)
        gathers = (
            can_gather(self.dataset) and self.collate_fn is default_collate and not self._single
        )
        return Fetcher(self.dataset, self.collate_fn, size, self.drop_last, gathers)

    def pool(self, seed: int) -> Pool:
        """Worker processes; persistent ones are reused, and go on with their random numbers."""
        if self._pool is not None:
            settings, pool = self._pool
            if pool.usable and settings == self._settings():
                return pool
            pool.close()
        start = Start(self.fetcher(), self.num_workers, seed, self.worker_init_fn)
        keep = self.persistent_workers
        pool = Pool(self.num_workers, Work(start, reduce), self.start_method, keep)
        self._pool = (self._settings(), pool) if keep else None
        return pool

    def _settings(self) -> tuple[Any, ...]:
        """What workers keep: with other settings, others are started."""
        return self.num_workers, self.start_method, self.collate_fn, self.worker_init_fn

    def turn(self) -> int:
        """A seed for each pass."""
        self._turns += 1
        return self._turns

"""`DataLoader`: batches of a dataset, made here or by worker processes or threads."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Final

from weft.eager.tensor.generator import Generator
from weft.errors import ArgumentError, StateError
from weft.pipeline.process import Pool, Work
from weft.utils.data.collate import default_collate, default_convert
from weft.utils.data.dataset import IterableDataset, can_gather
from weft.utils.data.epoch import VERSION, Pass
from weft.utils.data.fetch import Fetcher, Start, reduce
from weft.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler

AHEAD: Final = 2  # batches waiting for each worker, as in PyTorch


class DataLoader:
    """Batches of a dataset; each iteration over it is an epoch.

    Args:
        dataset: has `__getitem__` and `__len__`, or is an `IterableDataset`. If it has
            `gather(indices)` and `collate_fn` is the default, whole batches are gathered at once,
            as for `TensorDataset`.
        batch_size: None yields single samples.
        shuffle: use a `RandomSampler`; otherwise in order, or as `sampler` or `batch_sampler` say.
        num_workers: the number of worker processes; none by default.
        collate_fn: makes a batch from a list of samples; `default_collate` by default.
        pin_memory: accepted; there is no other memory to copy to.
        timeout: seconds to wait for a worker's batch; 0 waits forever.
        worker_init_fn: called in each worker with its index.
        multiprocessing_context: how processes start ("fork", "spawn", "forkserver"), or "thread"
            for threads, which share the dataset and need no pickling.
        generator: for the order; the global one by default.
        prefetch_factor: queued batches per worker; 2 by default.
        persistent_workers: whether processes are kept between epochs.

    Raises:
        ArgumentError: the arguments exclude each other.
        WorkerError: while iterating, a worker died or took longer than `timeout`.

    >>> loader = DataLoader(range(10), batch_size=4)
    >>> [batch.tolist() for batch in loader]
    [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        del pin_memory_device, in_order
        self.dataset = dataset
        self.iterable = isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__")
        self.num_workers, self.timeout = num_workers, timeout
        self.pin_memory, self.drop_last = pin_memory, drop_last
        self.worker_init_fn = worker_init_fn
        self.generator = generator
        self.prefetch_factor = AHEAD if prefetch_factor is None else prefetch_factor
        self.persistent_workers = persistent_workers
        context = multiprocessing_context
        self.multiprocessing_context: str | None = getattr(context, "_name", context)
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
        self._pool: Pool | None = None
        self._turns = 0
        self._pass: weakref.ref[Pass] | None = None
        self._waiting: dict[str, Any] | None = None

    @property
    def _single(self) -> bool:
        return self.batch_size is None and (self.iterable or self.batch_sampler is None)

    def _refuse(self, shuffle: bool | None, sampler: Any, batches: Any, size: int | None) -> None:
        def expect(holds: bool, text: str) -> None:
            if not holds:
                raise ArgumentError(f"DataLoader: {text}")

        expect(self.num_workers >= 0, f"expected num_workers >= 0, got {self.num_workers}")
        expect(self.timeout >= 0, f"expected timeout >= 0, got {self.timeout}")
        expect(size is None or size > 0, f"expected batch_size > 0, got {size}")
        expect(
            self.prefetch_factor > 0, f"expected prefetch_factor > 0, got {self.prefetch_factor}"
        )
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
            self.num_workers > 0 or not self.persistent_workers,
            "persistent_workers needs num_workers > 0",
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
        """Worker processes; persistent ones are reused."""
        if self._pool is not None and self._pool.usable:
            return self._pool
        start = Start(self.fetcher(), self.num_workers, seed, self.worker_init_fn)
        work = Work(start, reduce)
        keep = self.persistent_workers
        pool = Pool(self.num_workers, work, self.multiprocessing_context, keep)
        self._pool = pool if keep else None
        return pool

    def turn(self) -> int:
        """A seed for each pass."""
        self._turns += 1
        return self._turns

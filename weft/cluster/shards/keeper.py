"""Who has which shard: leases that end, and reports that count once."""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from weft.errors import ArgumentError, ClosedError, DataError

PATIENCE: Final = 1.0
"""Seconds that `take` waits at most, so that whoever asks can be interrupted in between."""


@dataclass(frozen=True)
class ShardSpec:
    """What is given out; all that ask for it must agree.

    Attributes:
        name: all workers name it alike.
        count: the number of shards of an epoch.
        epochs: how often each is given out; 0 for without end.
        seed: of the order; `None` for ascending.
        timeout: seconds after which a shard that was not renewed is given to another.
    """

    name: str
    count: int
    epochs: int = 1
    seed: int | None = None
    timeout: float = 60.0

    def __post_init__(self) -> None:
        for name, least in (("count", 1), ("epochs", 0)):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < least:
                raise ArgumentError.here(
                    f"shards: expected {name} of at least {least}, got {getattr(self, name)!r}"
                )
        if not self.timeout > 0:
            raise ArgumentError.here(f"shards: expected a timeout above 0, got {self.timeout!r}")


class Lease(NamedTuple):
    """A shard that a worker has for some time.

    Attributes:
        number: differs for each time that a shard is given out.
        epoch: of the shard, from 0.
        shard: its number, from 0.
    """

    number: int
    epoch: int
    shard: int


@dataclass
class _Given:
    lease: Lease
    worker: str
    deadline: float


class ShardKeeper:
    """Gives out shards, each to one worker at a time, until it is reported done.

    Shards of the next epoch are given out while some of the last one are still worked on: nobody
    waits for a slow worker but at the very end.

    Args:
        spec: what is given out.
        clock: seconds.
    """

    def __init__(self, spec: ShardSpec, clock: Callable[[], float] = time.monotonic) -> None:
        self.spec: Final = spec
        self._clock = clock
        self._changed = threading.Condition()
        self._waiting: deque[tuple[int, int]] = deque()  # (epoch, shard) that nobody has
        self._gone: set[str] = set()  # workers, of which some may still wait here
        self._given: dict[int, _Given] = {}
        self._numbers = itertools.count(1)
        self._begun = 0  # epochs whose shards were put in order
        self._done = 0
        self._by_worker: dict[str, int] = {}
        self._again = 0

    def take(self, worker: str, patience: float = PATIENCE) -> Lease | None:
        """A shard for a worker; `None` if there is none before the patience ends.

        Args:
            worker: its name.
            patience: seconds.

        Raises:
            ClosedError: the worker is gone.
        """
        end = self._clock() + patience
        with self._changed:
            while True:
                if worker in self._gone:
                    raise ClosedError(f"shards: {worker} is gone; it gets no more")
                lease = self._next(worker)
                left = end - self._clock()
                if lease is not None or left <= 0 or self._is_over():
                    return lease
                deadlines = [given.deadline for given in self._given.values()]
                self._changed.wait(max(0.0, min([end, *deadlines]) - self._clock()) + 1e-3)

    def is_over(self) -> bool:
        """Whether all shards of all epochs are done."""
        with self._changed:
            return self._is_over()

    def done(self, number: int) -> bool:
        """Reports that the shard of a lease is done.

        Returns:
            Whether it counts: not if the shard was given to another in the meantime.
        """
        with self._changed:
            given = self._given.pop(number, None)
            if given is None:
                return False
            self._done += 1
            self._by_worker[given.worker] = self._by_worker.get(given.worker, 0) + 1
            self._changed.notify_all()
            return True

    def renew(self, number: int) -> bool:
        """Lets a lease begin anew; whether the worker still has it."""
        with self._changed:
            given = self._given.get(number)
            if given is not None:
                given.deadline = self._clock() + self.spec.timeout
            return given is not None

    def give_back(self, worker: str, number: int | None = None) -> None:
        """A worker is gone, or does not do the shard of a lease: what it has is for others."""
        with self._changed:
            if number is None:
                self._gone.add(worker)
            for key, given in list(self._given.items()):
                if given.worker == worker and number in (None, key):
                    self._return(key)
            self._changed.notify_all()

    def report(self) -> dict[str, Any]:
        """How far it is: epochs begun, shards done, waiting and given out, and by worker."""
        with self._changed:
            held = [[g.worker, g.lease.epoch, g.lease.shard] for g in self._given.values()]
            return {
                "epochs": self._begun, "done": self._done, "waiting": len(self._waiting),
                "held": held, "again": self._again, "by_worker": dict(self._by_worker),
            }  # fmt: skip

    def state_dict(self) -> dict[str, Any]:
        """What is left to do, as plain values. Shards that are given out are not done."""
        with self._changed:
            held = sorted([(g.lease.epoch, g.lease.shard) for g in self._given.values()])
            rest = [list(pair) for pair in [*held, *self._waiting]]
            return {"spec": asdict(self.spec), "begun": self._begun, "done": self._done,
                    "rest": rest}  # fmt: skip

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from a state; all leases end.

        Raises:
            DataError: it is of other shards.
        """
        told = {key: state["spec"][key] for key in ("name", "count", "seed")}
        own = {key: getattr(self.spec, key) for key in told}
        if told != own:
            raise DataError(f"shards: expected the state of {own}, got that of {told}")
        with self._changed:
            self._given.clear()
            self._waiting = deque([(int(epoch), int(shard)) for epoch, shard in state["rest"]])
            self._begun, self._done = int(state["begun"]), int(state["done"])
            self._changed.notify_all()

    def _next(self, worker: str) -> Lease | None:
        now = self._clock()
        for number in [n for n, given in self._given.items() if given.deadline <= now]:
            self._return(number)
        if not self._waiting and (self._begun < self.spec.epochs or not self.spec.epochs):
            order = order_of(self.spec.count, self.spec.seed, self._begun)
            self._waiting.extend([(self._begun, shard) for shard in order])
            self._begun += 1
        if not self._waiting:
            return None
        lease = Lease(next(self._numbers), *self._waiting.popleft())
        self._given[lease.number] = _Given(lease, worker, now + self.spec.timeout)
        return lease

    def _return(self, number: int) -> None:
        lease = self._given.pop(number).lease
        self._waiting.appendleft((lease.epoch, lease.shard))
        self._again += 1

    def _is_over(self) -> bool:
        ended = 0 < self.spec.epochs <= self._begun
        return ended and not self._waiting and not self._given


def order_of(count: int, seed: int | None, epoch: int) -> list[int]:
    """The numbers 0 to count - 1: shuffled by the seed and the epoch, or as they are.

    They are sorted by a hash, so that the order is the same with every version of NumPy.

    >>> order_of(3, None, 7), sorted(order_of(3, 0, 7))
    ([0, 1, 2], [0, 1, 2])
    """
    if seed is None:
        return list(range(count))
    start = _mixed(_mixed(np.array([seed % (1 << 64)], np.uint64)) ^ np.uint64(epoch))
    keys = _mixed(start + np.arange(1, count + 1, dtype=np.uint64))
    return np.argsort(keys, kind="stable").tolist()


def _mixed(
    x: np.ndarray[tuple[int], np.dtype[np.uint64]],
) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """SplitMix64's finalizer (Steele, Lea and Flood, 2014)."""
    x = (x + np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))

"""`Shards`: pieces of a data set for the worker that is free."""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Protocol

from weft.cluster.rpc import Channel, Message, RpcOptions, connect
from weft.cluster.server import server_at
from weft.cluster.shards.keeper import Lease, ShardKeeper, ShardSpec
from weft.cluster.shards.service import KIND, asked
from weft.errors import ArgumentError

__all__ = ["Shard", "Shards"]

Items = int | Sequence[Any]


class Target(Protocol):
    """A server, Weft's or TensorFlow's."""

    @property
    def target(self) -> str:
        """Its address, as `grpc://host:port`."""
        ...


@dataclass(frozen=True)
class Shard:
    """A piece of a data set, which this worker has for some time.

    Attributes:
        epoch: from 0.
        number: of the shard, from 0.
        begin, end: the numbers of its first element, and behind its last.
        items: its elements, where `Shards` was given a list of them, such as names of files.
    """

    epoch: int
    number: int
    begin: int
    end: int
    items: tuple[Any, ...] = ()
    _lease: int = field(default=0, repr=False)
    _renew: Callable[[], bool] = field(default=lambda: True, repr=False, compare=False)

    def indices(self) -> range:
        """The numbers of its elements."""
        return range(self.begin, self.end)

    def renew(self) -> bool:
        """Lets the time begin anew; whether the worker still has the shard."""
        return self._renew()


class Shards:
    """Gives the elements of a data set, shard by shard, to whichever worker asks.

    All workers iterate over `Shards` of one name with the same arguments. A shard is done when the
    worker asks for the next one. If it does not come back before the timeout, or its connection
    ends, the shard is given to another, and a late report does not count: so each shard counts once
    in each epoch. Iteration ends when all shards of all epochs are done.

    Args:
        items: how many elements there are, or a list of them, such as names of files.
        size: the elements of a shard; the last shard may have fewer.
        name: of the shards, where a chief gives out several.
        epochs: how often each is given out; 0 for without end.
        shuffle: whether each epoch has an order of its own, by the seed.
        seed: of the order.
        timeout: seconds after which a shard that was not renewed is given to another. The
            iterators of elements renew it.
        chief: who gives them out: the address of a server, or the server; this process by default.
        options: of the connection.

    Example:
        >>> shards = Shards(10, size=4, shuffle=False)
        >>> [(shard.begin, shard.end) for shard in shards]
        [(0, 4), (4, 8), (8, 10)]
        >>> shards.report()["done"]
        3
        >>> sorted(Shards(["a", "b", "c"], seed=1).elements())
        ['a', 'b', 'c']
    """

    def __init__(
        self, items: Items, size: int = 1, *, name: str = "train", epochs: int = 1,
        shuffle: bool = True, seed: int = 0, timeout: float = 60.0,
        chief: str | Target | None = None, options: RpcOptions | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(size, int) or size < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError.here(f"Shards: expected a size of at least 1, got {size!r}")
        self._items = None if isinstance(items, int) else tuple(items)
        self._size = size
        self._total = items if isinstance(items, int) else len(items)
        if self._total < 1:
            raise ArgumentError.here(f"Shards: expected at least one element, got {self._total}")
        count = -(-self._total // size)
        self.spec: Final = ShardSpec(name, count, epochs, seed if shuffle else None, timeout)
        self.worker: Final = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self._chief = _chief(chief, self.spec, self.worker, options or RpcOptions())

    def __iter__(self) -> Iterator[Shard]:
        """The shards that this worker gets."""
        done = 0
        while (lease := self._take(done)) is not None:
            shard = self._shard(lease)
            done = 0
            try:
                yield shard
                done = lease.number
            finally:
                if not done:  # the loop was left, or raised
                    self._chief.ask("give back", lease=lease.number)

    def elements(self, source: Any = None) -> Iterator[Any]:
        """The elements of the shards that this worker gets; each renews its shard now and then.

        Args:
            source: what they are elements of, by number; by default the list that `Shards` was
                given, or the numbers.
        """
        chosen = self._items if source is None else source
        pause = self.spec.timeout / 4
        for shard in self:
            renewed = time.monotonic()
            for number in shard.indices():
                yield number if chosen is None else chosen[number]
                if time.monotonic() - renewed > pause:
                    shard.renew()
                    renewed = time.monotonic()

    def report(self) -> dict[str, Any]:
        """How far it is: epochs begun, shards done, waiting, held, given again, and by worker."""
        return self._chief.ask("report")

    def state_dict(self) -> dict[str, Any]:
        """What is left to do, as plain values, for the checkpoint.

        Shards that workers have at the time count as not done.
        """
        return self._chief.ask("state")

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from there: the chief calls it before any worker asks.

        Args:
            state: of `state_dict`.

        Raises:
            DataError: it is of other shards.
        """
        self._chief.ask("load", state=dict(state))

    def close(self) -> None:
        """Ends the connection; what this worker has is for others."""
        self._chief.close()

    def __enter__(self) -> Shards:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _take(self, done: int) -> Lease | None:
        """The next shard, after a lease that is done; `None` at the end."""
        while True:  # the chief waits a second at most, so that Ctrl-C takes effect
            answer = self._chief.ask("take", done=done)
            done = 0
            if not isinstance(answer, bool):
                return Lease(*answer)
            if answer:
                return None

    def _shard(self, lease: Lease) -> Shard:
        begin = lease.shard * self._size
        end = min(begin + self._size, self._total)
        items = () if self._items is None else self._items[begin:end]
        return Shard(
            lease.epoch, lease.shard, begin, end, items, lease.number,
            lambda: bool(self._chief.ask("renew", lease=lease.number)),
        )  # fmt: skip


class _Here:
    """The chief is this process."""

    def __init__(self, keeper: ShardKeeper, worker: str) -> None:
        self._keeper, self._worker = keeper, worker

    def ask(self, do: str, **more: Any) -> Any:
        """What the chief answers."""
        return asked(self._keeper, self._worker, {"do": do, **more})

    def close(self) -> None:
        """What this worker has is for others."""
        self._keeper.give_back(self._worker)


class _There:
    """The chief is another process."""

    def __init__(self, channel: Channel, spec: ShardSpec, worker: str) -> None:
        self._channel, self._head = channel, {"spec": asdict(spec), "worker": worker}
        self.ask("join")

    def ask(self, do: str, **more: Any) -> Any:
        """What the chief answers."""
        return self._channel.call(Message(KIND, {**self._head, "do": do, **more})).head["answer"]

    def close(self) -> None:
        """Ends the connection, which tells the chief."""
        self._channel.close()


def _chief(
    chief: str | Target | None, spec: ShardSpec, worker: str, options: RpcOptions
) -> _Here | _There:  # fmt: skip
    if chief is None:
        return _Here(ShardKeeper(spec), worker)
    address = (chief if isinstance(chief, str) else chief.target).removeprefix("grpc://")
    server = server_at(f"grpc://{address}")
    if server is not None:
        return _Here(server.shards.keeper(spec), worker)
    return _There(connect(address, options, "the chief"), spec, worker)

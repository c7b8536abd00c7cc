"""Shards as messages: what the chief answers."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Final

from weft.cluster.rpc import Message, Peer
from weft.cluster.shards.keeper import ShardKeeper, ShardSpec
from weft.errors import ArgumentError, ExistsError

KIND: Final = "shards"
"""Of the messages."""


class ShardService:
    """The shards that a process gives out, by name; whoever asks first makes them."""

    def __init__(self) -> None:
        self._keepers: dict[str, ShardKeeper] = {}
        self._lock = threading.Lock()

    def keeper(self, spec: ShardSpec) -> ShardKeeper:
        """The keeper of some shards.

        Raises:
            ExistsError: it gives out others of that name.
        """
        with self._lock:
            found = self._keepers.setdefault(spec.name, ShardKeeper(spec))
        if found.spec != spec:
            raise ExistsError(
                f"shards {spec.name!r}: they exist with other options: expected {found.spec}, "
                f"got {spec}"
            )
        return found

    def answer(self, message: Message, peer: Peer) -> Message:
        """The answer to a worker. What it has is for others once its connection ends."""
        head = message.head
        keeper, worker = self.keeper(ShardSpec(**head["spec"])), head["worker"]
        if head["do"] == "join":
            peer.on_close(lambda: keeper.give_back(worker))
            return Message(KIND, {"answer": None})
        return Message(KIND, {"answer": asked(keeper, worker, head)})


def asked(keeper: ShardKeeper, worker: str, head: Mapping[str, Any]) -> Any:
    """What a keeper answers to a worker, as plain values."""
    match head["do"]:
        case "take":
            if head["done"]:  # one message tells both
                keeper.done(head["done"])
            lease = keeper.take(worker)
            return keeper.is_over() if lease is None else list(lease)
        case "renew":
            return keeper.renew(head["lease"])
        case "give back":
            return keeper.give_back(worker, head["lease"])
        case "report":
            return keeper.report()
        case "state":
            return keeper.state_dict()
        case "load":
            return keeper.load_state_dict(head["state"])
        case unknown:
            raise ArgumentError(f"shards: unknown request {unknown!r}")

"""MPI requests: messages in flight and their peers."""

from __future__ import annotations

import contextlib
import time
from typing import Any, Final, NoReturn

from weft.errors import DistributedError
from weft.transport.base import Pending
from weft.transport.wait import named

GIVE_UP_SECONDS: Final = 1.0


class Requests(Pending):
    """MPI requests that are waited for together.

    Args:
        mpi: the module of mpi4py.
        requests: one for each message.
        peers: the peer's rank, for each request.
        held: the memory that they use, kept alive.
        receives: how many of them, the first ones, write to it.

    Raises:
        DistributedError: by `done`, if a message was lost because the peer has died.
    """

    def __init__(
        self, mpi: Any, requests: list[Any], peers: list[int], held: Any, receives: int
    ) -> None:  # fmt: skip
        self._mpi, self._requests, self._peers, self._held = mpi, requests, peers, held
        self._receives = receives

    def done(self) -> bool:
        """See `Pending.done`."""
        try:
            return bool(self._mpi.Request.Testall(self._requests))
        except self._mpi.Exception as error:
            self.break_off(error)

    def missing(self) -> list[int]:
        """See `Pending.missing`."""
        pairs = zip(self._peers, self._requests, strict=True)
        try:
            return sorted({peer for peer, request in pairs if not request.Test()})
        except self._mpi.Exception as error:
            self.break_off(error)

    def give_up(self) -> None:
        """See `Pending.give_up`; messages that are already arriving get a little time to finish."""
        until = time.monotonic() + GIVE_UP_SECONDS
        with contextlib.suppress(self._mpi.Exception):  # lost messages write nothing any more
            for request in self._requests[: self._receives]:
                if request:  # not yet arrived
                    request.Cancel()
            while time.monotonic() < until:
                if all([request.Test() for request in self._requests[: self._receives]]):
                    return
                time.sleep(GIVE_UP_SECONDS / 1000)

    def break_off(self, error: Exception) -> NoReturn:
        """Raise an error that names the peers whose messages are lost."""
        broken: set[int] = set()
        for peer, request in zip(self._peers, self._requests, strict=True):
            try:
                request.Test()
            except self._mpi.Exception:
                broken.add(peer)
        ranks = named(sorted(broken or set(self._peers)))
        raise DistributedError(f"messages with {ranks} broke off, as when one is killed") from error

"""Point-to-point messages between members of a group."""

from __future__ import annotations

import zlib
from concurrent.futures import Future
from typing import Any

from weft.ir.node import at_user_line
from weft.transport.base import NO_GROUP, Array, Part, Pending, Waiting
from weft.transport.group import TAG_BITS, Group, bytes_of
from weft.transport.wait import wait


class _Waited(Future[Any]):
    """A message in flight, as a future."""

    def __init__(self, group: Group, pending: Pending, what: str) -> None:
        super().__init__()
        self._group, self._pending = group, pending
        self._waiting = Waiting(what, at_user_line(), NO_GROUP, 0)

    def done(self) -> bool:
        """Whether it has arrived."""
        return self._pending.done()

    def result(self, timeout: float | None = None) -> Any:
        """Wait until it has arrived.

        Raises:
            DistributedError: the other rank failed, ended or did not answer.
        """
        transport = self._group.transport
        before, transport.waiting = transport.waiting, self._waiting
        try:
            wait(transport, self._pending, self._group.timeout if timeout is None else timeout)
        finally:
            transport.waiting = before


def send_to(group: Group, x: Array, peer: int, tag: int, what: str) -> Future[Any]:
    """Start to send an array to a member; it must not change until the message is done."""
    part = Part(group.ranks[peer], bytes_of(x))
    return _Waited(group, group.transport.start([part], [], _tag(group, x, tag)), what)


def receive_from(group: Group, out: Array, peer: int, tag: int, what: str) -> Future[Any]:
    """Start to receive an array from a member."""
    part = Part(group.ranks[peer], bytes_of(out))
    return _Waited(group, group.transport.start([], [part], _tag(group, out, tag)), what)


def _tag(group: Group, x: Array, tag: int) -> int:
    """The tag; messages of different types or shapes do not match."""
    text = f"{group.number} {tag} {x.dtype} {x.shape}".encode()
    return zlib.crc32(text) >> (32 - TAG_BITS) | 1 << TAG_BITS

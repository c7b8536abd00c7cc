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


class _FromAny(Pending):
    """A message whose sender is not known before it arrives."""

    def __init__(self, group: Group, out: Array, tag: int) -> None:
        self._group, self._out, self._tag = group, out, tag
        self._found: Pending | None = None
        self.sender = -1

    def done(self) -> bool:
        if self._found is None:
            source = self._group.transport.source_of(self._tag)
            if source is None:
                return False
            self.sender = source
            part = Part(source, bytes_of(self._out))
            self._found = self._group.transport.start([], [part], self._tag)
        return self._found.done()

    def missing(self) -> list[int]:
        if self._found is not None:
            return self._found.missing()
        return [rank for rank in self._group.ranks if rank != self._group.transport.rank]

    def give_up(self) -> None:
        if self._found is not None:
            self._found.give_up()


def receive_from_any(group: Group, out: Array, tag: int, what: str) -> int:
    """Receive an array from whichever member sends first; returns its rank."""
    pending = _FromAny(group, out, _tag(group, out, tag))
    _Waited(group, pending, what).result()
    return pending.sender


def _tag(group: Group, x: Array, tag: int) -> int:
    """The tag; messages of different types or shapes do not match."""
    text = f"{group.number} {tag} {x.dtype} {x.shape}".encode()
    return zlib.crc32(text) >> (32 - TAG_BITS) | 1 << TAG_BITS

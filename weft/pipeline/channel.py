"""Messages between two processes; neither blocks until the other reads them.

A message is a list of buffers. Small messages are sent through the socket, large ones in anonymous
shared memory, whose descriptor is sent: no name can be left behind. Messages that the socket does
not accept at once are queued until `flush`.
"""

from __future__ import annotations

import array
import errno
import os
import resource
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from weft.errors import WorkerError
from weft.host.memory import LINE
from weft.runtime.memory.anonymous import filled, mapped

Buffer = memoryview | bytes | bytearray

INLINE: Final = 1024  # bytes of a message that is sent without shared memory
_SMALL: Final = b"s"
_LARGE: Final = b"m"
_WORD: Final = 8  # bytes of a size
CROWDED: Final = 0.005  # seconds to wait while too many descriptors are in flight


def socket_pair() -> tuple[socket.socket, socket.socket]:
    """The ends of a new connection that keeps message boundaries."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


class _Body:
    """The bytes of a message: the number of its buffers, their sizes, then the buffers, aligned."""

    def __init__(self, pieces: list[tuple[int, Buffer]], size: int) -> None:
        self.pieces, self.size = pieces, size

    @classmethod
    def of(cls, buffers: Sequence[Buffer]) -> _Body:
        """The body of a message of these buffers."""
        sizes = [len(x) for x in buffers]
        head = struct.pack(f"<{len(sizes) + 1}Q", len(sizes), *sizes)
        starts, total = _starts(sizes)
        return cls([(0, head), *zip(starts, buffers, strict=True)], total)

    def write(self, into: memoryview) -> None:
        """Write it to memory."""
        for start, piece in self.pieces:
            into[start : start + len(piece)] = piece

    def copied(self) -> _Body:
        """A copy that is independent of the buffers, which their owner may change."""
        data = bytearray(self.size)
        self.write(memoryview(data))
        return _Body([(0, data)], self.size)


def _starts(sizes: Sequence[int]) -> tuple[list[int], int]:
    """Where the buffers of a message start, and its size."""
    starts, total = list[int](), _WORD * (len(sizes) + 1)
    for size in sizes:
        total += -total % LINE
        starts.append(total)
        total += size
    return starts, total


def _buffers(body: memoryview) -> list[memoryview]:
    (count,) = struct.unpack_from("<Q", body)
    sizes = struct.unpack_from(f"<{count}Q", body, _WORD)
    starts, _ = _starts(sizes)
    return [body[start : start + size] for start, size in zip(starts, sizes, strict=True)]


class Channel:
    """One end of a connection."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self.end = end
        self.waiting: deque[_Body] = deque()
        self.crowded = False  # the system accepts no more descriptors for now

    def send(self, buffers: Sequence[Buffer]) -> None:
        """Send a message, or keep a copy that `flush` sends.

        Raises:
            OSError: the other end is closed, or no descriptor is left for shared memory.
        """
        body = _Body.of(buffers)
        if self.waiting or not self._sent(body):
            self.waiting.append(body.copied())

    def flush(self) -> None:
        """Send queued messages, as far as the socket accepts them."""
        while self.waiting and self._sent(self.waiting[0]):
            self.waiting.popleft()

    def _sent(self, body: _Body) -> bool:
        if body.size <= INLINE:
            data = bytearray(body.size)
            body.write(memoryview(data))
            return self._passed_on([_SMALL, data], [])
        if not self.wait(0, reads=False):
            return False
        memory = filled(body.size, body.write)
        try:
            return self._passed_on([_LARGE, struct.pack("<Q", body.size)], [memory])
        finally:
            os.close(memory)

    def _passed_on(self, parts: list[Any], handles: list[int]) -> bool:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", handles))]
        try:
            self.end.sendmsg(parts, rights if handles else [])
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in (errno.ETOOMANYREFS, errno.ENOBUFS):
                raise
            self.crowded = True
            return False
        self.crowded = False
        return True

    def receive(self) -> list[memoryview] | None:
        """The buffers of the next message; None if there is none.

        Raises:
            EOFError: the other end is closed.
            WorkerError: no descriptor is left.
        """
        room = socket.CMSG_SPACE(array.array("i").itemsize)
        try:
            received = self.end.recvmsg(2 * INLINE, room, socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return None
        data, ancillary, _, _ = received
        if not data:
            raise EOFError
        if data[:1] == _SMALL:
            return _buffers(memoryview(bytearray(memoryview(data)[1:])))
        return _buffers(_received(ancillary, struct.unpack_from("<Q", data, 1)[0]))

    def interest(self) -> int:
        """The events to poll for: messages, and room for queued ones."""
        return select.POLLIN | (select.POLLOUT if self.waiting and not self.crowded else 0)

    def wait(self, seconds: float, reads: bool = True) -> bool:
        """Wait for a message, or for room for queued ones; returns whether there is any."""
        if self.crowded and reads:
            time.sleep(CROWDED)
            self.crowded = False
        poll = select.poll()
        poll.register(self.end, self.interest() if reads else select.POLLOUT)
        return bool(poll.poll(seconds * 1000))

    def close(self) -> None:
        """Close this end."""
        self.end.close()


def _received(ancillary: Sequence[tuple[int, int, bytes]], size: int) -> memoryview:
    """The shared memory of a message."""
    handles = array.array("i")
    for _, _, data in ancillary:
        handles.frombytes(data[: len(data) - len(data) % handles.itemsize])
    if not handles:
        raise WorkerError(too_many_files())
    try:
        return mapped(handles[0], size)
    finally:
        os.close(handles[0])


def too_many_files() -> str:
    """The error message that no descriptor is left."""
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        f"data loader: too many open files: expected a free descriptor for a batch, got none of "
        f"{limit}; raise the limit by `ulimit -n {most if most > limit else 4 * limit}` or "
        "resource.setrlimit(resource.RLIMIT_NOFILE, ...), or close files"
    )

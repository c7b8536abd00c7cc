"""The client's side of UNIX sockets.

Whoever waits for an answer receives packets itself, so an answer needs no change of threads. If
several wait, one of them receives and hands the others theirs; when it has its own, it wakes one
that goes on. A thread of the channel receives while only futures wait.
"""

from __future__ import annotations

import contextlib
import itertools
import queue
import select
import socket
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, Final

from weft.cluster.rpc import packet as packets
from weft.cluster.rpc.channel import Channel, Limit
from weft.cluster.rpc.deadline import Alarm
from weft.cluster.rpc.message import Array, Message
from weft.cluster.rpc.options import RpcOptions
from weft.cluster.rpc.segment import pool
from weft.cluster.rpc.socket_link import Link, endpoint
from weft.cluster.rpc.socket_server import WELCOME
from weft.cluster.rpc.waiting import Call, Reader, Waiter
from weft.errors import DataError, UnavailableError, WeftError

MOST_TICK: Final = 0.25
"""How often a thread that waits looks whether the task is stopped, in seconds."""
ENDED: Final = select.POLLHUP | select.POLLRDHUP
HEAD_START: Final = 1e-3
"""How long the channel's thread leaves it to the caller to receive what was started."""


class SocketChannel(Channel):
    """A channel to a task on this host.

    Args:
        server: the name of its socket.
        secret: what the server gave this client.
        process: the server's process ID.
        most_bytes: the largest message that it takes.
    """

    def __init__(
        self, name: str, address: str, options: RpcOptions, server: str, secret: bytes,
        process: int, most_bytes: int,
    ) -> None:  # fmt: skip
        super().__init__(name, address, options)
        self._process = process
        self.most_bytes = min(self.most_bytes, most_bytes)
        connection = _connected(server, secret, options.connect_timeout)
        self._tick = min(MOST_TICK, options.patience / 8)
        self._link = Link(
            connection, options.patience, self._tick, self.most_bytes, options.max_message_bytes
        )
        self._poll = select.poll()
        self._poll.register(connection, select.POLLIN)
        self._buffer = bytearray(packets.PACKET_BYTES)
        self._numbers = itertools.count(1)
        self._pending: dict[int, Waiter | Call] = {}
        self._leading = threading.Lock()  # held by the thread that receives
        self._leader = 0
        self._failure: Exception | None = None
        self._stopped_since: float | None = None
        self._own = Reader(self._read)

    @property
    def closed(self) -> bool:
        """See `Channel.closed`; looks whether the other end is there."""
        if self._failure is None and _has_ended(self._link.socket):
            self._fail("has ended or was killed")
        return self._failure is not None

    @property
    def shared(self) -> bool:
        """See `Channel.shared`."""
        return True

    def allocate(self, shape: Sequence[int], dtype: Any) -> Array:
        """See `Channel.allocate`."""
        return pool().allocate(shape, dtype)

    # -- calls

    def call(self, message: Message, timeout: float | None = None) -> Message:
        """See `Channel.call`."""
        limit = Limit(self.options.deadline if timeout is None else timeout, message.kind)
        number, waiter = next(self._numbers), Waiter()
        self._send(number, waiter, message)
        try:
            while waiter.result is None:
                if not self.lead(waiter, limit):
                    with contextlib.suppress(queue.Empty):
                        waiter.wake.get(timeout=limit.left())
                if waiter.result is None and limit.passed():
                    raise limit.error(self.who)
        except BaseException:
            self.give_up(number)
            raise
        finally:
            self._promote()
        if isinstance(waiter.result, Message):
            return self.checked(waiter.result)
        raise waiter.result

    def start(self, message: Message, timeout: float | None = None) -> Future[Message]:
        """See `Channel.start`."""
        limit = Limit(self.options.deadline if timeout is None else timeout, message.kind)
        number = next(self._numbers)
        call = Call(lambda: self.give_up(number), self.lead)
        try:
            self._send(number, call, message)
        except UnavailableError as error:  # as an answer: callers have one place to look
            call.settle(error)
            return call
        if limit.until is not None:
            alarm = Alarm.at(limit.until, lambda: self._expire(number, limit))
            call.add_done_callback(lambda _: alarm.cancel())
        self._own.wake()
        return call

    def _send(self, number: int, waiter: Waiter | Call, message: Message) -> None:
        self._pending[number] = waiter
        try:
            if self._failure is not None:
                raise self._failure
            self._link.send(packets.CALL, number, message, self.who)
        except OSError as error:
            self._pending.pop(number, None)
            raise self._fail(self._why(error)) from None
        except BaseException:
            self._pending.pop(number, None)
            raise

    def give_up(self, number: int) -> None:
        """Have the server cancel a call."""
        if self._pending.pop(number, None) is not None and self._failure is None:
            self._link.cancel(number)

    def _expire(self, number: int, limit: Limit) -> None:
        call = self._pending.get(number)
        if call is not None:
            self.give_up(number)
            call.settle(limit.error(self.who))

    # -- receiving

    def lead(self, waiter: Waiter | Call, limit: Limit) -> bool:
        """Receive packets until a call has its answer or its time is over.

        Returns whether this thread did; else another one receives.
        """
        nested = self._leader == threading.get_ident()  # a callback of a future calls
        if not nested and not self._leading.acquire(blocking=False):
            return False
        try:
            self._leader = threading.get_ident()
            while waiter.waits and self._failure is None and not limit.passed():
                self._receive(limit)
        finally:
            if not nested:
                self._leader = 0
                self._leading.release()
            if isinstance(waiter, Call):
                self._promote()
        return True

    def _promote(self) -> None:
        """Have somebody receive, if answers are missing and nobody does."""
        if not self._pending or self._leading.locked():
            return
        for waiter in list(self._pending.values()):
            if isinstance(waiter, Waiter) or waiter.asked:
                waiter.wake.put(None)
                return
        self._own.wake()

    def _read(self) -> None:
        """Receive while only futures wait; run by the channel's thread."""
        time.sleep(HEAD_START)
        limit = Limit(None, "")
        while self._failure is None and self._pending:
            call = next((w for w in list(self._pending.values()) if isinstance(w, Call)), None)
            if call is None or not self.lead(call, limit):
                return

    def _receive(self, limit: Limit) -> None:
        """Take one packet, or look after the connection if none comes."""
        left = limit.left()
        if left is not None and left < self._tick and not self._poll.poll(left * 1e3):
            return
        try:
            packet = packets.receive(self._link.socket, self._buffer)
        except BlockingIOError:
            self._look()
            return
        except (OSError, DataError) as error:
            self._fail(self._why(error))
            return
        if packet is None:
            self._fail("has ended or was killed")
            return
        try:
            self._take(packet)
        finally:
            packet.close()

    def _take(self, packet: packets.Received) -> None:
        self._stopped_since = None
        waiter = self._pending.pop(packet.call, None)
        if waiter is None:
            with contextlib.suppress(WeftError):
                self._link.unpack(packet)  # a call that was given up; its loans end here
            return
        result: Message | BaseException
        try:
            result = self._link.unpack(packet)
            if isinstance(waiter, Call):
                result = self.checked(result)
        except Exception as error:
            result = error
        waiter.settle(result)

    def _look(self) -> None:
        """Whether the task is stopped, and for how long."""
        if not _is_stopped(self._process):
            self._stopped_since = None
            return
        now = time.monotonic()
        self._stopped_since = self._stopped_since or now
        patience = self.options.patience
        if now - self._stopped_since >= patience - 2 * self._tick:
            self._fail(f"is stopped (SIGSTOP) for {patience:g} s")

    # -- the end

    def _why(self, error: Exception) -> str:
        if isinstance(error, BlockingIOError):
            return f"does not take messages for {self.options.patience:g} s"
        return "has ended or was killed" if isinstance(error, OSError) else str(error)

    def _fail(self, why: str) -> Exception:
        """Fail all calls, now and later."""
        if self._failure is None:
            self._failure = self.lost(why)
        self._link.shut()
        for number in list(self._pending):
            waiter = self._pending.pop(number, None)
            if waiter is not None:
                waiter.settle(self._failure)
        return self._failure

    def close(self) -> None:
        """See `Channel.close`."""
        self._fail("the channel is closed")
        self._own.stop()
        if self._leader != threading.get_ident():
            with self._leading:  # nobody receives any more
                self._link.close()
        else:
            self._link.close()


def _connected(server: str, secret: bytes, timeout: float) -> socket.socket:
    """A socket that a server has accepted.

    Raises:
        OSError: there is no such server in this host's namespace, or it does not answer.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connection.settimeout(timeout)
        connection.connect(endpoint(server))
        connection.send(secret)
        if connection.recv(len(WELCOME)) != WELCOME:
            raise ConnectionError("not the server's socket")
    except BaseException:
        connection.close()
        raise
    return connection


def _has_ended(connection: socket.socket) -> bool:
    """Whether the other end of a connection is closed."""
    poll = select.poll()  # one of its own: several threads may not use one at the same time
    with contextlib.suppress(OSError, ValueError):  # it is closed at this moment
        poll.register(connection, select.POLLRDHUP)
        return any([state & ENDED for _, state in poll.poll(0)])
    return True


def _is_stopped(process: int) -> bool:
    """Whether a process is stopped by a signal or a debugger."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"T", b"t")
    except (OSError, IndexError):
        return False

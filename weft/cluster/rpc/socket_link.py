"""One end of the UNIX socket between two processes of a host."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from typing import Final

from weft.cluster.rpc import packet as packets
from weft.cluster.rpc.failure import to_message
from weft.cluster.rpc.mapping import Mappings
from weft.cluster.rpc.message import Message
from weft.cluster.rpc.segment import Loans
from weft.errors import WeftError

NAME_BYTES: Final = 16


def endpoint(name: str) -> str:
    """The address of a server's socket, which has no name in the file system."""
    return f"\0weft-{name}"


def _timeval(seconds: float) -> bytes:
    whole = int(seconds)
    return struct.pack("@ll", whole, int((seconds - whole) * 1e6))


class Link:
    """A connected socket, with what has been lent to the other end and borrowed from it.

    Args:
        connection: the socket; the link closes it.
        patience: how long sending may wait for the other end, in seconds.
        tick: after how many seconds receiving raises `BlockingIOError`; 0: never.
        most_sent, most_received: the largest messages.
    """

    def __init__(
        self, connection: socket.socket, patience: float, tick: float, most_sent: int,
        most_received: int,
    ) -> None:  # fmt: skip
        connection.settimeout(None)  # the system's own limits, below, cost no further call
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(patience))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _timeval(tick))
        self.socket = connection
        self._loans, self._mappings = Loans(), Mappings()
        self._most_sent, self._most_received = most_sent, most_received
        self._lock = threading.Lock()
        self._closed = False

    def send(self, kind: int, call: int, message: Message, who: str) -> None:
        """Send a message.

        Raises:
            WeftError: it cannot be encoded, or is too large; nothing was sent.
            OSError: the connection has ended.
        """
        packet = packets.pack(kind, call, message, self._loans, self._most_sent, who)
        packets.send(self.socket, packet)

    def answer(self, call: int, message: Message, who: str) -> None:
        """Send an answer, or why there is none.

        Raises:
            OSError: the connection has ended.
        """
        try:
            self.send(packets.ANSWER, call, message, who)
        except WeftError as error:
            self.send(packets.ANSWER, call, to_message(error), who)

    def cancel(self, call: int) -> None:
        """Have the other end cancel a call; nothing if the connection has ended."""
        with contextlib.suppress(OSError):
            self.socket.send(packets.cancel(call))

    def unpack(self, packet: packets.Received) -> Message:
        """The message of a packet; raises as `packet.unpack`."""
        return packets.unpack(packet, self._mappings, self._most_received)

    def shut(self) -> None:
        """End the connection; whoever sends or receives returns."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End the connection and free what belongs to it."""
        self.shut()
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self.socket.close()
        self._loans.close()
        self._mappings.close()

"""The server's side of UNIX sockets: clients of this host, which gRPC has let in."""

from __future__ import annotations

import contextlib
import secrets
import socket
import threading
from concurrent.futures import Future
from typing import Final

from weft.cluster.rpc import packet as packets
from weft.cluster.rpc.failure import to_message
from weft.cluster.rpc.message import Message
from weft.cluster.rpc.options import RpcOptions
from weft.cluster.rpc.session import SECRET_BYTES, Handler, Peer, Reception, handle, outcome
from weft.cluster.rpc.socket_link import NAME_BYTES, Link, endpoint
from weft.errors import DataError, WeftError
from weft.host.crew import Crew

SECRET_SECONDS: Final = 5.0
"""How long a client may take to show its secret."""
MOST_STRANGERS: Final = 64
"""The most connections that have not shown a secret yet."""
MOST_WAITING: Final = 2
"""The threads of a connection that wait for packets, beside those that run handlers."""
WELCOME: Final = b"weft"


class _Connection:
    """A client's connection.

    Several threads wait for packets; the system gives each packet to one of them, which runs the
    handler. So no packet waits for a handler, and none changes threads.
    """

    def __init__(self, link: Link, peer: Peer, handler: Handler, crew: Crew) -> None:
        self._link, self._peer, self._handler, self._crew = link, peer, handler, crew
        self._pending: dict[int, Future[Message]] = {}
        self._lock = threading.Lock()
        self._threads, self._waiting = 1, 0
        self.shut = link.shut

    def serve(self) -> None:
        """Receive and handle packets until the connection ends, or enough other threads do."""
        buffer = bytearray(packets.PACKET_BYTES)
        try:
            while self._begin_waiting():
                packet = packets.receive(self._link.socket, buffer)
                if packet is None:
                    self._give_up()
                    break
                self._end_waiting()
                try:
                    self._take(packet)
                finally:
                    packet.close()
            else:
                return
        except (OSError, DataError):  # the client has failed, or does not keep to the protocol
            self._link.shut()
            self._give_up()
        finally:
            self._leave()

    def _begin_waiting(self) -> bool:
        with self._lock:
            if self._waiting >= MOST_WAITING:
                return False
            self._waiting += 1
            return True

    def _end_waiting(self) -> None:
        """Note that a packet has come; another thread waits for the next one."""
        with self._lock:
            self._waiting -= 1
            alone = not self._waiting
            self._threads += alone
        if alone and not self._crew.do(self.serve):
            self._leave()

    def _leave(self) -> None:
        """A thread leaves; with a connection that has ended, all do."""
        with self._lock:
            self._threads -= 1
            last = not self._threads
        if not last:
            return
        self._link.close()
        self._give_up()

    def _give_up(self) -> None:
        """The client has gone: nothing waits for it, whatever handlers still do."""
        for call in list(self._pending):
            self._cancel(call)
        self._peer.close()

    def _take(self, packet: packets.Received) -> None:
        if packet.kind == packets.CANCEL:
            self._cancel(packet.call)
            return
        if packet.kind != packets.CALL:
            raise DataError(f"packet: unknown kind {packet.kind}")
        try:
            message = self._link.unpack(packet)
        except WeftError as error:
            self._answer(packet.call, to_message(error))
            return
        answer = handle(self._handler, message, self._peer)
        del message  # memory that it borrows is free before the client gets the answer
        if isinstance(answer, Message):
            self._answer(packet.call, answer)
        else:
            self._await(packet.call, answer)

    def _await(self, call: int, future: Future[Message]) -> None:
        self._pending[call] = future

        def tell(done: Future[Message]) -> None:
            self._pending.pop(call, None)
            with contextlib.suppress(OSError):
                self._answer(call, outcome(done))

        future.add_done_callback(tell)
        if self._peer.closed:
            self._cancel(call)

    def _answer(self, call: int, message: Message) -> None:
        self._link.answer(call, message, repr(self._peer))

    def _cancel(self, call: int) -> None:
        future = self._pending.pop(call, None)
        if future is not None:
            future.cancel()


class SocketServer:
    """Serves a handler to clients of this host.

    Attributes:
        name: of the socket, which only clients learn that gRPC has let in.
    """

    def __init__(self, handler: Handler, options: RpcOptions, reception: Reception) -> None:
        self.name: Final = secrets.token_hex(NAME_BYTES)
        self._handler, self._options, self._reception = handler, options, reception
        self._crew = Crew("weft-rpc-socket")
        self._strangers = threading.BoundedSemaphore(MOST_STRANGERS)
        self._connections: dict[_Connection, None] = {}
        self._stopped = False
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.bind(endpoint(self.name))
        self._socket.listen(MOST_STRANGERS)
        self._crew.do(self._accept)

    def _accept(self) -> None:
        while not self._stopped:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                if self._stopped:
                    return
                continue  # the client has gone already, or there are too many open files
            if self._strangers.acquire(blocking=False):
                self._crew.do(lambda connection=connection: self._receive(connection))
            else:
                connection.close()

    def _receive(self, connection: socket.socket) -> None:
        """Serve a connection, once it has shown a client's secret."""
        try:
            peer = self._introduced(connection)
        finally:
            self._strangers.release()
        if peer is None:
            connection.close()
            return
        most = self._options.max_message_bytes
        link = Link(connection, self._options.patience, 0.0, peer.most_bytes, most)
        served = _Connection(link, peer, self._handler, self._crew)
        self._connections[served] = None
        peer.on_close(lambda: self._connections.pop(served, None))
        served.serve()

    def _introduced(self, connection: socket.socket) -> Peer | None:
        try:
            connection.settimeout(SECRET_SECONDS)
            peer = self._reception.find(connection.recv(SECRET_BYTES + 1))
            if peer is None or peer.moved or self._stopped:
                return None
            peer.moved = True
            connection.send(WELCOME)
        except OSError:
            return None
        return peer

    def stop(self) -> None:
        """End all connections."""
        self._stopped = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # closing would not end `accept`
        self._socket.close()
        for connection in list(self._connections):
            connection.shut()
        self._crew.shutdown()

"""Clients, as a server sees them: who may come in, and who is there."""

from __future__ import annotations

import hmac
import json
import os
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, TypeAlias

from weft.cluster.rpc.failure import to_message
from weft.cluster.rpc.message import Message
from weft.cluster.rpc.options import PROTOCOL, RpcOptions
from weft.errors import CancelledError, DataError, DeniedError
from weft.host.identity import host_identity
from weft.version import __version__

SECRET_BYTES: Final = 16
MOST_SESSIONS: Final = 4096
MOST_HELLO_BYTES: Final = 1 << 16


class Peer:
    """A client of a server.

    Attributes:
        name: what it calls itself.
        address: where it comes from, as gRPC tells it.
        process: its process ID on its host.
        id: unique among the clients of the server.
        most_bytes: the largest message that it accepts.
        moved: whether it uses shared memory instead of gRPC.
    """

    def __init__(self, number: int, name: str, address: str, process: int, most: int) -> None:
        self.id: Final = number
        self.name: Final = name
        self.address: Final = address
        self.process: Final = process
        self.most_bytes: Final = most
        self.secret: Final = secrets.token_bytes(SECRET_BYTES)
        self.moved = False
        self._closed = False
        self._callbacks: list[Callable[[], object]] = []
        self._lock = threading.Lock()

    @property
    def closed(self) -> bool:
        """Whether it has gone away."""
        return self._closed

    def on_close(self, callback: Callable[[], object]) -> None:
        """Have a function called once the client has gone away; at once if it has."""
        with self._lock:
            if not self._closed:
                self._callbacks.append(callback)
                return
        callback()

    def close(self) -> None:
        """Note that the client has gone away."""
        with self._lock:
            callbacks, self._callbacks = self._callbacks, []
            self._closed = True
        for callback in callbacks:
            callback()

    def __repr__(self) -> str:
        return f"Peer({self.name or self.address!r}, process {self.process})"


Handler: TypeAlias = "Callable[[Message, Peer], Message | Future[Message]]"
"""Answers messages; the arrays of an answer do not change afterwards, as they are still sent."""


class Reception:
    """Lets clients in: checks versions and the token, and knows those that are there."""

    def __init__(self, options: RpcOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._peers: dict[bytes, Peer] = {}
        self._count = 0

    def admit(self, request: bytes, address: str) -> Peer:
        """The client that sends this hello.

        Raises:
            DeniedError: another version, or not the token.
            DataError: not a hello.
        """
        hello = parse(request)
        theirs = (hello.get("weft"), hello.get("protocol"))
        if theirs != (__version__, PROTOCOL):
            raise DeniedError(
                f"hello: the client has Weft {theirs[0]} (protocol {theirs[1]}), the server "
                f"{__version__} (protocol {PROTOCOL}); install the same version on both"
            )
        token = str(hello.get("token", "")).encode()
        if not hmac.compare_digest(token, self._options.token.encode()) and self._options.token:
            what = "another token" if token else "no token"
            raise DeniedError(f"hello: the server demands a token, the client has {what}")
        name, process, most = (hello.get(key) for key in ("name", "process", "most"))
        if type(process) is not int or type(most) is not int or not isinstance(name, str):
            raise DataError("hello: expected name, process and most")
        return self._enter(name[:200], address, process, most)

    def _enter(self, name: str, address: str, process: int, most: int) -> Peer:
        with self._lock:
            if len(self._peers) >= MOST_SESSIONS:
                raise DeniedError(f"hello: the server has {MOST_SESSIONS} clients, its limit")
            self._count += 1
            peer = Peer(self._count, name, address, process, most)
            self._peers[peer.secret] = peer
        peer.on_close(lambda: self._peers.pop(peer.secret, None))
        return peer

    def find(self, secret: bytes) -> Peer | None:
        """The client with this secret."""
        return self._peers.get(secret)

    def close(self) -> None:
        """Let all clients go."""
        for peer in list(self._peers.values()):
            peer.close()


def hello(name: str, options: RpcOptions) -> bytes:
    """What a client says first."""
    return json.dumps({
        "weft": __version__, "protocol": PROTOCOL, "token": options.token, "name": name,
        "process": os.getpid(), "host": host_identity(), "most": options.max_message_bytes,
    }).encode()  # fmt: skip


def parse(text: bytes) -> dict[str, Any]:
    """The values of a hello or of its answer.

    Raises:
        DataError: it is none.
    """
    try:
        values = json.loads(text) if len(text) <= MOST_HELLO_BYTES else None
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise DataError("hello: expected values in JSON")
    return values


def handle(handler: Handler, message: Message, peer: Peer) -> Message | Future[Message]:
    """What a handler answers; its error as a message."""
    try:
        return handler(message, peer)
    except Exception as error:  # it travels to the caller
        return to_message(error)


def outcome(future: Future[Message]) -> Message:
    """The answer of a future that is done; its error as a message."""
    if future.cancelled():
        return to_message(CancelledError("the call was cancelled"))
    error = future.exception()
    return future.result() if error is None else to_message(error)

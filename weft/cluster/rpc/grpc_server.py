"""The server's side of gRPC: sessions, calls, and large messages in pieces."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any, Final, cast

import grpc
import numpy as np

from weft.cluster.rpc import grpc_wire as wire
from weft.cluster.rpc.channel import too_large
from weft.cluster.rpc.failure import to_message
from weft.cluster.rpc.message import Array, Buffer, Message, decode, encode, size_of
from weft.cluster.rpc.options import RpcOptions, read_file
from weft.cluster.rpc.session import Handler, Peer, Reception, handle, outcome
from weft.errors import DataError, UnavailableError, WeftError
from weft.host.crew import Crew

LINGER_SECONDS: Final = 0.01
"""An answer that is there so soon needs no note."""
MOST_LINGERING: Final = 8
MOST_ASSEMBLED: Final = 256
"""The most messages of a client that arrive in pieces at the same time."""


class _Session:
    """The calls of a client that are under way."""

    def __init__(self, peer: Peer, send: Callable[[bytes | None], None]) -> None:
        self.peer: Final = peer
        self.pending: dict[int, Future[Message]] = {}
        self.given_up: dict[int, None] = {}
        self._arriving: dict[int, Array] = {}
        self._answers: dict[int, list[list[Buffer]]] = {}
        self._send = send
        self._lock = threading.Lock()  # gRPC sends one message at a time
        peer.on_close(self._end)

    def note(self, data: bytes) -> None:
        """Send a note; nothing if the client has gone away."""
        with self._lock:
            self._send(data)

    def add_part(self, call: int, total: int, offset: int, data: memoryview, most: int) -> None:
        """Keep a piece of a message."""
        if total > most:
            raise too_large("a call", "this server", total, most)
        memory = self._arriving.get(call)
        if memory is None:
            if len(self._arriving) >= MOST_ASSEMBLED:
                raise DataError(f"call: more than {MOST_ASSEMBLED} messages at the same time")
            memory = self._arriving.setdefault(call, np.empty(total, np.uint8))
        if len(memory) != total or offset + len(data) > total:
            raise DataError("call: a piece that does not fit its message")
        memory[offset : offset + len(data)] = data

    def assembled(self, call: int) -> memoryview:
        """The message of a call whose pieces have arrived."""
        memory = self._arriving.pop(call, None)
        if memory is None:
            raise DataError("call: the pieces of the message are not there")
        return memory.data

    def answer(self, call: int, message: Message) -> tuple[int, list[Buffer]]:
        """What is sent of an answer at once: see `grpc_wire`."""
        try:
            parts = encode(message)
            size = size_of(parts)
            if size > self.peer.most_bytes:
                raise too_large(
                    f"answer {message.kind}", repr(self.peer), size, self.peer.most_bytes
                )
        except WeftError as error:
            parts = encode(to_message(error))
            size = size_of(parts)
        if size <= wire.PIECE_BYTES:
            return wire.WHOLE, parts
        self._answers[call] = wire.pieces_of(parts)  # each is copied when it is sent
        return wire.LARGE, [wire.SIZE.pack(size)]

    def fetch(self, call: int, offset: int, size: int) -> bytes:
        """The piece of an answer at an offset; asking for none says that all have arrived."""
        pieces = self._answers.get(call)
        if pieces is None:
            raise DataError("fetch: no such answer")
        if not size:
            del self._answers[call]
            return b""
        number = offset // wire.PIECE_BYTES
        if number >= len(pieces):
            raise DataError("fetch: a piece beyond the end of the answer")
        return b"".join(pieces[number])

    def forget(self, call: int) -> None:
        """Cancel a call and free what belongs to it."""
        self._arriving.pop(call, None)
        self._answers.pop(call, None)
        future = self.pending.pop(call, None)
        if future is not None:
            future.cancel()
        else:  # it may still arrive
            self.given_up[call] = None
            while len(self.given_up) > MOST_ASSEMBLED:
                del self.given_up[next(iter(self.given_up))]

    def _end(self) -> None:
        for call in list(self.pending):
            self.forget(call)
        self._arriving.clear()
        self._answers.clear()


class _Lasting:
    """A method whose stream outlives its function, so that it keeps no thread."""

    experimental_non_blocking: Final = True  # gRPC passes a function that sends

    def __init__(self, method: Callable[..., None]) -> None:
        self._method = method

    def __call__(self, request: bytes, context: Any, send: Callable[[bytes | None], None]) -> None:
        self._method(request, context, send)


class GrpcServer:
    """Serves a handler at an address.

    Args:
        welcome: values of the answer to a client's hello, beside the session's secret.

    Attributes:
        port: the port, which the system chose if the address has 0.
    """

    def __init__(
        self, host: str, port: int, handler: Handler, options: RpcOptions, reception: Reception,
        welcome: Callable[[Peer, dict[str, Any]], dict[str, Any]],
    ) -> None:  # fmt: skip
        self._handler, self._options, self._reception = handler, options, reception
        self._welcome = welcome
        self._sessions: dict[bytes, _Session] = {}
        self._crew = Crew("weft-rpc-server")
        self._lingering = threading.BoundedSemaphore(MOST_LINGERING)
        self._server = grpc.server(cast(Any, self._crew), options=wire.settings(options))
        self._server.add_generic_rpc_handlers((self._methods(),))
        self.port = self._listen(host, port)
        self._server.start()

    def _methods(self) -> grpc.GenericRpcHandler:
        unary = grpc.unary_unary_rpc_method_handler
        return grpc.method_handlers_generic_handler(wire.SERVICE, {
            "hello": grpc.unary_stream_rpc_method_handler(cast(Any, _Lasting(self._hello))),
            "call": unary(self._call), "part": unary(self._part), "fetch": unary(self._fetch),
            "cancel": unary(self._cancel),
        })  # fmt: skip

    def _listen(self, host: str, port: int) -> int:
        address, options = f"{host}:{port}", self._options
        try:
            if not options.certificate:
                return self._server.add_insecure_port(address)
            pair = (read_file(options.key), read_file(options.certificate))
            authority = read_file(options.authority) if options.verify_clients else None
            identity = grpc.ssl_server_credentials([pair], authority, options.verify_clients)
            return self._server.add_secure_port(address, identity)
        except RuntimeError as error:
            self._server.stop(None)
            self._crew.shutdown()
            raise UnavailableError(
                f"Listener: cannot listen at {address}: is port {port} in use, or the address not "
                f"of this host? ({error})"
            ) from None

    def stop(self, grace: float) -> None:
        """End the server; calls have `grace` seconds to end."""
        self._server.stop(grace).wait()
        self._crew.shutdown()

    # -- methods, each run by a thread of the crew

    def _hello(self, request: bytes, context: Any, send: Callable[[bytes | None], None]) -> None:
        try:
            peer = self._reception.admit(request, context.peer())
            values = self._welcome(peer, json.loads(request))
        except WeftError as error:
            with contextlib.suppress(Exception):  # the client has gone away
                send(b"".join(encode(to_message(error))))
                send(None)
            return
        session = self._sessions[peer.secret] = _Session(peer, send)
        peer.on_close(lambda: self._sessions.pop(peer.secret, None))
        if not context.add_callback(lambda: self._left(peer)):
            peer.close()
            return
        message = Message("welcome", {**values, "secret": peer.secret.hex()})
        session.note(b"".join(encode(message)))

    def _left(self, peer: Peer) -> None:
        """The stream of a client has ended."""
        if not peer.moved:
            self._crew.do(peer.close)

    def _call(self, request: bytes, context: Any) -> bytes:
        session, call, view = self._opened(request)
        if session is None:
            return _whole(to_message(_unknown()))
        try:
            data = view if len(view) else session.assembled(call)
            answer = handle(self._handler, decode(data), session.peer)
        except WeftError as error:
            answer = to_message(error)
        if not isinstance(answer, Message):
            self._linger(answer)
            if not answer.done():
                return self._later(session, call, answer)
            answer = outcome(answer)
        kind, parts = session.answer(call, answer)
        return b"".join((wire.ANSWER.pack(kind), *parts))

    def _linger(self, answer: Future[Message]) -> None:
        if self._lingering.acquire(blocking=False):
            try:
                wait([answer], LINGER_SECONDS)
            finally:
                self._lingering.release()

    def _later(self, session: _Session, call: int, future: Future[Message]) -> bytes:
        session.pending[call] = future

        def tell(done: Future[Message]) -> None:
            if session.pending.pop(call, None) is not None:
                kind, parts = session.answer(call, outcome(done))
                session.note(b"".join((wire.NOTE.pack(call, kind), *parts)))

        future.add_done_callback(tell)
        if call in session.given_up or session.peer.closed:
            session.forget(call)
        return wire.ANSWER.pack(wire.LATER)

    def _part(self, request: bytes, context: Any) -> bytes:
        session, call, view = self._opened(request)
        try:
            if session is None:
                raise _unknown()
            total, offset = wire.SPAN.unpack_from(view)
            most = self._options.max_message_bytes
            session.add_part(call, total, offset, view[wire.SPAN.size :], most)
        except WeftError as error:
            return _whole(to_message(error))
        return b""

    def _fetch(self, request: bytes, context: Any) -> bytes:
        session, call, view = self._opened(request)
        try:
            if session is None:
                raise _unknown()
            return session.fetch(call, *wire.SPAN.unpack_from(view))
        except WeftError as error:
            context.abort(grpc.StatusCode.NOT_FOUND, str(error))
            raise

    def _cancel(self, request: bytes, context: Any) -> bytes:
        session, call, _ = self._opened(request)
        if session is not None:
            session.forget(call)
        return b""

    def _opened(self, request: bytes) -> tuple[_Session | None, int, memoryview]:
        """The session of a request, the number of its call, and the rest."""
        if len(request) < wire.REQUEST.size:
            return None, 0, memoryview(b"")
        secret, call = wire.REQUEST.unpack_from(request)
        return self._sessions.get(secret), call, memoryview(request)[wire.REQUEST.size :]


def _whole(message: Message) -> bytes:
    return b"".join((wire.ANSWER.pack(wire.WHOLE), *encode(message)))


def _unknown() -> UnavailableError:
    return UnavailableError("the server does not know this client: has the server restarted?")

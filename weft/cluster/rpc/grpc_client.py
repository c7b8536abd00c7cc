"""The client's side of gRPC."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as LateError
from typing import Any, Final

import grpc
import numpy as np

from weft.cluster.rpc import grpc_wire as wire
from weft.cluster.rpc.channel import Channel, Limit, settle, too_large
from weft.cluster.rpc.deadline import Alarm
from weft.cluster.rpc.message import Array, Buffer, Message, encode
from weft.cluster.rpc.options import RpcOptions, read_file
from weft.cluster.rpc.session import hello
from weft.errors import DataError, UnavailableError
from weft.host.crew import Crew

CANCEL_SECONDS: Final = 5.0


class _Call(Future[Message]):
    """A future whose cancellation reaches the server."""

    def __init__(self, give_up: Callable[[], None]) -> None:
        super().__init__()
        self._give_up = give_up

    def cancel(self) -> bool:
        """See `Future.cancel`."""
        cancelled = super().cancel()
        if cancelled:
            self._give_up()
        return cancelled


class GrpcChannel(Channel):
    """A channel over gRPC.

    Attributes:
        welcome: what the server answered to the hello.
    """

    def __init__(self, address: str, options: RpcOptions, name: str, own_name: str) -> None:
        super().__init__(name, address, options)
        self._channel = _open(address, options)
        self._numbers = itertools.count(1)
        self._late: dict[int, Future[Message]] = {}  # calls whose answers may come as notes
        self._failure: Exception | None = None
        self._crew = Crew("weft-rpc-client")
        self._lock = threading.Lock()
        unary = self._channel.unary_unary
        self._ask, self._put, self._fetch, self._cancel = (
            unary(f"/{wire.SERVICE}/{method}") for method in ("call", "part", "fetch", "cancel")
        )
        self.welcome: dict[str, Any] = {}
        try:
            self._greet(own_name)
        except BaseException:
            self.close()
            raise
        self._secret = bytes.fromhex(str(self.welcome["secret"]))
        self.most_bytes = min(options.max_message_bytes, int(self.welcome["most"]))

    def _greet(self, own_name: str) -> None:
        limit, first = self.options.connect_timeout, Future[bytes]()
        greet = self._channel.unary_stream(f"/{wire.SERVICE}/hello")
        stream = greet(hello(own_name, self.options), wait_for_ready=True)
        self._reader = threading.Thread(
            target=self._read_notes, args=(stream, first), name="weft-rpc-notes", daemon=True
        )
        self._reader.start()
        try:
            data = first.result(limit)
        except LateError:
            raise self.lost(f"does not answer after {limit:g} s{self._reason()}") from None
        self.welcome = self.answer(data).head

    def _reason(self) -> str:
        """Why there is no connection, as gRPC tells it."""
        try:
            self._ask(b"", timeout=0.2)
        except grpc.RpcError as error:
            details = str(getattr(error, "details", lambda: "")() or "").splitlines()
            return f" ({details[0][:300]})" if details else ""
        return ""

    # -- calls

    @property
    def closed(self) -> bool:
        """See `Channel.closed`."""
        return self._failure is not None

    def call(self, message: Message, timeout: float | None = None) -> Message:
        """See `Channel.call`."""
        limit = Limit(self.options.deadline if timeout is None else timeout, message.kind)
        number = next(self._numbers)
        late: Future[Message] = Future()
        self._late[number] = late
        try:
            request = self._request(number, message, limit)
            data = self._ask(request, timeout=limit.left())
            if data[0] == wire.LATER:
                return late.result(limit.left())
            return self.answer(
                self._whole(number, data[0], memoryview(data)[wire.ANSWER.size :], limit)
            )
        except (grpc.RpcError, LateError) as error:
            self._give_up(number)
            raise self._translated(error, limit) from None
        except BaseException:
            if number in self._late:
                self._give_up(number)
            raise
        finally:
            self._late.pop(number, None)

    def start(self, message: Message, timeout: float | None = None) -> Future[Message]:
        """See `Channel.start`."""
        limit = Limit(self.options.deadline if timeout is None else timeout, message.kind)
        number = next(self._numbers)
        future = _Call(lambda: self._dropped(number))
        self._late[number] = future
        parts = encode(message)
        if self.check_size(message, parts) > wire.PIECE_BYTES:
            self._crew.do(lambda: self._start(number, message, limit))
        else:
            self._start(number, message, limit)
        if limit.until is not None:
            alarm = Alarm.at(limit.until, lambda: self._expired(number, limit))
            future.add_done_callback(lambda _: alarm.cancel())
        return future

    def _start(self, number: int, message: Message, limit: Limit) -> None:
        try:
            if self._failure is not None:
                raise self._failure
            asked = self._ask.future(self._request(number, message, limit), timeout=limit.left())
        except Exception as error:  # it belongs to whoever asks the future
            self._settle(number, self._translated(error, limit))
        else:
            _kept(asked).add_done_callback(lambda done: self._asked(number, done, limit))

    def _asked(self, number: int, done: Any, limit: Limit) -> None:
        """An answer has arrived, or a note will follow."""
        try:
            data = done.result()
        except BaseException as error:
            self._settle(number, self._translated(error, limit))
            return
        self._take(number, data[0], memoryview(data)[wire.ANSWER.size :], limit)

    def _take(self, number: int, kind: int, data: memoryview, limit: Limit | None = None) -> None:
        if kind == wire.LARGE:  # this is gRPC's thread or the reader: fetching must not hold it up
            self._crew.do(lambda: self._finish(number, kind, data, limit))
        elif kind == wire.WHOLE:
            self._finish(number, kind, data, limit)

    def _finish(self, number: int, kind: int, data: memoryview, limit: Limit | None) -> None:
        result: Message | BaseException
        try:
            result = self.answer(self._whole(number, kind, data, limit))
        except BaseException as error:
            result = self._translated(error, limit)
        self._settle(number, result)

    def _settle(self, number: int, result: Message | BaseException) -> None:
        future = self._late.pop(number, None)
        if future is not None:
            settle(future, result)

    def _request(self, number: int, message: Message, limit: Limit) -> bytes:
        """The request of a call, after the pieces of its message if it is large."""
        if self._failure is not None:
            raise self._failure
        parts = encode(message)
        size = self.check_size(message, parts)
        start = wire.REQUEST.pack(self._secret, number)
        if size <= wire.PIECE_BYTES:
            return b"".join((start, *parts))
        self._put_parts(start, parts, size, limit)
        return start

    def _put_parts(self, start: bytes, parts: list[Buffer], size: int, limit: Limit) -> None:
        sent: list[Any] = []
        position = 0
        for piece in wire.pieces_of(parts):
            if len(sent) >= wire.PIECES_AT_ONCE:
                self._check_put(sent.pop(0).result())
            request = b"".join((start, wire.SPAN.pack(size, position), *piece))
            position += sum([len(data) for data in piece])
            sent.append(self._put.future(request, timeout=limit.left()))
        for put in sent:
            self._check_put(put.result())

    def _check_put(self, data: bytes) -> None:
        if data:
            self.answer(memoryview(data)[wire.ANSWER.size :])

    def _whole(self, number: int, kind: int, data: memoryview, limit: Limit | None) -> Any:
        """The bytes of an answer, fetched if they are many."""
        if kind == wire.WHOLE:
            return data
        if kind != wire.LARGE:
            raise DataError(f"{self.who}: sent an unknown kind of answer")
        (size,) = wire.SIZE.unpack(data)
        if size > self.options.max_message_bytes:
            raise too_large("an answer", "this client", size, self.options.max_message_bytes)
        out = np.empty(size, np.uint8)
        start = wire.REQUEST.pack(self._secret, number)
        sent: list[tuple[int, Any]] = []
        for offset in range(0, size, wire.PIECE_BYTES):
            if len(sent) >= wire.PIECES_AT_ONCE:
                _fill(out, *sent.pop(0))
            request = start + wire.SPAN.pack(offset, wire.PIECE_BYTES)
            sent.append((offset, self._fetch.future(request, timeout=limit and limit.left())))
        for offset, fetched in sent:
            _fill(out, offset, fetched)
        _kept(self._fetch.future(start + wire.SPAN.pack(0, 0), CANCEL_SECONDS))
        return out.data

    # -- the end of calls and of the connection

    def _dropped(self, number: int) -> None:
        self._late.pop(number, None)
        self._give_up(number)

    def _expired(self, number: int, limit: Limit) -> None:
        future = self._late.pop(number, None)
        if future is not None:
            self._give_up(number)
            settle(future, limit.error(self.who))

    def _give_up(self, number: int) -> None:
        """Have the server cancel a call."""
        if self._failure is None:
            with contextlib.suppress(ValueError, grpc.RpcError):  # the channel is closed
                _kept(self._cancel.future(wire.REQUEST.pack(self._secret, number), CANCEL_SECONDS))

    def _read_notes(self, stream: Any, first: Future[bytes]) -> None:
        try:
            for data in stream:
                if not first.done():
                    first.set_result(data)
                    continue
                number, kind = wire.NOTE.unpack_from(data)
                self._take(number, kind, memoryview(data)[wire.NOTE.size :])
            error: Exception = self.lost("the server has ended the connection")
        except grpc.RpcError as failed:
            error = self._translated(failed)
        if not first.done():
            first.set_exception(error)
        self._end(error)

    def _end(self, error: Exception) -> None:
        """Fail all calls."""
        with self._lock:
            if self._failure is None:
                self._failure = error
        for number in list(self._late):
            self._settle(number, self._failure)

    def close(self) -> None:
        """See `Channel.close`."""
        self._end(self.lost("the channel is closed"))
        self._channel.close()
        if self._reader is not threading.current_thread():
            self._reader.join()
        self._crew.shutdown()

    def _translated(self, error: BaseException, limit: Limit | None = None) -> Exception:
        """An error of gRPC as one of ours."""
        code = error.code() if isinstance(error, grpc.RpcError) else None
        late = code == grpc.StatusCode.DEADLINE_EXCEEDED or isinstance(error, LateError)
        if late and limit is not None:
            return limit.error(self.who)
        if self._failure is not None:
            return self._failure
        if isinstance(error, grpc.RpcError | grpc.FutureCancelledError):
            details = str(getattr(error, "details", lambda: "")() or error)
            return self.lost(f"has failed or is cut off ({details.splitlines()[0][:300]})")
        return error if isinstance(error, Exception) else UnavailableError(str(error))


def _open(address: str, options: RpcOptions) -> grpc.Channel:
    if not options.authority:
        return grpc.insecure_channel(address, wire.settings(options))
    own = (
        (read_file(options.key), read_file(options.certificate))
        if options.certificate
        else (None, None)
    )
    credentials = grpc.ssl_channel_credentials(read_file(options.authority), *own)
    extra = [("grpc.ssl_target_name_override", options.server_name)] if options.server_name else []
    return grpc.secure_channel(address, credentials, [*wire.settings(options), *extra])


def _kept(call: Any) -> Any:
    """A call that lives until it is done; gRPC cancels one that nothing refers to."""
    call.add_done_callback(lambda _: call)
    return call


def _fill(out: Array, offset: int, fetched: Any) -> None:
    data = fetched.result()
    if len(data) != min(wire.PIECE_BYTES, len(out) - offset):
        raise DataError("fetch: the server has sent a piece of another size")
    out[offset : offset + len(data)] = np.frombuffer(data, np.uint8)

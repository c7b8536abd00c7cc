"""A client's connection to one task, whatever carries the messages."""

from __future__ import annotations

import abc
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, Final

import numpy as np

from weft.cluster.rpc.failure import KIND, from_message
from weft.cluster.rpc.message import Array, Buffer, Message, decode, size_of
from weft.cluster.rpc.options import RpcOptions
from weft.errors import DataError, DeadlineError, TooLargeError, UnavailableError


class Channel(abc.ABC):
    """Sends messages to a task and returns its answers; safe to use from several threads.

    Once the task has failed, or the channel is closed, every call fails; `connect` makes another.
    Messages that several threads send, or one thread starts, may be handled in any order.

    Attributes:
        name, address: of the task.
        who: both, as errors name the task.
    """

    def __init__(self, name: str, address: str, options: RpcOptions) -> None:
        self.name: Final = name
        self.address: Final = address
        self.options: Final = options
        self.who: Final = f"{name} at {address}" if name else address
        self.most_bytes = options.max_message_bytes

    @abc.abstractmethod
    def call(self, message: Message, timeout: float | None = None) -> Message:
        """The answer to a message.

        Args:
            message: what is sent; its arrays must not change meanwhile.
            timeout: the most seconds that it may take, instead of `RpcOptions.deadline`.

        Raises:
            UnavailableError: the task has failed, is stopped or cut off, or the channel is closed.
            DeadlineError: no answer in time; the call is cancelled.
            TooLargeError: a message above `RpcOptions.max_message_bytes`.
            WeftError: what the handler raised, as the same class.
        """

    @abc.abstractmethod
    def start(self, message: Message, timeout: float | None = None) -> Future[Message]:
        """The future answer to a message; `cancel()` of it reaches the handler. See `call`."""

    @abc.abstractmethod
    def close(self) -> None:
        """End the connection; calls that wait fail."""

    @property
    @abc.abstractmethod
    def closed(self) -> bool:
        """Whether calls can only fail."""

    @property
    def shared(self) -> bool:
        """Whether large arrays travel through shared memory."""
        return False

    def allocate(self, shape: Sequence[int], dtype: Any) -> Array:
        """An uninitialized array that `call` sends without a copy, if memory is shared.

        Do not change it after it was sent. Its memory is used again once it has no reference here
        and the receiver has none to its own view.
        """
        return np.empty(tuple(shape), dtype)

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def check_size(self, message: Message, parts: Sequence[Buffer]) -> int:
        """The size of an encoded message, unless the task would refuse it."""
        size = size_of(parts)
        if size > self.most_bytes:
            raise too_large(message.kind, self.who, size, self.most_bytes)
        return size

    def answer(self, data: Buffer | Array) -> Message:
        """The answer that these bytes are; raises if they are an error."""
        try:
            message = decode(data)
        except DataError as error:
            raise UnavailableError(
                f"{self.who}: sent an answer that is no message: {error}"
            ) from None
        return self.checked(message)

    def checked(self, message: Message) -> Message:
        """An answer; raises if it is an error."""
        if message.kind == KIND:
            raise from_message(message, self.who)
        return message

    def lost(self, why: str) -> UnavailableError:
        """The error of calls after the connection has ended."""
        return UnavailableError(f"{self.who}: {why}")


class Limit:
    """Until when a call may take."""

    def __init__(self, seconds: float | None, kind: str) -> None:
        self.seconds, self._kind = seconds, kind
        self.until = None if seconds is None else time.monotonic() + seconds

    def left(self) -> float | None:
        """The seconds that are left."""
        return None if self.until is None else max(0.0, self.until - time.monotonic())

    def passed(self) -> bool:
        """Whether there is no time left."""
        return self.until is not None and time.monotonic() >= self.until

    def error(self, who: str) -> DeadlineError:
        """The error of a call that takes longer."""
        return DeadlineError(f"{self._kind} to {who}: no answer after {self.seconds:g} s")


def too_large(kind: str, who: str, size: int, most: int) -> TooLargeError:
    """The error of a message above the limit."""
    return TooLargeError(
        f"{kind} to {who}: a message of {size:,} bytes, but max_message_bytes is {most:,}; "
        "raise it in the RpcOptions of both, or send less at once"
    )


def settle(future: Future[Message], result: Message | BaseException) -> None:
    """Give a future its result, unless it was cancelled."""
    if not future.set_running_or_notify_cancel():
        return
    if isinstance(result, BaseException):
        future.set_exception(result)
    else:
        future.set_result(result)

"""Calls of resources in other tasks: they wait until they are answered or given up.

Who gives a call up asks the task to end it and waits for the answer all the same: a dequeue that
was faster has its element in it, which would be lost otherwise.
"""

from __future__ import annotations

import itertools
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Final

from weft.cluster.rpc import Channel, Message
from weft.cluster.rpc.channel import settle
from weft.cluster.rpc.deadline import Alarm
from weft.errors import ClosedError, UnavailableError, WeftError
from weft.host.crew import Crew
from weft.resource.base import Array, Cancellation

PATIENCE: Final = 5.0
"""Seconds that the answer to a call that was given up may take."""
MOST_GIVEN_UP: Final = 1024
"""How many calls are remembered that were given up before they came, or after they had ended."""
_process: Final = secrets.token_hex(8)
_numbers: Final = itertools.count()


class Pending:
    """Calls under way; a session is closed after the last is answered, as all are given up then."""

    def __init__(self) -> None:
        self._count = 0
        self._closed = False
        self._changed = threading.Condition()

    def __enter__(self) -> None:
        """Begin a call.

        Raises:
            ClosedError: there may be no more.
        """
        with self._changed:
            if self._closed:
                raise ClosedError("session: expected an open session, got a closed one")
            self._count += 1

    def __exit__(self, *exc: object) -> None:
        with self._changed:
            self._count -= 1
            self._changed.notify_all()

    def close(self) -> None:
        """Begin no more calls, and wait for the answers to those under way."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: self._count == 0, PATIENCE)


def answered(channel: Channel, message: Message, cancel: Cancellation, kind: str) -> Message:
    """The answer to a message, whenever it comes.

    Args:
        channel: to the task.
        message: for it.
        cancel: gives the call up.
        kind: of the message that tells the task so.

    Raises:
        CancelledError: it was given up, and had no effect.
        UnavailableError: the task has failed.
    """
    cancel.check()
    call = f"{_process}/{next(_numbers)}"
    future = channel.start(message._replace(head={**message.head, "call": call}))
    alarms: list[Alarm] = []

    def give_up(error: BaseException) -> None:
        del error
        alarms.append(Alarm.at(time.monotonic() + PATIENCE, future.cancel))
        try:
            channel.start(Message(kind, {"call": call}))
        except WeftError:
            future.cancel()

    withdraw = cancel.add(give_up)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        cancel.check()
        raise
    finally:
        withdraw()
        for alarm in alarms:
            alarm.cancel()


class Calls:
    """Calls of resources for other tasks, each on a thread.

    Args:
        crew: of the threads.
    """

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._all: dict[str, Cancellation] = {}
        self._given_up: OrderedDict[str, None] = OrderedDict()  # some that were not under way
        self._lock = threading.Lock()

    def start(
        self, message: Message, parent: Cancellation,
        call: Callable[[Cancellation], Sequence[Array]],
    ) -> Future[Message]:  # fmt: skip
        """Begin a call; it ends with its parent, with its caller, or when it is given up.

        Args:
            message: asks for it.
            parent: of the cancellation that the call gets.
            call: makes it.
        """
        name: str = message.head["call"]
        cancel = Cancellation(parent)
        with self._lock:
            self._all[name] = cancel
            early = name in self._given_up
        if early:
            cancel.cancel()
        future: Future[Message] = Future()
        future.add_done_callback(lambda done: cancel.cancel() if done.cancelled() else None)

        def run() -> None:
            result: Message | BaseException
            try:
                with cancel:
                    result = Message("called", {}, list(call(cancel)))
            except BaseException as error:  # it travels to the caller
                result = error
            self._all.pop(name, None)
            settle(future, result)

        if not self._crew.do(run):
            settle(future, UnavailableError("the server is stopped"))
        return future

    def give_up(self, message: Message) -> Message:
        """End a call, if it still waits, or once it comes; its own answer tells."""
        name: str = message.head["call"]
        with self._lock:
            found = self._all.get(name)
            if found is None:  # messages may overtake each other
                self._given_up[name] = None
                if len(self._given_up) > MOST_GIVEN_UP:
                    self._given_up.popitem(last=False)
        if found is not None:
            found.cancel()
        return Message("given up")

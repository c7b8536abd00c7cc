"""Calls that wait until they are cancelled: those of other tasks, and those for them."""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

from weft.cluster.rpc import Channel, Message
from weft.cluster.rpc.channel import settle
from weft.cluster.rpc.deadline import Alarm
from weft.errors import UnavailableError
from weft.host.crew import Crew
from weft.resource.base import Cancellation

GRACE_SECONDS: Final = 1.0
"""How long a call that is cancelled waits for the answer, which may have been on its way."""
MOST_EARLY: Final = 1024
"""How many cancelled calls that have not arrived, or are over, a task remembers."""
_OWN: Final = secrets.token_hex(8)
_numbers: Final = itertools.count()


def answered(channel: Channel, message: Message, cancel: Cancellation) -> Message:
    """The answer to a message, whenever it comes.

    If it is cancelled, the task says whether it gave the call up in time: what it had taken from a
    queue before is not lost, but the answer.

    Args:
        channel: to the task.
        message: for it; its head gets a name for the call.
        cancel: ends the wait, here and in the task.

    Raises:
        CancelledError: it was cancelled.
        UnavailableError: the task has failed.
    """
    call = f"{_OWN}.{os.getpid()}.{next(_numbers)}"
    future = channel.start(message._replace(head={**message.head, "call": call}))
    alarms: list[Alarm] = []

    def give_up(error: BaseException) -> None:
        del error
        alarms.append(Alarm.at(time.monotonic() + GRACE_SECONDS, future.cancel))
        with contextlib.suppress(UnavailableError):
            channel.start(Message("withdraw", {"call": call}))

    withdraw = cancel.add(give_up)
    try:
        return future.result()
    except BaseException:  # Ctrl-C too
        future.cancel()
        cancel.check()
        raise
    finally:
        withdraw()
        for alarm in alarms:
            alarm.cancel()


class Calls:
    """The calls of others that wait in this task.

    Args:
        crew: threads for them.
    """

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._lock = threading.Lock()
        self._waiting: dict[str, Cancellation] = {}
        self._early: OrderedDict[str, None] = OrderedDict()

    def begin(
        self, message: Message, work: Callable[[Cancellation], Message],
        parent: Cancellation | None = None,
    ) -> Future[Message]:  # fmt: skip
        """The answer of a call that may wait; `cancel` of the future ends the wait.

        A future that an executor gives does not: it runs already, and cannot be cancelled.

        Args:
            message: from `answered`.
            work: gets what ends its wait.
            parent: ends it too.
        """
        name, cancel, future = message.head["call"], Cancellation(parent), Future[Message]()
        with self._lock:
            self._waiting[name] = cancel
            early = self._early.pop(name, name) is None
        if early:  # messages may overtake each other
            cancel.cancel()

        def run() -> None:
            try:
                with cancel:
                    answer: Message | BaseException = work(cancel)
            except BaseException as error:  # it travels to the caller
                answer = error
            with self._lock:
                del self._waiting[name]
            settle(future, answer)

        def given_up(done: Future[Message]) -> None:
            if done.cancelled():
                cancel.cancel()

        future.add_done_callback(given_up)
        if not self._crew.do(run):
            settle(future, UnavailableError("the server is stopped"))
        return future

    def withdraw(self, message: Message) -> Message:
        """Cancel a call, which may not have arrived."""
        name = message.head["call"]
        with self._lock:
            cancel = self._waiting.get(name)
            if cancel is None:
                self._early[name] = None
                if len(self._early) > MOST_EARLY:
                    self._early.popitem(last=False)
        if cancel is not None:
            cancel.cancel()
        return Message("withdrawn")

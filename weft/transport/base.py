"""The interface of transports: messages to other ranks, and short notes.

All communication is built on `start`, so every wait knows which ranks it waits for.
"""

from __future__ import annotations

import abc
import itertools
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from weft.errors import DistributedError
from weft.host.deferred import Deferred
from weft.host.interrupt import Uninterrupted, have_effect
from weft.ir.node import at_user_line
from weft.transport.native import FAILED, Words
from weft.transport.tally import Tally
from weft.transport.worker import Worker

if TYPE_CHECKING:
    from concurrent import futures
else:
    futures = Deferred("concurrent.futures")

Array = np.ndarray[Any, Any]
NO_GROUP: Final = -1
"""The group number of point-to-point messages, which are not compared between ranks."""
ATTENTIVE_SECONDS: Final = 0.1
"""The longest time until Ctrl-C takes effect."""


class Part(NamedTuple):
    """A message to a rank or from it: contiguous bytes."""

    peer: int
    data: Array


def described(error: BaseException | None) -> str:
    """An exception in one line, as other ranks report it."""
    if error is None:
        return "an error in the step"
    return f"{type(error).__name__}: {error}".removesuffix(": ")


class Pending(abc.ABC):
    """Messages in flight."""

    @abc.abstractmethod
    def done(self) -> bool:
        """Whether all have arrived; lets the transport make progress."""

    @abc.abstractmethod
    def missing(self) -> list[int]:
        """Ranks whose messages have not arrived."""

    @abc.abstractmethod
    def give_up(self) -> None:
        """Cancel, so that nothing more is written to the memory of these messages."""


class Exchange(Pending):
    """Persistent messages: the same memory is sent and received repeatedly."""

    @abc.abstractmethod
    def run(self) -> bool:
        """Send and receive once more; returns whether all messages have already arrived."""

    @abc.abstractmethod
    def close(self) -> None:
        """Free the transport's resources."""


@dataclass(frozen=True)
class Failure:
    """Why a job cannot continue.

    Attributes:
        rank: where it happened.
        text: the message of the error on all ranks.
    """

    rank: int
    text: str


class Zeros(NamedTuple):
    """The contribution of zeros to a reduction."""

    reduction: str
    dtype: str
    size: int


@dataclass
class Waiting:
    """A call that waits for other ranks.

    Attributes:
        what: the call, as errors name it, for example `all_reduce(sum) of float32[3]`.
        line: the user's line, as ` (created at train.py:31)`.
        group: the number of its group.
        turn: the number of the call in that group.
        pending: the messages it waits for.
        neutral: the contribution of ranks that have joined; see `weft.transport.join`.
    """

    what: str
    line: str
    group: int
    turn: int
    pending: Pending | None = None
    neutral: Zeros | None = None

    def __str__(self) -> str:
        return f"{self.what}{self.line}"


class CallLock:
    """Held within a call. Calls from two threads would have no defined order between ranks.

    Raises:
        DistributedError: on entry, another thread holds it.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            transport, name = self._transport, threading.current_thread().name
            text = (
                f"rank {transport.rank}: thread {name} calls a collective while another thread is "
                f"in {transport.waiting or 'one'}: one thread of a rank calls them at a time"
            )
            raise DistributedError(transport.fail(text + at_user_line()).text)

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class Transport(abc.ABC):
    """The connection of this rank with all others.

    Attributes:
        rank: of this process, from 0.
        size: the number of ranks.
        failure: set when the job cannot continue; every wait raises then.
        waiting: the call that is waiting now.
        left: ranks that have ended.
        joined: ranks that have no more data, with the number of world calls before they joined.
    """

    def __init__(self, rank: int, size: int) -> None:
        self.rank = rank
        self.size = size
        self.failure: Failure | None = None
        self.waiting: Waiting | None = None
        self.left: set[int] = set()
        self.joined: dict[int, int] = {}
        self.lock = CallLock(self)
        self.words = Words()  # flags for native code, and its counters
        self.worker = Worker(self.words)
        self.tally = Tally(self.words)
        self.tickets: dict[int, futures.Future[Any]] = {}  # results of started calls, by ticket
        self.numbers = itertools.count(1)  # the next ticket
        self.reductions: deque[futures.Future[Any]] = deque()  # in flight, holding whole gradients
        self.crowded = True  # whether ranks share cores: waiting threads then yield
        self.single_core = False  # whether all threads of this rank share one core
        self.place: str | None = None  # the user's line that submitted the current work
        self.attention = threading.Event()  # wakes the monitor: notes to send or to read

    @abc.abstractmethod
    def start(self, sends: Sequence[Part], receives: Sequence[Part], tag: int) -> Pending:
        """Start sends and receives; messages between two ranks with one tag keep their order.

        Memory that is sent must not change until all is done.
        """

    @abc.abstractmethod
    def source_of(self, tag: int) -> int | None:
        """The source of a message with this tag that has arrived but is not yet received."""

    def prepare(self, sends: Sequence[Part], receives: Sequence[Part], tag: int) -> Exchange:
        """Persistent messages; see `start`."""
        return _Restarted(self, sends, receives, tag)

    @abc.abstractmethod
    def note(self, peer: int, text: str) -> None:
        """Send a short note, without waiting."""

    @abc.abstractmethod
    def notes(self) -> list[str]:
        """Notes that have arrived."""

    @abc.abstractmethod
    def close(self) -> None:
        """Close the connection."""

    def submit(self, work: Callable[[], Any], deferred: bool = False) -> futures.Future[Any]:
        """Queue work for the communication thread; see `Worker.submit`."""
        place = at_user_line()

        def placed() -> Any:
            self.place = place
            try:
                return work()
            finally:
                self.place = None

        return self.worker.submit(placed, deferred)

    def result_of(self, future: futures.Future[Any]) -> Any:
        """Wait for work of the communication thread; Ctrl-C takes effect, even within a step."""
        if not future.done():
            self.worker.catch_up()
        while not future.done():
            futures.wait([future], ATTENTIVE_SECONDS)
            have_effect()
        return future.result()

    def check(self) -> None:
        """Raise if the job cannot continue.

        Raises:
            DistributedError: names the rank that failed, and why.
        """
        if self.failure is not None:
            raise DistributedError(self.failure.text)

    def fail(self, text: str) -> Failure:
        """Set this rank's failure; the first one counts."""
        if self.failure is None:
            self.take_failure(Failure(self.rank, text))
            self.attention.set()
        assert self.failure is not None
        return self.failure

    def take_failure(self, failure: Failure) -> None:
        """Record why the job cannot continue."""
        self.failure = failure
        self.words[FAILED] = 1

    def abandon(self, error: BaseException | None) -> None:
        """Fail the job, because a step has ended before the reductions that it had started.

        The communication thread uses that step's memory; it is idle when this returns.
        """
        with Uninterrupted():
            self.tickets.clear()
            self.fail(
                f"rank {self.rank} failed between the begin and the end of reductions"
                f"{at_user_line()}: {described(error)}"
            )
            self.worker.drain()  # queued work fails


class _Restarted(Exchange):
    """Persistent messages by `start`, for transports that have none of their own."""

    def __init__(
        self, transport: Transport, sends: Sequence[Part], receives: Sequence[Part], tag: int
    ) -> None:
        self._transport, self._sends, self._receives = transport, sends, receives
        self._tag = tag
        self._pending: Pending | None = None

    def run(self) -> bool:
        self._pending = self._transport.start(self._sends, self._receives, self._tag)
        return self._pending.done()

    def done(self) -> bool:
        return self._pending is None or self._pending.done()

    def missing(self) -> list[int]:
        return [] if self._pending is None else self._pending.missing()

    def give_up(self) -> None:
        if self._pending is not None:
            self._pending.give_up()

    def close(self) -> None:
        """Nothing to free."""

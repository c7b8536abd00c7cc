"""Groups: ranks that make the same collective calls in the same order."""

from __future__ import annotations

import contextlib
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from weft.errors import DistributedError
from weft.ir.node import at_user_line
from weft.transport.base import Array, Exchange, Part, Pending, Transport, Waiting, Zeros
from weft.transport.channel import Channel
from weft.transport.tally import Span
from weft.transport.wait import wait

TAG_BITS: Final = 28
"""MPICH's tags have 29 bits; the last one separates users' messages from those of collectives."""
TIMEOUT_SECONDS: Final = 600.0


class Group:
    """An ordered subset of a transport's ranks; members are addressed by their index.

    Args:
        transport: the connection of this process with all ranks.
        ranks: the members' ranks, in the order of the group.
        number: identifies the group; the same on all ranks.
        timeout: seconds after which waiting for a member is an error.

    Attributes:
        index: this process's index in the group; -1 if it is not a member.
        channel: the members' shared memory, if they have any.
    """

    def __init__(
        self, transport: Transport, ranks: Sequence[int], number: int = 0,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:  # fmt: skip
        self.transport = transport
        self.ranks = tuple(ranks)
        self.number = number
        self.timeout = timeout
        self.size = len(self.ranks)
        self.index = self.ranks.index(transport.rank) if transport.rank in self.ranks else -1
        self.channel: Channel | None = None
        self._turn = 0
        self._unconfirmed: list[tuple[Pending, Waiting]] = []
        self.prepared: dict[Any, Any] = {}  # see `weft.transport.small` and `shared`

    def __deepcopy__(self, memo: dict[int, Any]) -> Group:
        return self  # a copy of a module uses the same ranks

    @contextlib.contextmanager
    def call(self, what: str, neutral: Zeros | None = None) -> Iterator[int]:
        """Context of a collective; yields the tag of its messages.

        Args:
            neutral: the contribution of a member without data, if there is one.

        Messages of different calls never match, because the tag is a hash of `what`. A member that
        waits tells the others in which call it waits (`weft.transport.monitor`).

        Raises:
            DistributedError: this process is not a member, or the job cannot continue.
        """
        self.check_member(what)
        transport = self.transport
        transport.worker.drain()
        with transport.lock:
            transport.check()
            self.confirm()
            self._turn += 1
            place = at_user_line() if transport.place is None else transport.place
            outer, begin = transport.waiting, time.monotonic_ns()
            transport.waiting = Waiting(what, place, self.number, self.turn, None, neutral)
            try:
                yield self.tag_of(what)
            finally:
                transport.waiting = outer
                self._count(what, begin)

    def confirm_later(self, tag: int, members: Sequence[int]) -> None:
        """Within a call that only sends: expect these members' confirmation before the next call.

        Otherwise ranks that pass different roots, and all send, would not notice.
        """
        waiting = self.transport.waiting
        if members and waiting is not None:
            empty = np.zeros(0, np.uint8)
            pending = self.start(tag ^ 1, {}, dict.fromkeys(members, empty))
            self._unconfirmed.append((pending, waiting))

    def confirm_to(self, tag: int, root: int) -> None:
        """Confirm the receipt of the root's message; see `confirm_later`."""
        self.exchange(tag ^ 1, {root: np.zeros(0, np.uint8)}, {})

    def confirm(self) -> None:
        """Wait for the confirmations of calls that only send.

        Raises:
            DistributedError: members make other calls, failed, ended or did not answer.
        """
        while self._unconfirmed:
            pending, waiting = self._unconfirmed.pop(0)
            outer, self.transport.waiting = self.transport.waiting, waiting
            try:
                self.wait(pending)
            finally:
                self.transport.waiting = outer

    def _count(self, what: str, begin: int) -> None:
        """Count a call and its time."""
        tally, end = self.transport.tally, time.monotonic_ns()
        tally.calls += 1
        tally.seconds += (end - begin) / 1e9
        if tally.spans is not None:
            tally.spans.append(Span(what, begin, end))

    def check_member(self, what: str) -> None:
        """Check that this process is a member.

        Raises:
            DistributedError: it is not.
        """
        if self.index < 0:
            raise DistributedError.here(
                f"{what}: rank {self.transport.rank} is no member of the group of "
                f"ranks {list(self.ranks)}"
            )

    @property
    def shares_core(self) -> bool:
        """Whether calls use only the one core on which this rank also computes."""
        return self.channel is not None and self.transport.single_core

    def tag_of(self, what: str) -> int:
        """The tag of the messages of a call."""
        return zlib.crc32(what.encode(), self.number) >> (32 - TAG_BITS)

    def prepare(
        self, what: str, sends: Mapping[int, Array], receives: Mapping[int, Array]
    ) -> Exchange:
        """Persistent messages of a call, by member."""
        parts = self._parts(sends), self._parts(receives)
        return self.transport.prepare(*parts, self.tag_of(what))

    @property
    def turn(self) -> int:
        """How many calls this process has made as a member."""
        return self._turn + (0 if self.channel is None else self.channel.calls)

    def repeat(self, what: str, exchange: Exchange, neutral: Zeros | None = None) -> None:
        """Make a call with persistent messages; cheaper than `call` if nobody has to wait.

        Raises:
            DistributedError: a member failed, ended or did not answer.
        """
        transport = self.transport
        transport.check()
        self._turn += 1
        spans = transport.tally.spans
        begin = 0 if spans is None else time.monotonic_ns()  # a clock takes a tenth of the call
        if exchange.run():
            transport.tally.calls += 1
            if spans is not None:
                spans.append(Span(what, begin, time.monotonic_ns()))
            return
        begin = begin or time.monotonic_ns()
        try:
            self._wait_in(what, exchange, neutral)
        finally:
            self._count(what, begin)

    def wait_late(self, what: str, exchange: Exchange, neutral: Zeros | None = None) -> None:
        """Wait in a call that native code has started and counted."""
        with self.transport.lock:
            self.transport.check()
            begin = time.monotonic_ns()
            try:
                self._wait_in(what, exchange, neutral)
            finally:
                self.transport.tally.seconds += (time.monotonic_ns() - begin) / 1e9

    def _wait_in(self, what: str, exchange: Exchange, neutral: Zeros | None) -> None:
        transport = self.transport
        place = at_user_line() if transport.place is None else transport.place
        outer = transport.waiting
        transport.waiting = Waiting(what, place, self.number, self.turn, None, neutral)
        try:
            wait(transport, exchange, self.timeout)
        finally:
            transport.waiting = outer

    def meet(self, channel: Channel) -> None:
        """Raise this member's flag and wait for all others; within a call."""
        if not channel.run():
            self.wait(channel)

    def exchange(self, tag: int, sends: Mapping[int, Array], receives: Mapping[int, Array]) -> None:
        """Send arrays to members and receive from members, by index, all at once.

        Raises:
            DistributedError: a member failed, ended or did not answer.
        """
        if sends or receives:
            self.wait(self.start(tag, sends, receives))

    def start(
        self, tag: int, sends: Mapping[int, Array], receives: Mapping[int, Array]
    ) -> Pending:  # fmt: skip
        """Start an `exchange`; messages of a call between two members keep their order."""
        return self._start(tag, self._parts(sends), self._parts(receives))

    def wait(self, pending: Pending) -> None:
        """Wait for an exchange that was started."""
        wait(self.transport, pending, self.timeout)

    def exchange_many(
        self, tag: int, sends: Mapping[int, Sequence[Array]],
        receives: Mapping[int, Sequence[Array]],
    ) -> None:  # fmt: skip
        """`exchange` of several arrays with each member, in order."""
        parts = [
            [part for index, arrays in side.items() for part in self._several(index, arrays)]
            for side in (sends, receives)
        ]
        self.wait(self._start(tag, *parts))

    def _several(self, index: int, arrays: Sequence[Array]) -> list[Part]:
        return [Part(self.ranks[index], bytes_of(array)) for array in arrays]

    def _start(self, tag: int, parts: list[Part], receives: list[Part]) -> Pending:
        self.transport.tally.sent += sum([part.data.size for part in parts])
        return self.transport.start(parts, receives, tag)

    def _parts(self, arrays: Mapping[int, Array]) -> list[Part]:
        return [Part(self.ranks[index], bytes_of(array)) for index, array in arrays.items()]


def bytes_of(array: Array) -> Array:
    """The memory of a contiguous array."""
    return array.reshape(-1).view(np.uint8)

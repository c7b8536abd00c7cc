"""The job of this process: its transport, its groups, its end."""

from __future__ import annotations

import atexit
import itertools
import os
import sys
import traceback
import zlib
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Final

from weft.errors import DistributedError
from weft.host.cores import launched
from weft.ir.hooks import HOOKS
from weft.ir.node import NOT_THE_USER
from weft.transport.arrival import note_failure, tell
from weft.transport.base import Transport, described
from weft.transport.group import TIMEOUT_SECONDS, Group
from weft.transport.local import LocalTransport
from weft.transport.monitor import Monitor
from weft.transport.mpi import MpiTransport
from weft.transport.native import Native
from weft.transport.sequence import CallSequence
from weft.transport.shared_memory import share
from weft.transport.supervisor import JOINED, LEFT

LOCAL: Final = 1 << 24
"""Group numbers from here on belong to groups that only their members created."""
FAREWELL_SECONDS: Final = 2.0
"""How long a failed rank waits for the others to end."""


class Session:
    """A job that this process is part of, from `begin` to `end`.

    Attributes:
        memory: the ranks' shared memory, if they have any.
    """

    def __init__(self, transport: Transport, timeout: float, native: Native | None = None) -> None:
        self.transport = transport
        self.timeout = timeout
        self.world = Group(transport, range(transport.size), 0, timeout)
        self.groups = {0: self.world}
        self._numbers = itertools.count(1)
        self._made: dict[tuple[int, ...], itertools.count[int]] = {}
        self.failed = False
        if transport.size > 1:
            tell(JOINED)
        self.monitor = Monitor(transport) if transport.size > 1 else None
        self.memory = share(transport, timeout, native) if native and transport.size > 1 else None
        self._join_memory(self.world)

    def _join_memory(self, group: Group) -> None:
        """Let a group use shared memory if all members have it."""
        group.channel = None if self.memory is None else self.memory.channel(group)

    def new_group(
        self, ranks: Sequence[int], timeout: float | None = None, local: bool = False
    ) -> Group:
        """A group of these ranks; all ranks of the job call it, members or not.

        Args:
            local: whether only its members call it; its number is then derived from their ranks.

        Raises:
            DistributedError: a rank is out of range, or occurs twice.
        """
        wrong = [r for r in ranks if not 0 <= r < self.transport.size]
        if wrong or len(set(ranks)) != len(ranks):
            raise DistributedError.here(
                f"new_group: expected different ranks from 0 to {self.transport.size - 1}, got "
                f"{list(ranks)}"
            )
        number = self._local_number(tuple(ranks)) if local else next(self._numbers)
        group = Group(self.transport, ranks, number, self.timeout if timeout is None else timeout)
        self.groups[number] = group
        self._join_memory(group)
        return group

    def _local_number(self, ranks: tuple[int, ...]) -> int:
        """A number that all members compute without communication, from `LOCAL` on."""
        count = self._made.setdefault(ranks, itertools.count())
        return LOCAL + (zlib.crc32(repr((ranks, next(count))).encode()) >> 8)

    def fail(self, error: BaseException) -> None:
        """Tell the other ranks of an exception that ends this one."""
        self.failed = True
        if self.monitor is not None:
            self.monitor.fail(_told(self.transport.rank, error))

    def end(self) -> None:
        """Leave the job together with all other ranks.

        Raises:
            DistributedError: other ranks do not end in time.
        """
        monitor = self.monitor
        for group in self.groups.values():
            if group.channel is not None:
                group.channel.close()
        if monitor is None:
            self.transport.close()
            return
        if self.failed or self.transport.failure is not None:
            note_failure(self.transport.rank)
            monitor.end(FAREWELL_SECONDS)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)  # MPI_Finalize would wait for ranks that never come
        late = monitor.end(self.timeout)
        failure = self.transport.failure
        if late or failure is not None:
            text = f"no end of ranks {late} for {self.timeout:g} s" if not failure else failure.text
            self.failed = True
            raise DistributedError(text)
        monitor.stop()
        self.transport.close()
        tell(LEFT)


_current: Final[list[Session]] = []
monitors: Final[list[Monitor]] = []
"""The monitor of this process's job; empty if there is none or the job has one rank.

Every step checks it, so it is a list to read and not a function to call.
"""


def current() -> Session | None:
    """The job of this process, if there is one."""
    return _current[-1] if _current else None


def enter(sequence: CallSequence) -> None:
    """Record a run of a program with these calls; other ranks compare them with theirs."""
    for monitor in monitors:
        monitor.enter(sequence)


def step_failed(error: BaseException | None) -> None:
    """Stop all work in the memory of a step that has failed.

    Args:
        error: the reason, if known.
    """
    for each in _current:
        if each.transport.tickets:
            each.transport.abandon(error)


def world() -> Group:
    """The group of all ranks.

    Raises:
        DistributedError: there is no job.
    """
    if not _current:
        raise DistributedError.here(
            "no process group: call weft.distributed.init_process_group() first"
        )
    return _current[-1].world


def begin(
    timeout: float = TIMEOUT_SECONDS, exchange: Callable[[], Any] | None = None,
    native: Native | None = None,
) -> Session:  # fmt: skip
    """Join the job that a launcher has started, or start a world of one.

    Args:
        exchange: loads the native function for persistent messages; see `MpiTransport`.
        native: native functions for shared memory.

    Raises:
        DistributedError: this process is already in a job, or there is no MPI.
    """
    if _current:
        raise DistributedError.here(
            "init_process_group: there is a process group already; call destroy_process_group() "
            "first"
        )
    transport = MpiTransport(timeout, exchange) if launched() else LocalTransport()
    session = Session(transport, timeout, native)
    _current.append(session)
    if session.monitor is not None:
        monitors.append(session.monitor)
    if transport.size > 1 and not _hooked:
        _hooked.append(sys.excepthook)
        sys.excepthook = _on_exception
        atexit.register(_at_exit)
    return session


def end() -> None:
    """Leave the job; see `Session.end`."""
    session = current()
    if session is not None:
        _finish(session)
        session.end()
        _current.remove(session)
        monitors.clear()


def _finish(session: Session) -> None:
    """Finish pending communication, for which other ranks may wait."""
    HOOKS.before_end()
    if session.transport.failure is None:
        session.transport.worker.catch_up()
    for group in session.groups.values():
        if session.transport.failure is None:
            group.confirm()


_hooked: Final[list[Any]] = []


def _on_exception(
    error_type: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print an uncaught exception as usual, then tell the other ranks."""
    _hooked[0](error_type, error, trace)
    session = current()
    if session is not None:
        session.fail(error)


def _at_exit() -> None:
    session = current()
    if session is None:
        return
    try:
        if not session.failed:
            _finish(session)
        session.end()
    except BaseException as error:
        traceback.print_exception(error)
        session.fail(error)
        session.end()


def _told(rank: int, error: BaseException) -> str:
    """An exception as other ranks report it, with the user's line."""
    if isinstance(error, DistributedError):
        return str(error)
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        if not frame.f_code.co_filename.startswith(NOT_THE_USER):
            place = f" ({frame.f_code.co_filename}:{line})"
    said = described(error)
    return f"rank {rank} failed: {said}{'' if place in said else place}"

"""Failure detection: notes tell which ranks have failed or ended, and which wait in which call.

A thread of each rank reads them. So failures reach ranks that compute, and calls that differ
between ranks raise errors instead of waiting forever. It costs no time unless something goes wrong.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from weft.errors import DistributedError
from weft.host.deferred import Deferred
from weft.transport.base import NO_GROUP, Failure, Transport, Waiting
from weft.transport.sequence import Announced, CallLog, CallSequence, Planned

if TYPE_CHECKING:
    import json
else:
    json = Deferred("json")

TICK_SECONDS: Final = 0.05
REPORT_SECONDS: Final = 0.05
"""A rank that waits longer tells the others in which call."""
INTERRUPT_SECONDS: Final = 1.0
"""A rank that computes is interrupted this long after another has failed."""
SIGNAL: Final = signal.SIGUSR2
NOWHERE: Final = -1
"""The rank of a failure that no single rank caused: all ranks that compute are interrupted."""


class Monitor:
    """Watches over a transport until `stop`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._others = [r for r in range(transport.size) if r != transport.rank]
        self._stopped = False
        self._log = CallLog()
        self._seen: Waiting | None = None  # the waiting call, its start, whether it is announced
        self._since = 0.0
        self._told = False
        self._reports: dict[int, dict[str, Any]] = {}
        self._failed_at: float | None = None
        self._failure_told = False
        self._interrupts = _install(transport)
        self.ended: set[int] = set()  # ranks that will send no more notes
        self._thread = threading.Thread(target=self._run, name="weft-monitor", daemon=True)
        self._thread.start()

    def announce(self, note_type: str, **what: Any) -> None:
        """Send a note to all other ranks."""
        text = json.dumps({"kind": note_type, "rank": self._transport.rank, **what})
        for peer in self._others:
            self._transport.note(peer, text)

    def enter(self, sequence: CallSequence) -> None:
        """Record that a program runs; announce a new one to the other ranks."""
        starts = self._log.enter(sequence)
        if sequence.told_in is self:
            return
        sequence.told_in = self
        for group, start in starts.items():
            self.announce("program", group=group, start=start, digests=sequence.digests[group])
        self._transport.attention.set()

    def report_of(self, group: int, turn: int) -> dict[str, Any] | None:
        """Another rank's report that it waits in this call, if there is one."""
        for note in list(self._reports.values()):
            if (note["group"], note["turn"]) == (group, turn):
                return note
        return None

    def begin_again(self) -> None:
        """Forget the programs that ranks ran; see `CallLog.begin_again`."""
        self._log.begin_again()

    def fail(self, text: str) -> None:
        """Tell all ranks that the job has failed; this rank's error unless another was first."""
        self._interrupts = False  # this rank is about to end
        failure = self._transport.fail(text)
        self.announce("failed", text=failure.text, origin=failure.rank)

    def stop(self) -> None:
        """End the thread."""
        self._stopped = True
        self._transport.attention.set()
        self._thread.join()

    def end(self, seconds: float) -> list[int]:
        """Announce this rank's end and wait for the others; returns those that have not ended."""
        self._interrupts = False
        self.announce("left")
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self.ended.issuperset(self._others):
            self._transport.attention.set()  # to read the others' notes
            time.sleep(0.002)
        return [rank for rank in self._others if rank not in self.ended]

    def _run(self) -> None:
        attention = self._transport.attention
        while not self._stopped:
            attention.wait(TICK_SECONDS)
            attention.clear()
            for text in self._transport.notes():
                self._take(json.loads(text))
            self._tell_failure()
            self._report()
            self._compare()
            self._compare_programs()
            self._interrupt()

    def _take(self, note: dict[str, Any]) -> None:
        transport, rank = self._transport, int(note["rank"])
        if note["kind"] == "waiting":
            self._reports[rank] = note
        elif note["kind"] == "program":
            told = Announced(rank, int(note["group"]), int(note["start"]), note["digests"])
            self._log.announced(told)
        elif note["kind"] == "differs":
            self._differ(rank, note)
        elif note["kind"] == "joined":
            transport.joined[rank] = int(note["turn"])
        elif note["kind"] == "left":
            transport.left.add(rank)
            self.ended.add(rank)
        else:
            if transport.failure is None:
                transport.take_failure(Failure(int(note["origin"]), note["text"]))
            if note["kind"] == "failed":
                self.ended.add(rank)

    def _tell_failure(self) -> None:
        """Announce that the job cannot continue, even if this rank catches the error."""
        failure = self._transport.failure
        if failure is not None and failure.rank == self._transport.rank and not self._failure_told:
            self._failure_told = True
            self.announce("broken", text=failure.text, origin=failure.rank)

    def _report(self) -> None:
        """Announce a call that has waited for a while."""
        waiting = self._transport.waiting
        if waiting is None or waiting.pending is None:
            self._seen = None
            return
        if waiting is not self._seen:
            self._seen, self._since, self._told = waiting, time.monotonic(), False
        patience = 0.0 if self._transport.joined else REPORT_SECONDS
        if not self._told and time.monotonic() - self._since >= patience:
            self._told = True
            self.announce(
                "waiting", what=waiting.what, line=waiting.line, group=waiting.group,
                turn=waiting.turn, neutral=waiting.neutral,
            )  # fmt: skip

    def _compare(self) -> None:
        """Find ranks that wait in a different call with the same number in the same group."""
        transport, waiting = self._transport, self._transport.waiting
        if waiting is None or waiting.pending is None or transport.failure is not None:
            return
        if waiting.group == NO_GROUP:
            return
        for rank, note in self._reports.items():
            same = (note["group"], note["turn"]) == (waiting.group, waiting.turn)
            if same and note["what"] != waiting.what:
                mine = f"rank {transport.rank} is in {waiting}"
                theirs = f"rank {rank} is in {note['what']}{note['line']}"
                first, second = (mine, theirs) if transport.rank < rank else (theirs, mine)
                transport.fail(
                    f"ranks call different things at call {waiting.turn} of group "
                    f"{waiting.group}: {first}, {second}"
                )
                return

    def _compare_programs(self) -> None:
        """Tell ranks whose programs make other calls than this rank's which calls differ."""
        for rank, group, number, call in self._log.differences():
            note = {"kind": "differs", "rank": self._transport.rank, "group": group,
                    "number": number, "what": call.what, "line": call.line}  # fmt: skip
            self._transport.note(rank, json.dumps(note))

    def _differ(self, rank: int, note: dict[str, Any]) -> None:
        """Fail because another rank's program makes another call."""
        group, number = int(note["group"]), int(note["number"])
        mine = self._log.call(group, number)
        if mine is None or self._transport.failure is not None:
            return
        theirs = Planned(note["what"], note["line"])
        both = sorted([(self._transport.rank, mine), (rank, theirs)])
        told = ", ".join([f"rank {r} has {call}" for r, call in both])
        text = f"ranks run different programs, at call {number} of group {group}: {told}"
        self._transport.take_failure(Failure(NOWHERE, text))
        self.announce("broken", text=text, origin=NOWHERE)

    def _interrupt(self) -> None:
        """Raise in the main thread of a rank that does not wait, some time after a failure."""
        transport = self._transport
        if transport.failure is None or transport.failure.rank == transport.rank:
            return
        if self._failed_at is None:
            self._failed_at = time.monotonic()
        elif self._interrupts and time.monotonic() - self._failed_at > INTERRUPT_SECONDS:
            self._interrupts = False
            os.kill(os.getpid(), SIGNAL)


def _install(transport: Transport) -> bool:
    """Install a signal handler that raises the failure; returns whether that is possible."""
    if threading.current_thread() is not threading.main_thread():
        return False
    if signal.getsignal(SIGNAL) is not signal.SIG_DFL:
        return False

    def told(number: int, frame: FrameType | None) -> None:
        failure = transport.failure
        raise DistributedError("interrupted" if failure is None else failure.text)

    signal.signal(SIGNAL, told)
    return True

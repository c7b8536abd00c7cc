"""Serves clients in other processes: their sessions, as messages."""

from __future__ import annotations

import itertools
import threading
import time
from concurrent.futures import Future
from typing import Any

import numpy as np

from weft.cluster.master.master import Master
from weft.cluster.master.session import MasterSession
from weft.cluster.rpc import Message, Peer
from weft.cluster.session import Run
from weft.cluster.timeline import recorded
from weft.cluster.waiting import Calls
from weft.cluster.wire import request_of
from weft.cluster.worker.program import unpacked
from weft.cluster.worker.store import heard
from weft.errors import AbortedError
from weft.resource.base import Cancellation
from weft.resource.limit import time_limit

Array = np.ndarray[Any, Any]


class _Guest:
    """A session of a client in another process."""

    def __init__(self, session: MasterSession) -> None:
        self.session = session
        self.functions: dict[int, Run] = {}
        self.constants: dict[str, Array] = {}
        self.numbers = itertools.count()
        self.cancellation = Cancellation()


class Desk:
    """Answers the messages of clients.

    Args:
        master: opens their sessions.

    Attributes:
        calls: of resources.
    """

    def __init__(self, master: Master) -> None:
        self._master = master
        self.calls = Calls(master.crew)
        self._lock = threading.Lock()
        self._guests: dict[str, _Guest] = {}

    def open(self, message: Message, peer: Peer) -> Message:
        """Open a session, which is closed when its client goes away."""
        head = message.head
        session = self._master.open(head["filters"], head["threads"], head["timeout"])
        self._guests[session.name] = _Guest(session)
        peer.on_close(lambda: self._close(session.name))
        told = {
            "session": session.name,
            "task": session.task,
            "devices": list(session.devices.values()),
        }
        return Message("opened", told)

    def function(self, message: Message) -> Message:
        """Take a part of a graph."""
        guest, head = self._guest(message), message.head
        aside = unpacked(head["constants"], message.arrays, guest.constants)
        number = next(guest.numbers)
        guest.functions[number] = guest.session.function(request_of(head["request"], aside))
        return Message("function", {"function": number})

    def step(self, message: Message) -> Message:
        """Run a function."""
        guest, seconds = self._guest(message), message.head.get("seconds", 0.0)
        function = guest.functions[message.head["function"]]
        head: dict[str, Any] = {}
        with time_limit(seconds):
            if message.head.get("trace"):
                with recorded() as timeline:
                    found = function(message.arrays, guest.session.variables)
                head = {"timeline": timeline.intervals, "now": time.perf_counter_ns()}
            else:
                found = function(message.arrays, guest.session.variables)
        return Message("values", head, list(map(np.asarray, found)))

    def describe(self, message: Message) -> Message:
        """What becomes of a function, or where its time goes, as text."""
        guest, head = self._guest(message), message.head
        function: Any = guest.functions[head["function"]]
        given = message.arrays, guest.session.variables
        if head["what"] == "profile":
            return Message("text", {"text": function.profile(*given, head["runs"])})
        return Message("text", {"text": str(function.explain(*given))})

    def ask(self, message: Message, peer: Peer) -> Message:
        """Ask a device about variables."""
        head = message.head
        session = self._guest(message).session
        answer, arrays = session.ask(
            head["device"], head["do"], head["keys"], message.arrays, peer.moved
        )
        return Message("state", dict(answer), arrays)

    def call(self, message: Message) -> Future[Message]:
        """Call a method of a resource; ends with the session."""
        guest, head = self._guest(message), message.head
        return self.calls.start(
            message,
            guest.cancellation,
            lambda cancel: guest.session.call(head["device"], *heard(head), message.arrays, cancel),
        )

    def close(self, message: Message) -> Message:
        """Close a session."""
        self._close(message.head["session"])
        return Message("closed")

    def _close(self, name: str) -> None:
        guest = self._guests.pop(name, None)
        if guest is not None:
            guest.cancellation.cancel()
            guest.session.close()

    def _guest(self, message: Message) -> _Guest:
        guest = self._guests.get(message.head["session"])
        if guest is None:
            raise AbortedError("the master does not know the session: it has restarted since, or "
                               "closed it; open a new one")  # fmt: skip
        return guest

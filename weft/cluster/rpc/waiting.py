"""Who waits for the answers of a connection, and who receives them.

A thread that waits receives packets itself if no other thread does (`lead`); otherwise it waits to
be woken: with its answer, or to receive in place of one that leaves.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, TypeAlias

from weft.cluster.rpc.channel import Limit, settle
from weft.cluster.rpc.message import Message

IDLE_SECONDS: Final = 10.0
"""How long a reader's thread stays without work."""
Lead: TypeAlias = "Callable[[Waiter | Call, Limit], bool]"
"""Receives until a call has its answer or its time is over; `False`: another thread receives."""


class Waiter:
    """A call whose thread waits for the answer."""

    __slots__ = ("result", "wake")

    def __init__(self) -> None:
        self.result: Message | BaseException | None = None
        self.wake: queue.SimpleQueue[None] = queue.SimpleQueue()

    @property
    def waits(self) -> bool:
        """Whether it has no answer yet."""
        return self.result is None

    def settle(self, result: Message | BaseException) -> None:
        """Give it its answer."""
        self.result = result
        self.wake.put(None)


class Call(Future[Message]):
    """A call that was started; whoever asks for its result receives it, if no other thread does."""

    def __init__(self, give_up: Callable[[], None], lead: Lead) -> None:
        super().__init__()
        self._give_up, self._lead = give_up, lead
        self.asked = 0  # threads that wait for it
        self.wake: queue.SimpleQueue[None] = queue.SimpleQueue()

    @property
    def waits(self) -> bool:
        """Whether it has no answer yet."""
        return not self.done()

    def settle(self, result: Message | BaseException) -> None:
        """Give it its answer."""
        settle(self, result)
        self.wake.put(None)

    def cancel(self) -> bool:
        """See `Future.cancel`; the server is told."""
        cancelled = super().cancel()
        if cancelled:
            self._give_up()
            self.wake.put(None)
        return cancelled

    def result(self, timeout: float | None = None) -> Message:
        """See `Future.result`."""
        self._receive(timeout)
        return super().result(timeout and 0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """See `Future.exception`."""
        self._receive(timeout)
        return super().exception(timeout and 0)

    def _receive(self, timeout: float | None) -> None:
        """Wait until it is done, or for so long."""
        if self.done():
            return
        limit = Limit(timeout, "")
        self.asked += 1
        try:
            while not self.done() and not limit.passed():
                if not self._lead(self, limit):
                    with contextlib.suppress(queue.Empty):
                        self.wake.get(timeout=limit.left())
        finally:
            self.asked -= 1
            self.wake.put(None)  # others may wait for it


class Reader:
    """The channel's own thread, while there is something to do for it."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._wake: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Have the work done."""
        with self._lock:
            if self._wake.empty():
                self._wake.put(True)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.name = "weft-rpc-reader"
                self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                goes_on = self._wake.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    if self._wake.empty():
                        self._thread = None
                        return
                continue
            if not goes_on:
                return
            self._work()

    def stop(self) -> None:
        """End the thread."""
        with self._lock:
            thread = self._thread
            self._wake.put(False)
        if thread is not None and thread is not threading.current_thread():
            thread.join()

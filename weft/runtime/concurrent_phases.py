"""Phases of which several may wait at the same time, each on its own thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence

from weft.errors import CancelledError
from weft.passes.phase import Phase, ProgramPhase
from weft.resource.base import Cancellation


class Concurrent:
    """One run of a plan: programs on the caller's thread, what waits on others.

    Args:
        plan: the phases.
        act: runs the phase with this number.
        cancel: ends the waits of this run.
    """

    def __init__(
        self, plan: Sequence[Phase], act: Callable[[int], None], cancel: Cancellation
    ) -> None:
        self._plan = plan
        self._act = act
        self._cancel = cancel
        self._pending = dict.fromkeys(range(len(plan)))
        self._done: set[int] = set()
        self._threads: list[threading.Thread] = []
        self._ended: queue.SimpleQueue[tuple[int, BaseException | None]] = queue.SimpleQueue()
        self._running = 0
        self._lock = threading.Lock()
        self._failure: BaseException | None = None

    def run(self) -> None:
        """Run all phases; if one fails, end the waits of the others, and raise its error."""
        try:
            while self._pending or self._running:
                self._advance()
        except BaseException as error:
            self._fail(error)
        finally:
            for thread in self._threads:
                thread.join()
        if self._failure is not None:
            raise self._failure

    def _fail(self, error: BaseException) -> None:
        """Note the first error, which the others follow from; Ctrl-C comes before all."""
        with self._lock:
            if self._failure is None or not isinstance(error, Exception):
                self._failure = error
        self._cancel.cancel(CancelledError(f"another part of the run failed: {self._failure}"))

    def _advance(self) -> None:
        """Start what can wait on threads; then run something here, or wait for a thread."""
        ready = [i for i in self._pending if self._done.issuperset(self._plan[i].after)]
        waiting = [i for i in ready if self._waits(i)]
        here = [i for i in ready if not self._waits(i)]
        if not here and not self._running:
            here = [waiting.pop()]  # nothing else can happen meanwhile
        for number in waiting:
            self._start(number)
        if here:
            del self._pending[here[0]]
            self._act(here[0])
            self._done.add(here[0])
        else:
            self._end(*self._ended.get())
        while not self._ended.empty():
            self._end(*self._ended.get())

    def _waits(self, number: int) -> bool:
        phase = self._plan[number]
        return not isinstance(phase, ProgramPhase) and phase.waits

    def _start(self, number: int) -> None:
        del self._pending[number]
        self._running += 1
        thread = threading.Thread(target=self._apart, args=(number,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _apart(self, number: int) -> None:
        """Run one phase on this thread; if it fails, the thread of the run may be waiting too."""
        try:
            self._act(number)
        except BaseException as error:
            self._fail(error)
            self._ended.put((number, error))
        else:
            self._ended.put((number, None))

    def _end(self, number: int, error: BaseException | None) -> None:
        self._running -= 1
        if error is not None:
            raise error
        self._done.add(number)

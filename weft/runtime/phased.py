"""Runs requests with host nodes: programs, and between them queues, readers, Python and texts.

Between two phases no lock is held, so that other runs can fill the queue that one waits for.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.errors import CancelledError, GraphError
from weft.ir.node import Node, Value
from weft.ir.shape import compatible
from weft.ops.boundary.state import CONSTANT
from weft.ops.declaration import op_of
from weft.ops.resource.call import resource_call
from weft.passes.phase import Phase, ProgramPhase, phases
from weft.passes.step import Request, needed
from weft.resource.base import Cancellation
from weft.transform.interpreter import evaluate_node, failed, place

Array = np.ndarray[Any, Any]
Program = Callable[[Sequence[Any], Any], list[Any]]
"""A program phase: takes arrays of its feeds and the variables, gives arrays of its fetches."""
Call = Callable[[Node, Sequence[Array], Cancellation], Sequence[Any]]
"""Runs a call of a resource."""


class Phased:
    """A request with host nodes, as a function of the arrays of its feeds and the variables.

    Args:
        request: the request.
        program: makes the function of a program phase.
        call: runs calls of resources.
        cancellation: ends the waits of all runs, once it is cancelled.
    """

    def __init__(
        self, request: Request, program: Callable[[Request], Program], call: Call,
        cancellation: Cancellation,
    ) -> None:  # fmt: skip
        self.phases: Final = phases(request)
        self._request = request
        self._call = call
        self._cancellation = cancellation
        self._programs = [
            program(phase.request) if isinstance(phase, ProgramPhase) else None
            for phase in self.phases
        ]
        self._constants = _constants(self.phases, request)
        self._fresh = _fresh(self.phases)
        self._concurrent = _is_concurrent(self.phases)

    def __call__(self, arrays: Sequence[Array], state: Any) -> list[Any]:
        """Run all phases.

        Returns:
            Fresh arrays; NumPy scalars, or bytes, where a fetch has rank 0.

        Raises:
            WeftError: a phase failed; the phases before it have acted.
            CancelledError: the runs were cancelled while this one waited.
        """
        found = dict(self._constants)
        found.update(zip(self._request.feeds, arrays, strict=True))
        with Cancellation(self._cancellation) as cancel:

            def act(number: int) -> None:
                self._act(number, found, state, cancel)

            if self._concurrent:
                _Concurrent(self.phases, act, cancel).run()
            else:
                for number in range(len(self.phases)):
                    act(number)
        return [self._fetched(value, found[value]) for value in self._request.fetches]

    def program(self, arrays: Sequence[Array], state: Any) -> Any:
        """The compiled program of the largest program phase; the phases before it are run."""
        function, given = self._main(arrays, state)
        return function.program(given, state)

    def profile(self, arrays: Sequence[Array], state: Any, runs: int = 5) -> str:
        """Where the time of the largest program phase goes; the phases before it are run."""
        function, given = self._main(arrays, state)
        return function.profile(given, state, runs)

    def _main(self, arrays: Sequence[Array], state: Any) -> tuple[Any, list[Array]]:
        """The function of the largest program phase, and what it is given after those before it.

        Raises:
            GraphError: there is no program.
        """
        found = dict(self._constants)
        found.update(zip(self._request.feeds, arrays, strict=True))
        programs = [
            (len(needed(phase.request)), number)
            for number, phase in enumerate(self.phases)
            if isinstance(phase, ProgramPhase)
        ]
        if not programs:
            raise GraphError("program: expected something to compute, got host operations only")
        _, number = max(programs)
        with Cancellation(self._cancellation) as cancel:
            for earlier in range(number):
                self._act(earlier, found, state, cancel)
        return self._programs[number], self._given(number, found)

    def _act(self, number: int, found: dict[Value, Any], state: Any, cancel: Cancellation) -> None:
        """Run one phase, and add its results to what is `found`."""
        phase, program = self.phases[number], self._programs[number]
        cancel.check()
        if isinstance(phase, ProgramPhase):
            assert program is not None
            results = program(self._given(number, found), state)
            found.update(zip(phase.request.fetches, results, strict=True))
            return
        node = phase.node
        given = [np.asarray(found[v]) for v in node.inputs]
        if op_of(node) is resource_call:
            results = self._called(node, given, cancel)
        else:
            results = evaluate_node(node, given)
        for value, result in zip(node.outputs, results, strict=True):
            found.setdefault(value, result)  # a fed one stays

    def _given(self, number: int, found: dict[Value, Any]) -> list[Array]:
        """What a program is given."""
        phase = self.phases[number]
        assert isinstance(phase, ProgramPhase)
        return [np.asarray(found[v], order="C") for v in phase.request.feeds]

    def _called(self, node: Node, given: list[Array], cancel: Cancellation) -> list[Array]:
        """The results of a call of a resource, which copies what it keeps."""
        try:
            results = [np.asarray(y) for y in self._call(node, given, cancel)]
        except Exception as error:
            raise failed(error, node) from error.__cause__
        kinds = node.types
        right = len(results) == len(kinds) and all(
            y.dtype == kind.dtype.numpy and compatible(y.shape, kind.shape)
            for y, kind in zip(results, kinds, strict=True)
        )
        if not right:
            got = ", ".join(f"{y.dtype}{list(y.shape)}" for y in results)
            wanted = ", ".join(map(str, kinds))
            raise GraphError(f"{node.op}: expected results {wanted}, got {got} ({place(node)})")
        return results

    def _fetched(self, value: Value, found: Any) -> Any:
        if value in self._fresh:
            return found
        return np.array(found)[()]


def _constants(plan: Sequence[Phase], request: Request) -> dict[Value, Array]:
    """The constants that host nodes read, and those that are fetched."""
    used = [v for p in plan if not isinstance(p, ProgramPhase) for v in p.node.inputs]
    found = [v for v in (*used, *request.fetches) if op_of(v.node) is CONSTANT]
    return {v: v.node.attrs["value"].array for v in found}


def _fresh(plan: Sequence[Phase]) -> frozenset[Value]:
    """Results of programs, which nobody else has."""
    return frozenset(v for p in plan if isinstance(p, ProgramPhase) for v in p.request.fetches)


def _is_concurrent(plan: Sequence[Phase]) -> bool:
    """Whether some phase may run while a host node waits."""
    follows: list[set[int]] = []
    for phase in plan:
        follows.append({n for i in phase.after for n in (i, *follows[i])})
    waiting = [i for i, p in enumerate(plan) if not isinstance(p, ProgramPhase) and p.waits]
    return any(i not in follows[n] for n in waiting for i in waiting if i < n)


class _Concurrent:
    """A run in which several host nodes may wait at the same time, each on its own thread."""

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

"""Runs requests with host nodes: programs, and between them queues, readers, Python and texts.

Between two phases no lock is held, so that other runs can fill the queue that one waits for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType
from typing import Any, Final

import numpy as np

from weft.errors import GraphError, WeftError
from weft.ir.node import Node, Value
from weft.ir.shape import compatible
from weft.ops.boundary.state import CONSTANT
from weft.ops.declaration import op_of
from weft.ops.effect import is_host
from weft.ops.resource.call import resource_call
from weft.ops.resource.host_value import HostFunction, host_value
from weft.passes.level import Apart
from weft.passes.phase import Phase, ProgramPhase, phases
from weft.passes.step import Request, needed
from weft.resource.base import Cancellation
from weft.resource.limit import limited
from weft.runtime.concurrent_phases import Concurrent
from weft.runtime.phase_time import PhaseTime, watchers
from weft.transform.interpreter import evaluate_node, failed, located, place

Array = np.ndarray[Any, Any]
Program = Callable[[Sequence[Any], Any], list[Any]]
"""A program phase: takes arrays of its feeds and the variables, gives arrays of its fetches."""
Found = dict[Value, Any]
"""What is known in a run so far."""
Act = Callable[[Found, Any, Cancellation], None]
"""Runs a phase, and adds its results to what is found."""
Call = Callable[[Node, Sequence[Array], Cancellation], Sequence[Any]]
"""Runs a call of a resource."""


class Phased:
    """A request with host nodes, as a function of the arrays of its feeds and the variables.

    Args:
        request: the request.
        program: makes the function of a program phase.
        call: runs calls of resources.
        cancellation: ends the waits of all runs, once it is cancelled.
        apart: which nodes are host nodes.
    """

    def __init__(
        self, request: Request, program: Callable[[Request], Program], call: Call,
        cancellation: Cancellation, apart: Apart = is_host,
    ) -> None:  # fmt: skip
        self.phases: Final = phases(request, apart)
        self._request = request
        self._call = call
        self._cancellation = cancellation
        self._programs = {
            number: program(phase.request)
            for number, phase in enumerate(self.phases)
            if isinstance(phase, ProgramPhase)
        }
        self._from_programs = _from_programs(self.phases)
        self._acts = [self._act(number, phase) for number, phase in enumerate(self.phases)]
        self._constants = _constants(self.phases, request)
        self._fetches = [(value, value in self._from_programs) for value in request.fetches]
        self._concurrent = _is_concurrent(self.phases)
        self._waits = any(not isinstance(p, ProgramPhase) and p.waits for p in self.phases)

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
        acts = [*map(_timed, self.phases, self._acts)] if watchers else self._acts
        if not self._waits:
            self._cancellation.check()
            for act in acts:
                act(found, state, self._cancellation)
        else:
            with Cancellation(self._cancellation) as cancel, limited(cancel.cancel):
                self._run(acts, found, state, cancel)
        return [found[v] if fresh else _copied(found[v]) for v, fresh in self._fetches]

    def _run(self, acts: Sequence[Act], found: Found, state: Any, cancel: Cancellation) -> None:
        """Run phases of which some may wait."""
        if self._concurrent:
            run = lambda number: acts[number](found, state, cancel)  # noqa: E731
            Concurrent(self.phases, run, cancel).run()
            return
        for act in acts:
            cancel.check()
            act(found, state, cancel)

    def program(self, arrays: Sequence[Array], state: Any) -> Any:
        """The compiled program of the largest program phase; the phases before it are run."""
        function, given = self._main(arrays, state)
        return function.program(given, state)

    def profile(self, arrays: Sequence[Array], state: Any, runs: int = 5) -> str:
        """Where the time of the largest program phase goes; the phases before it are run."""
        function, given = self._main(arrays, state)
        return function.profile(given, state, runs)

    def explain(self, arrays: Sequence[Array], state: Any) -> Any:
        """What the compiler makes of the largest program phase; the phases before it are run."""
        function, given = self._main(arrays, state)
        return function.explain(given, state)

    def _main(self, arrays: Sequence[Array], state: Any) -> tuple[Any, list[Array]]:
        """The function of the largest program phase, and what it is given after those before it.

        Raises:
            GraphError: there is no program.
        """
        found = dict(self._constants)
        found.update(zip(self._request.feeds, arrays, strict=True))
        programs = [
            (len(needed(phase.request)), number, phase.request.feeds)
            for number, phase in enumerate(self.phases)
            if isinstance(phase, ProgramPhase)
        ]
        if not programs:
            raise GraphError("program: expected something to compute, got host operations only")
        _, number, feeds = max(programs, key=lambda p: p[0])
        with Cancellation(self._cancellation) as cancel:
            for act in self._acts[:number]:
                act(found, state, cancel)
        return self._programs[number], [np.asarray(found[v]) for v in feeds]

    def _act(self, number: int, phase: Phase) -> Act:
        """The function of one phase."""
        if isinstance(phase, ProgramPhase):
            return _of_program(phase.request, self._programs[number], self._from_programs)
        if op_of(phase.node) is resource_call:
            return _of_node(phase.node, partial(_called, self._call, phase.node))
        if op_of(phase.node) is host_value:
            return _of_function(phase.node)
        return _of_node(phase.node, lambda xs, _cancel: evaluate_node(phase.node, xs))


def _timed(phase: Phase, act: Act) -> Act:
    """The act of a phase, which tells when it ran; programs tell themselves."""
    if isinstance(phase, ProgramPhase):
        return act

    def timed(found: Found, state: Any, cancel: Cancellation) -> None:
        begin = time.perf_counter_ns()
        try:
            act(found, state, cancel)
        finally:
            end, node = time.perf_counter_ns(), phase.node
            watchers.tell(PhaseTime(node.name, node.device, phase.waits, begin, end))

    return timed


def _of_program(request: Request, program: Program, from_programs: frozenset[Value]) -> Act:
    feeds = [(v, v in from_programs) for v in request.feeds]
    fetches = request.fetches

    def act(found: Found, state: Any, cancel: Cancellation) -> None:
        del cancel
        # results of programs may be scalars; others are contiguous arrays already
        given = [np.asarray(found[v]) if bare else found[v] for v, bare in feeds]
        found.update(zip(fetches, program(given, state), strict=True))

    return act


def _of_node(node: Node, results: Callable[[list[Array], Cancellation], Sequence[Array]]) -> Act:
    inputs, outputs = node.inputs, node.outputs

    def act(found: Found, state: Any, cancel: Cancellation) -> None:
        del state
        given = [np.asarray(found[v]) for v in inputs]
        for value, result in zip(outputs, results(given, cancel), strict=True):
            found.setdefault(value, np.asarray(result, order="C"))  # a fed one stays

    return act


def _of_function(node: Node) -> Act:
    """The act of a Python function; errors of the front end pass as they are."""
    inputs, call = node.inputs, HostFunction(node)
    outputs = list(enumerate(node.outputs))

    def act(found: Found, state: Any, cancel: Cancellation) -> None:
        del cancel
        try:
            results = call([np.asarray(found[v]) for v in inputs], state)
        except WeftError as error:
            if isinstance(type(error).__init__, FunctionType):  # it takes more than a message
                raise
            raise located(error, node) from error.__cause__
        for number, value in outputs:
            found.setdefault(value, results[number])

    return act


def _called(call: Call, node: Node, given: list[Array], cancel: Cancellation) -> list[Array]:
    """The results of a call of a resource, which copies what it keeps."""
    try:
        results = [np.asarray(y) for y in call(node, given, cancel)]
    except Exception as error:
        raise failed(error, node, str(node.attrs["method"])) from error.__cause__
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


def _copied(found: Any) -> Any:
    """A result for the caller, who may change it."""
    array = np.array(found)
    return array if array.ndim else array[()]


def _constants(plan: Sequence[Phase], request: Request) -> dict[Value, Array]:
    """The constants that host nodes read, and those that are fetched."""
    used = [v for p in plan if not isinstance(p, ProgramPhase) for v in p.node.inputs]
    found = [v for v in (*used, *request.fetches) if op_of(v.node) is CONSTANT]
    return {v: v.node.attrs["value"].array for v in found}


def _from_programs(plan: Sequence[Phase]) -> frozenset[Value]:
    """The results of programs, which nobody else has."""
    return frozenset(v for p in plan if isinstance(p, ProgramPhase) for v in p.request.fetches)


def _is_concurrent(plan: Sequence[Phase]) -> bool:
    """Whether some phase may run while a host node waits."""
    follows: list[set[int]] = []
    for phase in plan:
        follows.append({n for i in phase.after for n in (i, *follows[i])})
    waiting = [i for i, p in enumerate(plan) if not isinstance(p, ProgramPhase) and p.waits]
    return any(i not in follows[n] for n in waiting for i in waiting if i < n)

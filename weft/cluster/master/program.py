"""A compiled step over several tasks."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final, Protocol

import numpy as np

from weft.cluster.copies import fresh, shared_memory
from weft.cluster.links import Link
from weft.cluster.master.flight import Flight
from weft.cluster.route import Post, Route
from weft.cluster.rpc import Message
from weft.cluster.rpc.failure import to_message
from weft.cluster.timeline import StageRow, Timeline, current, shifted
from weft.errors import AbortedError, CompileError, UnavailableError
from weft.host.interrupt import abandonable
from weft.ir.node import TensorType
from weft.passes.partition import Partition
from weft.passes.placement.explanation import PlacementExplanation
from weft.passes.step import Step
from weft.resource.limit import current as time_limit
from weft.resource.limit import limited
from weft.runtime.executable import Executable
from weft.runtime.staged import StagedProgram, StageTime

Array = np.ndarray[Any, Any]


class Owner(Protocol):
    """The session of a program, as the program sees it."""

    name: str
    links: dict[str, Link]
    states: Mapping[str, Any]

    def begin(self, flight: Flight) -> None:
        """A step begins: it fails when a task does."""
        ...

    def end(self, flight: Flight) -> None:
        """A step is over."""
        ...


class OwnProgram:
    """A step that lies on one device of the master's own task: it runs as in a local session.

    Args:
        executable: the step.
        state: the variables of the device.
        device: its name.
        check: raises if the session is no longer usable.
    """

    def __init__(
        self, executable: Executable, state: Any, device: str, check: Callable[[], object]
    ) -> None:
        self._run, self._check = executable.run, check
        self._state, self._device = state, device
        self.executable: Final = executable

    @property
    def step(self) -> Step:
        """What it computes."""
        return self.executable.step

    def run(self, arrays: Sequence[Array], state: Any) -> list[Any]:
        """Runs the step once, on the variables of the device."""
        del state
        self._check()
        timeline, limit = current(), time_limit()
        begin = time.perf_counter_ns()
        with contextlib.nullcontext() if limit is None else abandonable(limit.check):
            found = self._run(arrays, self._state)
        if timeline is None:
            return found
        timeline.add(self._device, "compute", "step", begin, time.perf_counter_ns())
        return found

    def profile(self, arrays: Sequence[Array], state: Any, runs: int = 5) -> str:
        """Where a step's time and memory go, as text."""
        del state
        return self.executable.profile(arrays, self._state, runs)


class ClusterProgram:
    """A step whose stages the tasks have registered.

    Args:
        number: under which they know it.
        step: the whole step, optimized.
        partition: its stages.
        routes: of all tasks that take part.
        own: the stages of the master's task, if it has some.
        owner: the session.
        task: the master's.

    Attributes:
        explain: says why its nodes are where they are.
    """

    def __init__(
        self, number: int, step: Step, partition: Partition, routes: Mapping[str, Route],
        own: StagedProgram | None, owner: Owner, task: str,
    ) -> None:  # fmt: skip
        self.number, self.step, self.partition = number, step, partition
        self.explain: Callable[[], PlacementExplanation] | None = None
        self._own, self._owner = own, owner
        self._posts = routes[task].posts
        self._routes = {name: route for name, route in routes.items() if name != task}
        self._prompt = [route for route in self._routes.values() if route.prompt]
        self._outside = frozenset(v for post in self._posts for v in post.values)
        self._count = len(partition.types)
        self._shared = _shared(partition)
        self._steps = itertools.count()

    def run(self, arrays: Sequence[Array], state: Any) -> list[Any]:
        """Runs the step once.

        Raises:
            UnavailableError: a task has failed; the message names it.
            WeftError: what a task raised; the step is given up on all others.
        """
        del state
        owner = self._owner
        step = f"{owner.name}/{self.number}.{next(self._steps)}"
        timeline = current()
        times: list[StageTime] = []
        flight = Flight(
            step, self._count, self._memory, self._posts, self._tell, self._give_up,
            None if timeline is None else times.append,
        )  # fmt: skip
        try:
            owner.begin(flight)
            with limited(flight.abort):
                found = self._run(arrays, flight)
                if timeline is not None:
                    self._record(timeline, flight, times)
                return found
        except BaseException as error:
            flight.abort(error)
            raise
        finally:
            owner.end(flight)
            flight.close()

    def _run(self, arrays: Sequence[Array], flight: Flight) -> list[Any]:
        for value, array in zip(self.partition.feeds, arrays, strict=True):
            flight.put(value, array)
        for route in self._prompt:
            self._start(flight, route, [flight.get(v) for v in route.feeds])
        if self._own is not None:
            self._own.run(flight, self._owner.states)
        found = [flight.get(value) for value in self.partition.fetches]
        flight.wait()
        return [fresh(y, shared) for y, shared in zip(found, self._shared, strict=True)]

    def _start(self, flight: Flight, route: Route, arrays: Sequence[Array]) -> None:
        """Has a task run its part."""
        head = {"session": self._owner.name, "program": self.number, "step": flight.step}
        if flight.watch is not None:
            head["trace"] = True
        answer = self._call(route.task, Message("run", head, arrays))
        flight.call(route.task, answer, route.first)

    def _tell(self, flight: Flight, post: Post, arrays: list[Array]) -> None:
        """Sends values of a stage of the master to a task."""
        route = self._routes[post.to]
        if post.kind == "run":
            found = dict(zip(post.values, arrays, strict=True))
            feeds = [found[v] if v in found else flight.get(v) for v in route.feeds]
            self._start(flight, route, feeds)
            return
        if post.kind == "finish":
            flight.wait(post.to)  # messages may overtake each other
        message = Message(post.kind, {"step": flight.step, "values": post.values}, arrays)
        values = route.last if post.kind == "finish" else ()
        flight.call(post.to, self._call(post.to, message), values)

    def _record(self, timeline: Timeline, flight: Flight, times: Sequence[StageTime]) -> None:
        """Adds the times of all stages to a timeline."""
        rows: list[StageRow] = [(t.stage, *t[2:]) for t in times]
        for call in flight.calls:
            rows += shifted(call.answer.result().head, call.sent, call.received)
        timeline.add_stages(self.partition, rows)

    def _call(self, task: str, message: Message) -> Future[Message]:
        return self._owner.links[task].channel.start(message)

    def _memory(self, value: int, kind: TensorType) -> Array | None:
        return shared_memory(kind) if value in self._outside else None

    def _give_up(self, flight: Flight, error: BaseException) -> None:
        """Tells the tasks that a step has failed."""
        told = str(error)
        reason = AbortedError(f"the step was given up: {told}" if told else "Ctrl-C")
        head = {"step": flight.step, "error": to_message(reason).head}
        for task in self._routes:
            with contextlib.suppress(UnavailableError):  # of the one that has failed
                self._call(task, Message("abort", head))

    def profile(self, arrays: Sequence[Array], state: Any, runs: int = 5) -> str:
        """A step over several tasks has no profile of one program.

        Raises:
            CompileError: always; the message says what there is.
        """
        raise CompileError(
            "profile: the step runs on several tasks; run it with "
            "RunOptions(trace_level=RunOptions.FULL_TRACE) for a timeline of all of them"
        )


def _shared(partition: Partition) -> list[bool]:
    """For each fetch, whether its array is also a feed, another fetch, or what a stage reads."""
    read = {*partition.feeds, *[v for stage in partition.stages for v in stage.inputs]}
    fetches = partition.fetches
    return [v in read or v in fetches[:i] for i, v in enumerate(fetches)]

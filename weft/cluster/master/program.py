"""A compiled step over several tasks."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol

import numpy as np

from weft.cluster.links import Link
from weft.cluster.master.flight import Flight, send
from weft.cluster.route import Post, Route
from weft.cluster.rpc import Message
from weft.cluster.rpc.failure import to_message
from weft.cluster.worker.part import Outbox
from weft.cluster.worker.rendezvous import Rendezvous
from weft.errors import AbortedError, CompileError, UnavailableError
from weft.passes.partition import Partition
from weft.passes.step import Step
from weft.resource.limit import limited
from weft.runtime.executable import Executable
from weft.runtime.staged import Box, StagedProgram

Array = np.ndarray[Any, Any]


class Owner(Protocol):
    """The session of a program, as the program sees it."""

    name: str
    links: dict[str, Link]
    rendezvous: Rendezvous
    states: Mapping[str, Any]

    def check(self) -> None:
        """Raises if a task has failed."""
        ...

    def begin(self, flight: Flight) -> None:
        """A step begins: it fails when a task does."""
        ...

    def end(self, flight: Flight) -> None:
        """A step is over."""
        ...


class OwnProgram:
    """A step that lies on one device of the master's own task: it runs as in a local session."""

    def __init__(self, executable: Executable, state: Any, owner: Owner) -> None:
        self._run: Final = executable.run
        self._state, self._owner = state, owner
        self.executable: Final = executable

    @property
    def step(self) -> Step:
        """What it computes."""
        return self.executable.step

    def run(self, arrays: Sequence[Array], state: Any) -> list[Any]:
        """Runs the step once, on the variables of the device."""
        del state
        return self._run(arrays, self._state)

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
    """

    def __init__(
        self, number: int, step: Step, partition: Partition, routes: Mapping[str, Route],
        own: StagedProgram | None, owner: Owner, task: str,
    ) -> None:  # fmt: skip
        self.number, self.step, self.partition = number, step, partition
        self._own, self._owner = own, owner
        self._posts = routes[task].posts
        self._others = [route for name, route in routes.items() if name != task]
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
        owner.check()
        step = f"{owner.name}/{self.number}.{next(self._steps)}"
        flight = Flight(step, self._others)
        outbox = Outbox(self._posts, partial(self._tell, flight))
        box = flight.box = Box(self._count, send=outbox.put)
        try:
            owner.begin(flight)
            with limited(flight.fail):
                return self._run(arrays, flight, box)
        except BaseException as error:
            self._give_up(flight, error)
            if flight.error is not None and isinstance(error, Exception):
                raise flight.error from None
            raise
        finally:
            owner.end(flight)

    def _run(self, arrays: Sequence[Array], flight: Flight, box: Box) -> list[Any]:
        for value, array in zip(self.partition.feeds, arrays, strict=True):
            box.put(value, array)
        head = {"session": self._owner.name, "program": self.number, "step": flight.step}
        for route in self._others:
            message = Message("run", head, [box.get(v) for v in route.feeds])
            send(self._link(route.task), message, partial(flight.ran, route.task))
        if self._own is not None:
            self._own.run(box, self._owner.states)
        found = [box.get(value) for value in self.partition.fetches]
        flight.wait()
        return [fresh(y, shared) for y, shared in zip(found, self._shared, strict=True)]

    def _tell(self, flight: Flight, post: Post, arrays: list[Array]) -> None:
        kind = "finish" if post.last else "deliver"
        message = Message(kind, {"step": flight.step, "values": post.values}, arrays)
        send(self._link(post.to), message, partial(flight.told, post))

    def _link(self, task: str) -> Link:
        return self._owner.links[task]

    def _give_up(self, flight: Flight, error: BaseException) -> None:
        """Tells the tasks that a step has failed."""
        reason = AbortedError(
            f"the step was given up: {error}" if str(error) else "the step was given up"
        )
        head = {"step": flight.step, "error": to_message(reason).head}
        for route in self._others:
            try:
                self._link(route.task).channel.start(Message("abort", head))
            except UnavailableError:  # the one that has failed
                continue

    def profile(self, arrays: Sequence[Array], state: Any, runs: int = 5) -> str:
        """A step over several tasks has no profile of one program.

        Raises:
            CompileError: always; the message says what there is.
        """
        raise CompileError(
            "profile: the step runs on several tasks; run it with "
            "RunOptions(trace_level=RunOptions.FULL_TRACE) for a timeline of all of them"
        )


def fresh(array: Array, shared: bool = False) -> Any:
    """A result that its receiver may change: an array, or a NumPy scalar of rank 0.

    Args:
        array: a result.
        shared: whether something else has the same array.
    """
    if not array.ndim:
        return array[()]
    return array.copy() if shared or not array.flags.writeable else array


def _shared(partition: Partition) -> list[bool]:
    """For each fetch, whether its array is also a feed, another fetch, or what a stage reads."""
    read = {*partition.feeds, *[v for stage in partition.stages for v in stage.inputs]}
    fetches = partition.fetches
    return [v in read or v in fetches[:i] for i, v in enumerate(fetches)]

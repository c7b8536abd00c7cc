"""A session in the process of its master: places, cuts, registers and runs requests."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from weft.cluster.links import Link
from weft.cluster.master.flight import Flight
from weft.cluster.master.program import ClusterProgram, OwnProgram
from weft.cluster.route import routes, task_of
from weft.cluster.rpc import Message
from weft.cluster.session import ClusterSession, Run
from weft.cluster.variables import Variables
from weft.cluster.wait import Wait
from weft.cluster.waiting import answered
from weft.cluster.worker.program import digests_of, registration
from weft.cluster.worker.store import told
from weft.cluster.worker.worker import Worker
from weft.errors import AbortedError, ClosedError, UnavailableError
from weft.ir.graph import Graph, rewrite
from weft.ir.node import Node, Value
from weft.ops.boundary.state import counter, variable
from weft.ops.declaration import op_of
from weft.ops.resource.spec import ResourceSpec
from weft.passes.partition import Partition
from weft.passes.placement.choose import Choice, choose
from weft.passes.placement.explanation import explained
from weft.passes.step import Request, Step
from weft.resource.base import Cancellation
from weft.runtime.engine import Function
from weft.runtime.finish import on_state, partitioned
from weft.runtime.staged import StagedProgram

Array = np.ndarray[Any, Any]
CLOSE_SECONDS: Final = 2.0
"""How long a session that is closed waits for other tasks to free what it has registered."""


class MasterSession(ClusterSession):
    """Runs requests on the tasks of a cluster, from the task of its master.

    Args:
        name: unique among all sessions of the cluster.
        counters: what the keys of its random streams begin with.
        worker: of the master's own task.
        links: to the other tasks that it may use.
        threads: how many threads run a step; 0: what each task has.
        closed: called when it is closed.
    """

    def __init__(
        self, name: str, counters: str, worker: Worker, links: dict[str, Link], threads: int,
        closed: Callable[[MasterSession], object],
    ) -> None:  # fmt: skip
        self.name, self.task = name, worker.task
        self.links, self.rendezvous = links, worker.rendezvous
        self.states: Mapping[str, Any] = worker.store.states
        self.devices = {n: d.attributes for n, d in worker.devices.items()}
        for link in links.values():
            self.devices.update(link.devices)
        self._homes: dict[str, str] = {}  # of variables, as far as requests have told
        self.variables = Variables(self, self._homes.get)
        self._worker, self._counters, self._closed = worker, counters, closed
        self._threads = threads or None
        self._default = next(iter(worker.devices))
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._flights: dict[Flight, None] = {}
        self._failure: BaseException | None = None
        self._is_closed = False
        self._used: set[str] = set()  # tasks that have parts of its programs
        self._told: set[str] = set()  # tasks whose failure a run has told
        self._sent: dict[str, set[str]] = {task: set() for task in links}

    # -- functions

    def function(self, request: Request) -> Run:
        """A part of a graph, compiled on first use."""
        self.check()
        homes = {
            str(node.attrs["key"]): device
            for node, device in request.placed.items()
            if op_of(node) in (variable, counter)
        }
        self._homes.update(homes)

        def compiled(step: Step, threads: int, count: int) -> Any:
            return self._compiled(step, threads, count, homes)

        return Function(
            request.graph, request.fetches, request.targets, request.feeds, self._threads,
            compiled, request.done, request.placed,
        )  # fmt: skip

    def _compiled(
        self, step: Step, threads: int, fetches: int, homes: Mapping[str, str]
    ) -> OwnProgram | ClusterProgram:
        step = with_own_counters(step, self._counters)
        homes = {**homes, **{self._counters + key: home for key, home in homes.items()}}
        choices: list[Choice] = []

        def devices_of(step: Step) -> dict[Node, str]:
            choices.append(choose(step, self._default))
            return choices[0].devices

        whole, cut = partitioned(step, devices_of, homes, default=self._default)
        used = {stage.device for stage in cut.stages} or {self._default}
        if len(used) == 1 and (device := next(iter(used))) in self.states:
            processor = self._worker.devices[device].processor
            executable = on_state(whole, threads, fetches, processor, simplified=True)
            return OwnProgram(executable, self.states[device], device, self.check)
        made = self._registered(whole, cut, fetches)
        made.explain = partial(explained, whole, choices[0], {}, cut)
        return made

    def _registered(self, step: Step, cut: Partition, fetches: int) -> ClusterProgram:
        """The program, once all tasks have compiled their stages."""
        with self._lock:
            number = next(self._numbers)
        cut = replace(cut, fetches=cut.fetches[:fetches])
        plan = routes(cut, self.task)
        self._used.update(task for task in plan if task != self.task)
        messages = {
            task: self._registration(cut, route, number)
            for task, route in plan.items()
            if task != self.task
        }
        futures = {t: self.links[t].channel.start(message) for t, message in messages.items()}
        own = {stage.device for stage in cut.stages} & self._worker.devices.keys()
        stages = StagedProgram(cut, self._worker.devices, own) if own else None
        for task, future in futures.items():
            future.result()
            self._sent[task] |= digests_of(messages[task].head["constants"])
        return ClusterProgram(number, step, cut, plan, stages, self, self.task)

    def _registration(self, cut: Partition, route: Any, number: int) -> Message:
        devices = {device for device in self.devices if task_of(device) == route.task}
        head, arrays = registration(cut, route, devices, self._sent[route.task])
        head |= {"session": self.name, "program": number, "master": self.task}
        head["counters"] = self._counters
        return Message("register", head, arrays)

    # -- variables and resources

    def ask(
        self, device: str, do: str, keys: Sequence[str] = (), arrays: Sequence[Array] = (),
        shared: bool = False,
    ) -> tuple[Mapping[str, Any], Sequence[Array]]:  # fmt: skip
        """Ask a device about its variables.

        Args:
            device, do, keys, arrays: as in `ClusterSession.ask`.
            shared: whether a client in another process asks, which shares memory with this one.
        """
        self.check()
        message = Message("state", {"device": device, "do": do, "keys": list(keys)}, arrays)
        if device in self.states:
            answer = self._worker.store.ask(message, shared)
        else:
            answer = self._link(device).channel.call(message)
        return answer.head, answer.arrays

    def call(
        self, device: str, spec: ResourceSpec, method: str, options: Mapping[str, Any],
        inputs: Sequence[Array], cancel: Cancellation,
    ) -> Sequence[Array]:  # fmt: skip
        """Call a method of a resource; the call is cancelled with the session."""
        self.check()
        if device in self.states:
            return self._worker.store.call_here(spec, method, options, inputs, cancel)
        head = {"session": self.name, **told(spec, method, options)}
        message = Message("resource", head, inputs)
        channel = self._link(device).channel
        return answered(channel, message, cancel, "give up").arrays

    def _link(self, device: str) -> Link:
        task = task_of(device)
        if task not in self.links:
            known = ", ".join([self.task, *self.links])
            raise UnavailableError(f"session: no task {task}; expected one of {known}")
        return self.links[task]

    # -- its life

    def check(self) -> None:
        """Raises if the session is closed, or a task that it has used has failed."""
        if self._failure is not None:
            raise type(self._failure)(*self._failure.args)  # each with its own traceback
        for task in self._lost():
            if task not in self._told:
                self._told.add(task)
                raise UnavailableError(f"{task} has ended or did not answer: open a new session")
            raise AbortedError(
                f"the session lost {task}, which has ended or did not answer: open a new one"
            )

    def _lost(self) -> list[str]:
        """The tasks that it has used and that have failed."""
        return [task for task in list(self._used) if self.links[task].channel.closed]

    def begin(self, flight: Flight) -> None:
        """A step begins: it fails when a task does."""
        with self._lock:
            self._flights[flight] = None
        self.rendezvous.begin(flight.step, flight)
        self.check()

    def end(self, flight: Flight) -> None:
        """A step is over; its error tells which tasks have failed."""
        if flight.error is not None:
            self._told.update(self._lost())
        self.rendezvous.end(flight.step)
        with self._lock:
            self._flights.pop(flight, None)
        self._worker.note(flight.begin)

    def waits(self) -> list[Wait]:
        """The steps that are under way, and the tasks that they wait for."""
        return [flight.wait_now() for flight in list(self._flights)]

    def close(self, why: str = "") -> None:
        """Give up what runs and waits, and free what the session has registered.

        Args:
            why: what ended it, if that was not its client.
        """
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        closed = ClosedError("session: expected an open session, got a closed one")
        error = AbortedError(f"the session was closed{why}")
        self._fail(error, error if why else closed)
        message = Message("release", {"session": self.name})
        open_links = [link for link in self.links.values() if not link.channel.closed]
        released = [link.channel.start(message) for link in open_links]
        for future in released:  # a later session may have the same random streams
            with contextlib.suppress(UnavailableError, TimeoutError):
                future.result(CLOSE_SECONDS)
        self._worker.release(self.name)
        self._worker.store.forget_counters(self._counters)
        self._closed(self)

    def _fail(self, error: BaseException, later: BaseException) -> None:
        """Fail steps in flight with one error, later ones with another."""
        with self._lock:
            self._failure = later
            flights = list(self._flights)
        for flight in flights:
            flight.abort(error)


def with_own_counters(step: Step, prefix: str) -> Step:
    """The step with the keys of its counters after a prefix, so that a session has its own."""
    keys = {
        str(n.attrs["key"])
        for n in step.graph.nodes
        if op_of(n) is variable and n.attrs.get("counter")
    }
    if not keys:
        return step

    def rule(node: Node, out: Graph) -> tuple[Value, ...] | None:
        if op_of(node) is not variable or node.attrs["key"] not in keys:
            return None
        new = node.with_attrs({**node.attrs, "key": prefix + node.attrs["key"]})
        return out.append(new).outputs

    updates = tuple([prefix + key if key in keys else key for key in step.updates])
    return replace(step, graph=rewrite(step.graph, rule), updates=updates)

"""A worker: the devices, variables and resources of a task, and its parts of steps."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

import numpy as np

from weft.cluster.links import Links
from weft.cluster.route import Post
from weft.cluster.rpc import Message
from weft.cluster.rpc.failure import from_message, travels
from weft.cluster.wait import Wait
from weft.cluster.worker.part import Part
from weft.cluster.worker.program import Program, program_of
from weft.cluster.worker.rendezvous import Rendezvous
from weft.cluster.worker.store import Store
from weft.errors import AbortedError
from weft.host.crew import Crew
from weft.ops.boundary.state import LinAlgError
from weft.runtime.device.cpu import CpuDevice
from weft.runtime.staged import StagedProgram

Array = np.ndarray[Any, Any]
travels(LinAlgError)


class _Session:
    """What a session of a master has registered here.

    Args:
        counters: what the keys of its random streams begin with.
    """

    def __init__(self, counters: str) -> None:
        self.counters = counters
        self.programs: dict[int, Program] = {}
        self.constants: dict[str, Array] = {}


class Worker:
    """Runs parts of steps for masters.

    Args:
        task: its name.
        devices: of this task.
        links: to the other tasks.
        crew: threads for what may wait.
    """

    def __init__(self, task: str, devices: Sequence[CpuDevice], links: Links, crew: Crew) -> None:
        self.task = task
        self.incarnation = links.incarnation
        self.devices = {str(device.name): device for device in devices}
        self.store = Store(devices, crew)
        self.rendezvous = Rendezvous()
        self.links, self._crew = links, crew
        self._lock = threading.Lock()
        self._sessions: dict[str, _Session] = {}
        self._parts: dict[str, Part] = {}  # those of steps that are under way
        self.last: tuple[float, float] | None = None  # when a step ended, and its seconds

    # -- what masters ask for

    def register(self, message: Message) -> Future[Message]:
        """Compile this task's stages of a program."""
        return self._crew.submit(self._register, message)

    def _register(self, message: Message) -> Message:
        head = message.head
        with self._lock:
            made = self._sessions.setdefault(head["session"], _Session(head["counters"]))
        made.programs[head["program"]] = program_of(message, made.constants, self.devices)
        return Message("registered")

    def run(self, message: Message, shared: bool) -> Message:
        """Run this task's stages of a step, or those before its `finish`.

        Args:
            message: with the fed values.
            shared: whether the master shares memory with this task.
        """
        head = message.head
        session = self._sessions.get(head["session"])
        program = None if session is None else session.programs.get(head["program"])
        if program is None:
            raise AbortedError(
                f"{self.task} does not know the session: it has restarted since, or the session "
                f"was closed; open a new one"
            )
        part = Part(program, head["step"], self._deliver, shared, bool(head.get("trace")))
        self.rendezvous.begin(part.step, part.box)
        part.feed(program.route.feeds, message.arrays)
        self._parts[part.step] = part
        return self._ran(part, program.stages, program.early, program.route.first)

    def finish(self, message: Message) -> Message:
        """Run the rest of a step, with the values of the master."""
        step = message.head["step"]
        part = self._parts.get(step)
        later = None if part is None else part.program.later
        if part is None or later is None:
            raise AbortedError(f"{self.task}: step {step} was given up")
        part.feed(message.head["values"], message.arrays)
        route = part.program.route
        return self._ran(part, later, route.later, route.last, True)

    def _ran(
        self, part: Part, stages: StagedProgram, numbers: Sequence[int], values: Sequence[int],
        over: bool = False,
    ) -> Message:  # fmt: skip
        """The reply that brings values, once stages have run."""
        try:
            stages.run(part.box, self.store.states)
        except BaseException:
            self._end(part)
            raise
        if over or part.program.later is None:
            self._end(part)
        return Message("values", part.told(numbers), [part.box.get(v) for v in values])

    def _end(self, part: Part) -> None:
        self._parts.pop(part.step, None)
        self.rendezvous.end(part.step)
        self.note(part.begin)

    def note(self, begin: float) -> None:
        """A step has ended, which began at this time of `time.monotonic`."""
        now = time.monotonic()
        self.last = now, now - begin

    def waits(self) -> list[Wait]:
        """What runs here and waits for other tasks, or for other clients."""
        return [*[part.wait() for part in list(self._parts.values())], *self.store.waits()]

    def deliver(self, message: Message) -> Message:
        """Values that another task has sent."""
        self.rendezvous.put(message.head["step"], message.head["values"], message.arrays)
        return Message("taken")

    def abort(self, message: Message) -> Message:
        """Give a step up, because another task has failed."""
        error = from_message(Message("error", message.head["error"]), "another task")
        self._abort(message.head["step"], error)
        return Message("aborted")

    def _abort(self, step: str, error: BaseException) -> None:
        self._parts.pop(step, None)
        self.rendezvous.abort(step, error)

    def release(self, session: str) -> None:
        """Forget what a session has registered, and give up its steps."""
        registered = self._sessions.pop(session, None)
        error = AbortedError("the session was closed")
        for step in [s for s in list(self._parts) if s.startswith(f"{session}/")]:
            self._abort(step, error)
        self.rendezvous.abort_all(f"{session}/", error)
        self.store.release(session)
        if registered is not None:
            self.store.forget_counters(registered.counters)

    def master_left(self, incarnation: str) -> None:
        """Release the sessions of a master that has ended, or does not answer."""
        for session in [s for s in list(self._sessions) if s.startswith(f"{incarnation}.")]:
            self.release(session)

    def close(self) -> None:
        """Give up all steps, and end all waits."""
        for session in list(self._sessions):
            self.release(session)
        self.store.close()

    # -- what it sends

    def _deliver(self, step: str, post: Post, arrays: list[Array]) -> None:
        message = Message("deliver", {"step": step, "values": post.values}, arrays)
        link = self.links.to(post.to)
        link.channel.start(message).add_done_callback(partial(self._delivered, step))

    def _delivered(self, step: str, future: Future[Message]) -> None:
        error = None if future.cancelled() else future.exception()
        if error is not None:
            self.rendezvous.abort(step, error)

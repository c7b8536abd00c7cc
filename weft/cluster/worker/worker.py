"""A worker: the devices, variables and resources of a task, and its parts of steps."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

import numpy as np

from weft.cluster.copies import shared_memory
from weft.cluster.links import Links
from weft.cluster.route import Post
from weft.cluster.rpc import Message
from weft.cluster.rpc.failure import from_message, to_message, travels
from weft.cluster.wait import Wait
from weft.cluster.worker.outbox import Outbox
from weft.cluster.worker.program import Program, program_of
from weft.cluster.worker.rendezvous import Rendezvous
from weft.cluster.worker.store import Store
from weft.errors import AbortedError, WeftError
from weft.host.crew import Crew
from weft.ir.node import TensorType
from weft.ops.boundary.state import LinAlgError
from weft.runtime.device.cpu import CpuDevice
from weft.runtime.staged import Box, StagedProgram, StageTime, no_memory

Array = np.ndarray[Any, Any]
travels(LinAlgError)


class _Session:
    """What a session of a master has registered here.

    Attributes:
        owner: the connection that it came over, with which it ends.
        counters: what the keys of its random streams begin with, once it has programs.
    """

    def __init__(self, owner: object) -> None:
        self.owner = owner
        self.counters = ""
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
        self.rendezvous = Rendezvous(self._expects)
        self.links, self._crew = links, crew
        self._lock = threading.Lock()
        self._sessions: dict[str, _Session] = {}
        self._parts: dict[str, Part] = {}  # those of steps that are under way
        self.last: tuple[float, float] | None = None  # when a step ended, and its seconds

    # -- what masters ask for

    def register(self, message: Message, owner: object) -> Future[Message]:
        """Compile this task's stages of a program.

        Args:
            message: tells of them.
            owner: the connection that it came over.
        """
        made = self._session(message, owner)
        return self._crew.submit(self._register, message, made)

    def call(self, message: Message, owner: object) -> Future[Message]:
        """Call a method of a resource of this task; see `register`."""
        self._session(message, owner)
        return self.store.call(message)

    def _session(self, message: Message, owner: object) -> _Session:
        name, made = message.head["session"], _Session(owner)
        with self._lock:
            if self.store.has_released(name):  # the message is late: nobody would free the entry
                return made
            return self._sessions.setdefault(name, made)

    def _expects(self, step: str) -> bool:
        """Whether a step may begin here: masters register its session before."""
        return step.rpartition("/")[0] in self._sessions

    def _register(self, message: Message, made: _Session) -> Message:
        head = message.head
        made.counters = head["counters"]
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
        deliver = partial(self._deliver, program.master)
        part = Part(program, head["step"], deliver, shared, bool(head.get("trace")))
        self.rendezvous.begin(part.step, part.box)
        part.feed(program.route.feeds, message.arrays)
        self._parts[part.step] = part
        if head["session"] not in self._sessions:  # released meanwhile, without this part
            self._abort(part.step, AbortedError("the session was closed"))
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
        self.store.release(session)
        with self._lock:
            registered = self._sessions.pop(session, None)
        error = AbortedError("the session was closed")
        for step in [s for s in list(self._parts) if s.startswith(f"{session}/")]:
            self._abort(step, error)
        self.rendezvous.abort_all(f"{session}/", error)
        if registered is not None and registered.counters:
            self.store.forget_counters(registered.counters)

    def left(self, owner: object) -> None:
        """Release the sessions that came over a connection which has ended."""
        for name, session in list(self._sessions.items()):
            if session.owner is owner:
                self.release(name)

    def close(self) -> None:
        """Give up all steps, and end all waits."""
        for session in list(self._sessions):
            self.release(session)
        self.store.close()

    # -- what it sends

    def _deliver(self, master: str, step: str, post: Post, arrays: list[Array]) -> None:
        message = Message("deliver", {"step": step, "values": post.values}, arrays)
        link = self.links.to(post.to)
        link.channel.start(message).add_done_callback(partial(self._delivered, master, step))

    def _delivered(self, master: str, step: str, future: Future[Message]) -> None:
        error = None if future.cancelled() else future.exception()
        if error is not None:
            self.rendezvous.abort(step, error)
            # this task's part may have ended, while another one waits for the values
            self._crew.do(partial(self._tell, master, step, error))

    def _tell(self, master: str, step: str, error: BaseException) -> None:
        """Have the master of a step give it up."""
        message = Message("abort", {"step": step, "error": to_message(error).head})
        with contextlib.suppress(WeftError):  # without its master, a step ends by itself
            self.links.to(master).channel.start(message)


class Part:
    """The values of a task in one step.

    Args:
        program: what it runs.
        step: its name.
        deliver: sends values to another task.
        shared: whether the master shares memory with this task.
        traced: whether the times of stages are recorded.

    Attributes:
        box: the values.
        begin: when it began, by `time.monotonic`.
    """

    def __init__(
        self, program: Program, step: str, deliver: Callable[[str, Post, list[Array]], None],
        shared: bool, traced: bool,
    ) -> None:  # fmt: skip
        self.program, self.step = program, step
        self.begin = time.monotonic()
        posts = program.route.posts
        send = Outbox(posts, partial(deliver, step)).put if posts else None
        self._times: list[StageTime] = []
        watch = self._times.append if traced else None
        memory = partial(_memory, program.outside) if shared else no_memory
        self.box = Box(len(program.types), memory, send, watch)

    def feed(self, values: Sequence[int], arrays: Sequence[Array]) -> None:
        """Values that the master has sent."""
        for value, array in zip(values, arrays, strict=True):
            self.box.put(value, array)

    def wait(self) -> Wait:
        """For which tasks it waits now."""
        missing = [task for v, task in self.program.givers.items() if not self.box.has(v)]
        return Wait(f"step {self.step}", sorted(set(missing)), time.monotonic() - self.begin)

    def told(self, numbers: Sequence[int]) -> dict[str, Any]:
        """The times of the stages that have run, if they are recorded.

        Args:
            numbers: the positions of these stages in the partition.
        """
        if self.box.watch is None:
            return {}
        times = [(numbers[t.stage], *t[2:]) for t in self._times]
        self._times.clear()
        return {"times": times, "now": time.perf_counter_ns()}


def _memory(outside: frozenset[int], value: int, kind: TensorType) -> Array | None:
    return shared_memory(kind) if value in outside else None

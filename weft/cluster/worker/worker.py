"""A worker: the devices, variables and resources of a task, and its parts of steps."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Final

import numpy as np

from weft.cluster.links import Links
from weft.cluster.route import Post
from weft.cluster.rpc import Message
from weft.cluster.rpc.channel import settle
from weft.cluster.rpc.failure import from_message, to_message, travels
from weft.cluster.worker.part import Outbox, Replies
from weft.cluster.worker.program import Program, program_of
from weft.cluster.worker.rendezvous import Rendezvous
from weft.cluster.worker.store import Store
from weft.errors import AbortedError, UnavailableError
from weft.host.crew import Crew
from weft.ops.boundary.state import LinAlgError
from weft.runtime.device.cpu import CpuDevice
from weft.runtime.staged import Box

Array = np.ndarray[Any, Any]
TELL_SECONDS: Final = 5.0
"""How long a worker tries to reach a master that it has not met, to tell an error."""
travels(LinAlgError)


class _Session:
    """What a session of a master has registered here."""

    def __init__(self, master: str) -> None:
        self.master = master
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
        self._parts: dict[str, Replies] = {}  # that may still be told to finish
        self._early: dict[str, Future[Message]] = {}  # replies to those told before they began

    # -- what masters ask for

    def register(self, message: Message) -> Future[Message]:
        """Compile this task's stages of a program."""
        return self._crew.submit(self._register, message)

    def _register(self, message: Message) -> Message:
        head = message.head
        with self._lock:
            made = self._sessions.setdefault(head["session"], _Session(head["master"]))
        made.programs[head["program"]] = program_of(message, made.constants, self.devices)
        return Message("registered")

    def run(self, message: Message) -> Future[Message]:
        """Run this task's stages of a step."""
        head, step = message.head, message.head["step"]
        session = self._sessions.get(head["session"])
        program = None if session is None else session.programs.get(head["program"])
        if session is None or program is None:
            raise AbortedError(
                f"{self.task} does not know the session: it has restarted since, or the session "
                f"was closed; open a new one"
            )
        replies = Replies(program.route, partial(self._tell_failure, session.master, step))
        outbox = Outbox(program.route.posts, partial(self._deliver, step))
        box = Box(program.count, send=partial(_given, outbox, replies))
        for value, array in zip(program.route.feeds, message.arrays, strict=True):
            box.put(value, array)
        with self._lock:
            self._parts[step] = replies
            finish = self._early.pop(step, None)
        if finish is not None:
            replies.finish(finish)
        self.rendezvous.begin(step, box)
        self._crew.do(partial(self._work, program, step, box, replies))
        return replies.run

    def _work(self, program: Program, step: str, box: Box, replies: Replies) -> None:
        try:
            program.stages.run(box, self.store.states)
        except BaseException as error:
            self.rendezvous.end(step)
            replies.fail(error)
        else:
            self.rendezvous.end(step)
            replies.done()
        if program.route.ends:
            self._parts.pop(step, None)

    def deliver(self, message: Message) -> Message:
        """Values that another task has sent."""
        self.rendezvous.put(message.head["step"], message.head["values"], message.arrays)
        return Message("taken")

    def finish(self, message: Message) -> Future[Message]:
        """The last values of the master; the reply tells that this task is done."""
        step = message.head["step"]
        future: Future[Message] = Future()
        with self._lock:
            replies = self._parts.pop(step, None)
            if replies is None:  # messages may overtake each other
                if self.rendezvous.is_over(step):
                    raise AbortedError(f"{self.task}: step {step} was given up")
                self._early[step] = future
        if replies is not None:
            replies.finish(future)
        self.deliver(message)
        return future

    def abort(self, message: Message) -> Message:
        """Give a step up, because another task has failed."""
        error = from_message(Message("error", message.head["error"]), "another task")
        self._abort(message.head["step"], error)
        return Message("aborted")

    def _abort(self, step: str, error: BaseException) -> None:
        with self._lock:
            self._parts.pop(step, None)
            finish = self._early.pop(step, None)
        if finish is not None:
            settle(finish, error)
        self.rendezvous.abort(step, error)

    def release(self, session: str) -> None:
        """Forget what a session has registered, and give up its steps."""
        self._sessions.pop(session, None)
        error = AbortedError("the session was closed")
        for step in [s for s in list(self._parts) if s.startswith(f"{session}/")]:
            self._abort(step, error)
        self.rendezvous.abort_all(f"{session}/", error)
        self.store.release(session)

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
        error = future.exception()
        if error is not None:
            self.rendezvous.abort(step, error)

    def _tell_failure(self, master: str, step: str, error: BaseException) -> None:
        """Tell the master an error that no reply brings, so that it does not wait."""
        if master == self.task:
            return
        link = self.links.known(master)
        if link is None:  # one that does not answer gives the step up itself
            self._crew.do(partial(self._tell_late, master, step, error))
        else:
            link.channel.start(_abortion(step, error))

    def _tell_late(self, master: str, step: str, error: BaseException) -> None:
        with contextlib.suppress(UnavailableError):
            self.links.to(master, TELL_SECONDS).channel.start(_abortion(step, error))


def _abortion(step: str, error: BaseException) -> Message:
    return Message("abort", {"step": step, "error": to_message(error).head})


def _given(outbox: Outbox, replies: Replies, value: int, array: Array) -> None:
    replies.put(value, array)
    outbox.put(value, array)

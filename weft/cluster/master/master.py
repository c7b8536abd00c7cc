"""A master: opens sessions over the tasks of a cluster, for this process and for clients."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Collection, Sequence

from weft.cluster.links import Links
from weft.cluster.master.session import MasterSession
from weft.cluster.rpc import Message
from weft.cluster.worker.worker import Worker
from weft.host.crew import Crew
from weft.ir.device import DeviceName


class Master:
    """Opens sessions.

    Args:
        worker: of the same task.
        links: to the other tasks.
        crew: threads for what may wait.
    """

    def __init__(self, worker: Worker, links: Links, crew: Crew) -> None:
        self.worker, self.links, self.crew = worker, links, crew
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._sessions: dict[MasterSession, int] = {}

    def open(
        self, filters: Sequence[str] = (), threads: int = 0, timeout: float | None = None
    ) -> MasterSession:
        """A new session, once all of its tasks answer.

        Args:
            filters: only tasks that agree with one of these names take part; all if none is given.
            threads: how many threads run a step.
            timeout: how long to wait for tasks, in seconds.

        Raises:
            UnavailableError: a task does not answer; the message names it.
            ArgumentError: its cluster spec is another one.
        """
        tasks = [task for task in self._allowed(filters) if task != self.worker.task]
        futures = {task: self.crew.submit(self.links.alive, task, timeout) for task in tasks}
        links = {task: future.result() for task, future in futures.items()}
        with self._lock:
            number = next(self._numbers)
            slot = next(n for n in itertools.count() if n not in self._sessions.values())
            name = f"{self.worker.incarnation}.{number}"
            counters = f"session {slot} of {self.worker.task}: "
            made = MasterSession(name, counters, self.worker, links, threads, self._forget)
            self._sessions[made] = slot
        return made

    def _allowed(self, filters: Sequence[str]) -> list[str]:
        names = [DeviceName.parse(text).of_task for text in filters]
        tasks = list(self.links.addresses)
        if not names:
            return tasks
        return [t for t in tasks if any(DeviceName.parse(t).agrees(name) for name in names)]

    def _forget(self, session: MasterSession) -> None:
        with self._lock:
            self._sessions.pop(session, None)

    def reset(self, containers: Collection[str], timeout: float | None = None) -> None:
        """Close all sessions, and forget the contents of these containers in all tasks.

        Args:
            containers: their names; all containers if there is none.
            timeout: how long to wait for tasks, in seconds.
        """
        for session in self.sessions:
            session.close(" by Session.reset: open a new one")
        self.worker.store.reset(containers)
        message = Message("reset", {"containers": list(containers)})
        others = [task for task in self.links.addresses if task != self.worker.task]
        links = [self.crew.submit(self.links.alive, task, timeout) for task in others]
        for reset in [future.result().channel.start(message) for future in links]:
            reset.result(timeout)

    def close(self) -> None:
        """Close all sessions."""
        for session in list(self._sessions):
            session.close()

    @property
    def sessions(self) -> list[MasterSession]:
        """Those that are open."""
        return list(self._sessions)

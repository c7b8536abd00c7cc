"""Threads that call functions, and the tasks that they are given."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any


class Task:
    """A call whose result somebody waits for."""

    __slots__ = ("_done", "_function", "error", "result")

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function: Callable[[], Any] | None = function
        self._done = threading.Lock()
        self._done.acquire()
        self.error: BaseException | None = None
        self.result: Any = None

    @classmethod
    def failed(cls, error: BaseException) -> Task:
        """One that has raised already."""
        task = cls(lambda: None)
        task.error, task._function = error, None
        task._done.release()
        return task

    def run(self) -> None:
        """Make the call."""
        function, self._function = self._function, None
        assert function is not None
        try:
            self.result = function()
        except BaseException as error:  # it is raised where the result is asked for
            self.error = error
        self._done.release()

    @property
    def ready(self) -> bool:
        """Whether `wait` would return at once."""
        return not self._done.locked()

    def wait(self) -> None:
        """Return when the call has been made."""
        with self._done:
            pass

    def value(self) -> Any:
        """The result.

        Raises:
            Exception: what the call raised.
        """
        if self.error is not None:
            raise self.error
        return self.result


class Workers:
    """Threads that take tasks from one queue; they end when nobody refers to this any more."""

    def __init__(self, count: int, name: str) -> None:
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._name = name
        self.count = 0
        self._end = weakref.finalize(self, _end, self._tasks)
        self.resize(count)

    def resize(self, count: int) -> None:
        """Start threads, or let some end after what is queued."""
        for _ in range(count, self.count):
            self._tasks.put(None)
        for _ in range(self.count, count):
            thread = threading.Thread(
                target=_serve, args=(self._tasks,), name=f"weft-{self._name}", daemon=True
            )
            thread.start()
        self.count = count

    def submit(self, task: Task) -> None:
        """Queue a task; without threads, make its call here."""
        if self.count:
            self._tasks.put(task)
        else:
            task.run()

    def close(self) -> None:
        """Let all threads end; tasks that wait are not made."""
        self._end()


class _Closed(Task):
    """Behind it nothing is done any more; each thread puts it back for the next."""


def _end(tasks: SimpleQueue[Task | None]) -> None:
    while not tasks.empty():
        tasks.get_nowait()
    tasks.put(_Closed(lambda: None))


def _serve(tasks: SimpleQueue[Task | None]) -> None:
    while (task := tasks.get()) is not None:
        if isinstance(task, _Closed):
            tasks.put(task)
            return
        task.run()
        del task  # the next may be long in coming

"""Threads that call functions, and their tasks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from weft.host.garbage_collection import finalize_here


class Task:
    """A call whose result is awaited."""

    __slots__ = ("_done", "_function", "error", "result")

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function: Callable[[], Any] | None = function
        self._done = threading.Lock()
        self._done.acquire()
        self.error: BaseException | None = None
        self.result: Any = None

    @classmethod
    def failed(cls, error: BaseException) -> Task:
        """A task that has already failed."""
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
        except BaseException as error:  # raised when the result is requested
            self.error = error
        self._done.release()

    @property
    def ready(self) -> bool:
        """Whether `wait` would return at once."""
        return not self._done.locked()

    def wait(self, seconds: float = 0) -> bool:
        """Wait for the call, at most `seconds` if not 0; returns whether it is done."""
        done = self._done.acquire(timeout=seconds or -1)
        if done:
            self._done.release()
        return done

    def value(self) -> Any:
        """The result.

        Raises:
            Exception: the call's.
        """
        if self.error is not None:
            raise self.error
        return self.result


class Workers:
    """Threads that take tasks from one queue; they stop when this is garbage-collected."""

    def __init__(self, count: int, name: str) -> None:
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._name = name
        self.count = 0
        self._end = finalize_here(self, _end, self._tasks)
        self.resize(count)

    def resize(self, count: int) -> None:
        """Start threads, or stop some after the queued tasks."""
        for _ in range(count, self.count):
            self._tasks.put(None)
        for _ in range(self.count, count):
            thread = threading.Thread(
                target=_serve, args=(self._tasks,), name=f"weft-{self._name}", daemon=True
            )
            thread.start()
        self.count = count

    def submit(self, task: Task) -> None:
        """Queue a task; without threads, run it here."""
        if self.count:
            self._tasks.put(task)
        else:
            task.run()

    def close(self) -> None:
        """Stop all threads; queued tasks are not run."""
        self._end()


class _Closed(Task):
    """The end of the queue; each thread puts it back for the next one."""


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
        del task  # the next task may take long to arrive

"""One run of a step over several tasks, as its master sees it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np

from weft.cluster.links import Link
from weft.cluster.route import Post, Route
from weft.cluster.rpc import Message
from weft.runtime.staged import Box

Array = np.ndarray[Any, Any]


class Flight:
    """Waits until all tasks have run their parts of a step.

    Args:
        step: its name.
        routes: of the other tasks, by name.
        count: of the values of the partition.

    Attributes:
        box: the values that the master's own task has.
    """

    def __init__(self, step: str, routes: Collection[Route]) -> None:
        self.step = step
        self.box: Box | None = None
        self._routes = {route.task: route for route in routes}
        self._running = len(routes)
        self._changed = threading.Condition(threading.Lock())
        self.error: BaseException | None = None

    def ran(self, task: str, future: Future[Message]) -> None:
        """The reply of a task to `run`."""
        route = self._routes[task]
        if self._take(route.first, future) and route.ends:
            self._done()

    def told(self, post: Post, future: Future[Message]) -> None:
        """The reply of a task to values of the master."""
        values = self._routes[post.to].last if post.last else ()
        if self._take(values, future) and post.last:
            self._done()

    def fail(self, error: BaseException) -> None:
        """Something has failed: whoever waits gets the first error."""
        with self._changed:
            if self.error is None:
                self.error = error
            self._changed.notify_all()
        if self.box is not None:
            self.box.abort(self.error)

    def put(self, value: int, array: Array) -> None:
        """A value that another task has posted."""
        assert self.box is not None
        self.box.put(value, array)

    def abort(self, error: BaseException) -> None:
        """Another task, or whoever watches, gives the step up."""
        self.fail(error)

    def wait(self) -> None:
        """Waits until all other tasks are done.

        Raises:
            BaseException: the first error.
        """
        with self._changed:
            while self._running and self.error is None:
                self._changed.wait()
        if self.error is not None:
            raise self.error

    def _take(self, values: Sequence[int], future: Future[Message]) -> bool:
        """Takes the values of a reply; whether it is no error."""
        if future.cancelled():
            return False
        error = future.exception()
        if error is not None:
            self.fail(error)
            return False
        assert self.box is not None
        for value, array in zip(values, future.result().arrays, strict=True):
            self.box.put(value, array)
        return True

    def _done(self) -> None:
        with self._changed:
            self._running -= 1
            if not self._running:
                self._changed.notify_all()


def send(link: Link, message: Message, done: Callable[[Future[Message]], None]) -> None:
    """Sends a message, and has `done` called with the reply."""
    link.channel.start(message).add_done_callback(done)

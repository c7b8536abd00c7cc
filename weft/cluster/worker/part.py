"""A task's part of one step: what it runs, sends and replies."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np

from weft.cluster.route import Post, Route
from weft.cluster.rpc import Message
from weft.cluster.rpc.channel import settle

Array = np.ndarray[Any, Any]
Tell = Callable[[Post, list[Array]], None]
"""Sends values to another task."""


class Outbox:
    """Collects what the stages of a part give, until a message can be sent.

    Args:
        posts: the messages to other tasks.
        tell: sends one of them.
    """

    def __init__(self, posts: Sequence[Post], tell: Tell) -> None:
        self._tell = tell
        self._posts: dict[int, list[Post]] = {}
        self._missing: dict[Post, int] = {}
        for post in posts:
            self._missing[post] = len(post.values)
            for value in post.values:
                self._posts.setdefault(value, []).append(post)
        self._found: dict[int, Array] = {}
        self._lock = threading.Lock()

    def put(self, value: int, array: Array) -> None:
        """A value that a stage has given; sends each message that is now complete."""
        posts = self._posts.get(value)
        if posts is None:
            return
        with self._lock:
            self._found[value] = array
            for post in posts:
                self._missing[post] -= 1
            ready = [post for post in posts if not self._missing[post]]
        for post in ready:
            self._tell(post, [self._found[v] for v in post.values])


class Replies:
    """The replies to `run` and `finish`, which bring values to the master.

    Args:
        route: of the task.
        failed: told an error that no reply can bring.
    """

    def __init__(self, route: Route, failed: Callable[[BaseException], None]) -> None:
        self._route, self._failed = route, failed
        self.run: Future[Message] = Future()
        self._finish: Future[Message] | None = None
        self._lock = threading.Lock()
        self._found: dict[int, Array] = {}
        self._early = 0 if route.ends else len(route.first)
        self._wanted = frozenset((*route.first, *route.last))
        self._first = frozenset(route.first)
        self._done = False
        self._error: BaseException | None = None
        if not route.ends and not route.first:
            self.run.set_result(Message("values", {}, []))

    def put(self, value: int, array: Array) -> None:
        """A value that a stage has given."""
        if value not in self._wanted:
            return
        with self._lock:
            self._found[value] = array
            self._early -= value in self._first
            ready = not self._route.ends and value in self._first and not self._early
        if ready:
            self._answer(self.run, self._route.first)

    def finish(self, future: Future[Message]) -> None:
        """The master has sent its last values: `future` is the reply that ends the step."""
        with self._lock:
            self._finish = future
            error, done = self._error, self._done
        if error is not None:
            settle(future, error)
        elif done:
            self._answer(future, self._route.last)

    def done(self) -> None:
        """All stages have run."""
        if self._route.ends:
            self._answer(self.run, self._route.first)
            return
        with self._lock:
            self._done = True
            waiting = self._finish
        if waiting is not None:
            self._answer(waiting, self._route.last)

    def fail(self, error: BaseException) -> None:
        """A stage has failed, or the step was given up."""
        with self._lock:
            self._error = error
            waiting = self.run if not self.run.done() else self._finish
        if waiting is None:
            self._failed(error)
        elif not waiting.done():
            settle(waiting, error)

    def _answer(self, future: Future[Message], values: Sequence[int]) -> None:
        if not future.done():
            settle(future, Message("values", {}, [self._found[v] for v in values]))

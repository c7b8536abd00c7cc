"""What a task sends in one step."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.cluster.route import Post

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
        self._tell: Tell | None = tell
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
        if (tell := self._tell) is None:  # the step is over
            return
        for post in ready:
            tell(post, [self._found[v] for v in post.values])

    def close(self) -> None:
        """Forget the values, and how to send them."""
        self._tell = None
        self._found.clear()

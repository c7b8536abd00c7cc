"""One run of a step over several tasks, as its master sees it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

import numpy as np

from weft.cluster.route import Post
from weft.cluster.rpc import Message
from weft.cluster.worker.outbox import Outbox
from weft.ir.node import TensorType
from weft.runtime.staged import Box, StageTime

Array = np.ndarray[Any, Any]
Answer = Future[Message]


class Flight(Box):
    """The values of one run of a step in its master, and the calls that bring some of them.

    Who needs a value that a call brings waits for this call itself.

    Args:
        step: its name.
        count: of the values of the partition.
        allocate: gives memory for a value that is sent to another task.
        posts: what is sent to other tasks.
        tell: sends it.
        failed: called once, with the error, when some part of the step has failed.
        watch: is told the times of stages.
    """

    def __init__(
        self, step: str, count: int, allocate: Callable[[int, TensorType], Array | None],
        posts: Sequence[Post], tell: Callable[[Flight, Post, list[Array]], None],
        failed: Callable[[Flight, BaseException], None],
        watch: Callable[[StageTime], object] | None = None,
    ) -> None:  # fmt: skip
        outbox = Outbox(posts, partial(tell, self)) if posts else None
        super().__init__(count, allocate, outbox and outbox.put, watch)
        self.step = step
        self._failed = failed
        self._sources: dict[int, tuple[Answer, Sequence[int]]] = {}
        self.calls: list[tuple[str, Answer]] = []
        self._lock = threading.Lock()

    def call(self, task: str, answer: Answer, values: Sequence[int]) -> None:
        """A call of a task that brings values."""
        for value in values:
            self._sources[value] = answer, values
        self.calls.append((task, answer))
        answer.add_done_callback(self._answered)

    def _answered(self, answer: Answer) -> None:
        error = None if answer.cancelled() else answer.exception()
        if error is not None:
            self.abort(error)

    def get(self, value: int) -> Array:
        """A value, once it is there."""
        source = self._sources.get(value)
        if source is not None:
            answer, values = source
            for number, array in zip(values, self._result(answer).arrays, strict=True):
                self.put(number, array)
                self._sources.pop(number, None)
        return super().get(value)

    def abort(self, error: BaseException) -> None:
        """Makes all that wait raise this error, and tells the tasks; only the first one counts."""
        with self._lock:
            first = self.error is None
            super().abort(error)
        if first:
            self._failed(self, error)

    def wait(self, task: str = "") -> list[tuple[str, Message]]:
        """The answers of all calls of a task, or of all tasks.

        Raises:
            BaseException: the first error.
        """
        calls = [(name, answer) for name, answer in self.calls if name == task or not task]
        return [(name, self._result(answer)) for name, answer in calls]

    def _result(self, answer: Answer) -> Message:
        try:
            return answer.result()
        except BaseException as error:
            self.abort(error)
            self.check()
            raise

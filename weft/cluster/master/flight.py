"""One run of a step over several tasks, as its master sees it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

import numpy as np

from weft.cluster.route import Post
from weft.cluster.rpc import Message
from weft.cluster.wait import Wait
from weft.cluster.worker.outbox import Outbox
from weft.ir.node import TensorType
from weft.runtime.staged import Box, StageTime

Array = np.ndarray[Any, Any]
Answer = Future[Message]


class Call:
    """A message to a task.

    Attributes:
        task: its name.
        answer: what it will answer.
        sent: when it was sent.
        received: when the answer came, if that is recorded.
    """

    __slots__ = ("answer", "received", "sent", "task")

    def __init__(self, task: str, answer: Answer) -> None:
        self.task, self.answer = task, answer
        self.sent, self.received = time.perf_counter_ns(), 0

    @property
    def waits(self) -> bool:
        """Whether there is no answer yet."""
        answer: Answer | None = getattr(self, "answer", None)  # gone once the step is over
        return answer is not None and not answer.done()


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
        self._outbox = Outbox(posts, partial(tell, self)) if posts else None
        super().__init__(count, allocate, self._outbox and self._outbox.put, watch)
        self.step = step
        self.begin = time.monotonic()
        self._failed = failed
        self._sources: dict[int, tuple[Answer, Sequence[int]]] = {}
        self.calls: list[Call] = []
        self._lock = threading.Lock()

    def call(self, task: str, answer: Answer, values: Sequence[int]) -> None:
        """A call of a task that brings values."""
        for value in values:
            self._sources[value] = answer, values
        call = Call(task, answer)
        self.calls.append(call)
        answer.add_done_callback(partial(self._answered, call))

    def _answered(self, call: Call, answer: Answer) -> None:
        if self.watch is not None:
            call.received = time.perf_counter_ns()
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

    def wait(self, task: str = "") -> None:
        """Waits for all calls of a task, or of all tasks.

        Raises:
            BaseException: the first error.
        """
        for call in list(self.calls):
            if call.task == task or not task:
                self._result(call.answer)

    def wait_now(self) -> Wait:
        """For which tasks it waits now."""
        tasks = sorted({call.task for call in list(self.calls) if call.waits})
        return Wait(f"step {self.step}", tasks, time.monotonic() - self.begin)

    def _result(self, answer: Answer) -> Message:
        try:
            return answer.result()
        except BaseException as error:
            self.abort(error)
            self.check()
            raise

    def close(self) -> None:
        """Part from what refers to it, so that its memory is free at once."""
        for call in self.calls:
            del call.answer  # whose callback refers to the call
        self.calls, self._sources = [], {}
        if self._outbox is not None:
            self._outbox.close()

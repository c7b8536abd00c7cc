"""A task's part of one step."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from weft.cluster.copies import shared_memory
from weft.cluster.route import Post
from weft.cluster.wait import Wait
from weft.cluster.worker.outbox import Outbox
from weft.cluster.worker.program import Program
from weft.ir.node import TensorType
from weft.runtime.staged import Box, StageTime, no_memory

Array = np.ndarray[Any, Any]


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

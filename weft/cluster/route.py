"""Routes: which values of a partitioned step travel between tasks, and in which messages.

The master sends one `run` to each other task. Its reply brings what the task gives the master
without waiting for anybody, such as variables of a parameter server. If the task goes on with
values of the master, the last of these messages is a `finish`, whose reply brings the rest and
tells that the task is done: a training step is one `run` and one `finish` per parameter server.
What neither reply can bring in time is posted by a message of its own.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from weft.ir.device import DeviceName
from weft.passes.partition import Partition


@dataclass(frozen=True)
class Post:
    """Values of one stage that go to another task in one message.

    Attributes:
        stage: its position in the partition.
        to: the task.
        values: their numbers.
        last: whether nothing more follows from the master: the message is a `finish`.
    """

    stage: int
    to: str
    values: tuple[int, ...]
    last: bool = False


@dataclass(frozen=True)
class Route:
    """What a task receives and sends in each step.

    Attributes:
        task: its name.
        feeds: values that come with `run`.
        first: values in the reply of `run`.
        last: values in the reply of `finish`.
        posts: its other messages.
        ends: whether the task is done when it replies to `run`: there is no `finish`.
    """

    task: str
    feeds: tuple[int, ...]
    first: tuple[int, ...] = ()
    last: tuple[int, ...] = ()
    posts: tuple[Post, ...] = ()
    ends: bool = True


@functools.cache
def task_of(device: str) -> str:
    """The name of the task that a device belongs to.

    Example:
        >>> task_of("/job:ps/replica:0/task:1/device:CPU:0")
        '/job:ps/replica:0/task:1'
    """
    return str(DeviceName.parse(device).of_task)


def routes(partition: Partition, master: str) -> dict[str, Route]:
    """The routes of all tasks that take part, and of the master's.

    Args:
        partition: of the step.
        master: the name of the task that runs it.
    """
    walk = _Routes(partition, master)
    others = [task for task in dict.fromkeys(walk.tasks) if task != master]
    return {master: walk.of_master(), **{task: walk.of(task) for task in others}}


class _Routes:
    def __init__(self, partition: Partition, master: str) -> None:
        self.master = master
        self.stages = partition.stages
        self.tasks = [task_of(stage.device) for stage in self.stages]
        self.fed = frozenset(partition.feeds)
        self.readers: dict[int, dict[str, None]] = {}
        for stage, task in zip(self.stages, self.tasks, strict=True):
            for value in stage.inputs:
                self.readers.setdefault(value, {})[task] = None
        for value in partition.fetches:
            self.readers.setdefault(value, {})[master] = None
        self.makers = {v: i for i, stage in enumerate(self.stages) for v in stage.outputs}
        self.free = self._free()
        own = [i for i, task in enumerate(self.tasks) if task == master]
        self.last_to = {task: i for i in own for task in self._sent(i)}
        self.last_of_all = max(self.last_to.values(), default=-1)

    def of_master(self) -> Route:
        """The route of the master's own task."""
        posts = [
            Post(i, task, values, self.last_to[task] == i)
            for i, own in enumerate(self.tasks)
            if own == self.master
            for task, values in self._sent(i).items()
        ]
        return Route(self.master, (), posts=tuple(posts))

    def of(self, task: str) -> Route:
        """The route of another task."""
        own = [i for i, name in enumerate(self.tasks) if name == task]
        alone = all([self.free[i] for i in own])
        ends = alone or task not in self.last_to
        first = self._to_master([i for i in own if self._replied(i, alone, ends)])
        late = [i for i in own if not self.free[i] and i > self.last_of_all]
        last = () if ends else self._to_master(late)
        answered = frozenset((*first, *last))
        posts = [
            Post(i, to, rest)
            for i in own
            for to, values in self._sent(i).items()
            if (rest := tuple([v for v in values if to != self.master or v not in answered]))
        ]
        read = dict.fromkeys(v for i in own for v in self.stages[i].inputs if v in self.fed)
        return Route(task, tuple(read), first, last, tuple(posts), ends)

    def _replied(self, stage: int, alone: bool, ends: bool) -> bool:
        """Whether the reply of `run` can bring what a stage gives."""
        if alone:
            return True
        return stage > self.last_of_all if ends else self.free[stage]

    def _free(self) -> list[bool]:
        """For each stage, whether it is reached without waiting for another task."""
        found: list[bool] = []
        waits: set[str] = set()  # devices
        for stage, task in zip(self.stages, self.tasks, strict=True):
            makers = [self.makers[v] for v in stage.inputs if v not in self.fed]
            before = [*makers, *stage.after]
            own = all([self.tasks[i] == task and found[i] for i in before])
            found.append(own and stage.device not in waits)
            if not found[-1]:
                waits.add(stage.device)
        return found

    def _sent(self, stage: int) -> dict[str, tuple[int, ...]]:
        """What a stage gives to each other task."""
        found: dict[str, list[int]] = {}
        for value in self.stages[stage].outputs:
            for task in self.readers.get(value, ()):
                if task != self.tasks[stage]:
                    found.setdefault(task, []).append(value)
        return {task: tuple(values) for task, values in found.items()}

    def _to_master(self, stages: list[int]) -> tuple[int, ...]:
        return tuple([v for i in stages for v in self._sent(i).get(self.master, ())])

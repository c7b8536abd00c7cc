"""Routes: which values of a partitioned step travel between tasks, and in which messages.

The master sends one `run` to each other task, whose reply tells that the task is done, and brings
what it gives the master. There are two shorter ways:

- A task that first gives values without waiting for anybody, and goes on with values of the
  master, replies to `run` in between. The values of the master come with a `finish`: a training
  step is one `run` and one `finish` for each parameter server.
- A task that begins with values of the master gets its `run` together with them.

What no reply can bring in time is posted by a message of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
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
        kind: of the message: `deliver`, `finish` or `run`.
    """

    stage: int
    to: str
    values: tuple[int, ...]
    kind: str = "deliver"


@dataclass(frozen=True)
class Route:
    """What a task receives and sends in each step.

    Attributes:
        task: its name.
        feeds: values that come with `run`.
        first: values in the reply of `run`.
        last: values in the reply of `finish`.
        posts: its other messages.
        later: positions of the stages that run at `finish`; empty: there is none.
        prompt: whether `run` is sent when the step begins, not with values of a stage.
    """

    task: str
    feeds: tuple[int, ...]
    first: tuple[int, ...] = ()
    last: tuple[int, ...] = ()
    posts: tuple[Post, ...] = ()
    later: tuple[int, ...] = ()
    prompt: bool = True


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
    found = {task: walk.of(task) for task in others}
    return {master: walk.of_master(found), **found}


def _kind(route: Route) -> str:
    """The kind of the messages of the master's stages to a task."""
    if not route.prompt:
        return "run"
    return "finish" if route.later else "deliver"


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
        self.sends: dict[str, list[int]] = {}  # stages of the master that give a task something
        for i, task in enumerate(self.tasks):
            for to in self._sent(i) if task == master else ():
                self.sends.setdefault(to, []).append(i)
        self.last_sent = max([i for some in self.sends.values() for i in some], default=-1)

    def of_master(self, others: Mapping[str, Route]) -> Route:
        """The route of the master's own task."""
        posts = [
            Post(i, task, values, _kind(others[task]))
            for i, own in enumerate(self.tasks)
            if own == self.master
            for task, values in self._sent(i).items()
        ]
        return Route(self.master, (), posts=tuple(posts))

    def of(self, task: str) -> Route:
        """The route of another task."""
        own = [i for i, name in enumerate(self.tasks) if name == task]
        read = dict.fromkeys(v for i in own for v in self.stages[i].inputs if v in self.fed)
        if self._in_two(task, own):
            early = [i for i in own if self.free[i]]
            late = [i for i in own if not self.free[i]]
            answers = self._to_master(early), self._to_master(late)
            posts = self._posts(own, frozenset((*answers[0], *answers[1])))
            if early:
                return Route(task, tuple(read), *answers, posts, tuple(late))
            read.update(dict.fromkeys(self._sent(self.sends[task][0])[task]))
            return Route(task, tuple(read), answers[1], (), posts, prompt=False)
        alone = all([self.free[i] for i in own])
        first = self._to_master([i for i in own if alone or i > self.last_sent])
        return Route(task, tuple(read), first, (), self._posts(own, frozenset(first)))

    def _in_two(self, task: str, own: list[int]) -> bool:
        """Whether all that a task waits for has come with the values of one stage of the master,
        and nobody needs the rest before it has ended."""
        sends = self.sends.get(task, [])
        late = [i for i in own if not self.free[i]]
        if len(sends) != 1 or not late or late[0] < sends[0]:
            return False
        return not any([i < self.last_sent and self._to_master([i]) for i in late])

    def _posts(self, own: list[int], answered: frozenset[int]) -> tuple[Post, ...]:
        """The messages of a task, but for what replies bring."""
        return tuple([
            Post(i, to, rest)
            for i in own
            for to, values in self._sent(i).items()
            if (rest := tuple([v for v in values if to != self.master or v not in answered]))
        ])  # fmt: skip

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

"""Which tasks a cluster has, and their addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from weft.errors import ArgumentError, DTypeError
from weft.ir.device import DeviceName

__all__ = ["ClusterDef", "ClusterSpec", "JobDef", "ServerDef"]


@dataclass
class JobDef:
    """The tasks of a job, as a program's description of a cluster lists them.

    Attributes:
        name: of the job.
        tasks: addresses by number.
    """

    name: str = ""
    tasks: dict[int, str] = field(default_factory=dict[int, str])


class Jobs(list[JobDef]):
    """Jobs, to which `add` adds an empty one, as to a field of TensorFlow's message."""

    def add(self, name: str = "", tasks: Mapping[int, str] | None = None) -> JobDef:
        """A new job, to be filled in.

        >>> jobs = Jobs()
        >>> jobs.add(name="ps").tasks[0] = "a:1"
        >>> jobs
        [JobDef(name='ps', tasks={0: 'a:1'})]
        """
        made = JobDef(name, dict(tasks or {}))
        self.append(made)
        return made


@dataclass
class ClusterDef:
    """A cluster as plain data, as TensorFlow's message of this name.

    Attributes:
        job: the jobs, by name.
    """

    job: Jobs = field(default_factory=Jobs)

    def __post_init__(self) -> None:
        self.job = Jobs(self.job)


@dataclass
class ServerDef:
    """What a server is, as plain data, as TensorFlow's message of this name.

    Attributes:
        cluster: all tasks.
        job_name: the server's job.
        task_index: its number there.
        protocol: always `grpc`.
        default_session_config: options of sessions that give none.
        port: where it listens; 0 for the port of its address in `cluster`.
    """

    cluster: ClusterDef = field(default_factory=ClusterDef)
    job_name: str = ""
    task_index: int = 0
    protocol: str = "grpc"
    default_session_config: Any = None
    port: int = 0


class ClusterSpec:
    """The tasks of a cluster by job, with their addresses.

    Args:
        cluster: addresses by job: a list, or a dict by number where tasks are missing; another
            spec; or a `ClusterDef`.

    Example:
        >>> spec = ClusterSpec({"worker": ["a:2222", "b:2222"], "ps": {1: "c:2222"}})
        >>> spec.jobs, spec.num_tasks("worker"), spec.task_indices("ps")
        (['ps', 'worker'], 2, [1])
        >>> spec.task_address("ps", 1), spec.job_tasks("ps")
        ('c:2222', [None, 'c:2222'])

    Raises:
        DTypeError: it is none of these.
    """

    def __init__(self, cluster: Any) -> None:
        self._jobs: dict[str, dict[int, str]] = {}
        self._listed: set[str] = set()  # jobs of which all tasks are known
        if isinstance(cluster, ClusterSpec):
            self._jobs = {job: dict(tasks) for job, tasks in cluster._jobs.items()}
            self._listed = set(cluster._listed)
        elif isinstance(cluster, Mapping):
            for job, tasks in cast("Mapping[Any, Any]", cluster).items():
                self._add(job, tasks)
        elif hasattr(cluster, "job"):
            for one in cluster.job:
                self._add(one.name, dict(one.tasks))
        else:
            raise DTypeError(
                f"ClusterSpec: expected a dict from names of jobs to addresses, got {cluster!r}"
            )
        self._refuse_twice()

    def _add(self, job: Any, tasks: Any) -> None:
        if not isinstance(job, str):
            raise DTypeError(f"ClusterSpec: expected the name of a job, got {job!r}")
        if isinstance(tasks, Mapping):
            given = dict(cast("Mapping[Any, Any]", tasks))
        elif isinstance(tasks, Sequence) and not isinstance(tasks, str):
            given = dict(enumerate(cast("Sequence[Any]", tasks)))
            self._listed.add(job)
        else:
            raise DTypeError(
                f"ClusterSpec: job {job!r}: expected a list of addresses or a dict of them by "
                f"number, got {tasks!r}"
            )
        for index, address in given.items():
            _check_task(job, index, address)
        self._jobs[job] = {index: given[index] for index in sorted(given)}

    def _refuse_twice(self) -> None:
        """Two tasks cannot listen on one address, unless the port is still to be chosen."""
        seen: dict[str, str] = {}
        for task, address in self:
            if address in seen and not address.endswith(":0"):
                raise ArgumentError(
                    f"ClusterSpec: {seen[address]} and {task} have the same address {address}"
                )
            seen[address] = str(task)

    def __iter__(self) -> Iterator[tuple[DeviceName, str]]:
        for job in self.jobs:
            for index, address in self._jobs[job].items():
                yield DeviceName(job, 0, index), address

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClusterSpec) and self._jobs == other._jobs

    def __hash__(self) -> int:
        return hash(str(self.as_dict()))

    def __repr__(self) -> str:
        return f"ClusterSpec({self.as_dict()!r})"

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs."""
        return sorted(self._jobs)

    def as_dict(self) -> dict[str, list[str] | dict[int, str]]:
        """Addresses by job: lists, or dicts by number where tasks are missing."""
        return {job: _as_listed(self._jobs[job]) for job in self.jobs}

    def as_cluster_def(self) -> ClusterDef:
        """The same as plain data."""
        return ClusterDef(Jobs([JobDef(job, dict(self._jobs[job])) for job in self.jobs]))

    def told(self) -> dict[str, Any]:
        """The same as values that JSON can represent, for `ClusterSpec.heard`."""
        return {
            job: {"listed": job in self._listed, "tasks": list(tasks.items())}
            for job, tasks in self._jobs.items()
        }

    @classmethod
    def heard(cls, told: Mapping[str, Any]) -> ClusterSpec:
        """The spec that another process has told.

        >>> spec = ClusterSpec({"ps": ["a:1"]})
        >>> ClusterSpec.heard(spec.told()) == spec
        True
        """
        jobs = {job: dict(one["tasks"]) for job, one in told.items()}
        return cls({job: list(t.values()) if told[job]["listed"] else t for job, t in jobs.items()})

    def num_tasks(self, job_name: str) -> int:
        """How many tasks of a job are known."""
        return len(self._job(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """The numbers of a job's tasks."""
        return list(self._job(job_name))

    def job_tasks(self, job_name: str) -> list[str | None]:
        """The addresses of a job's tasks by number; `None` for those that are not known."""
        tasks = self._job(job_name)
        return [tasks.get(index) for index in range(max(tasks, default=-1) + 1)]

    def task_address(self, job_name: str, task_index: int) -> str:
        """The address of a task.

        Raises:
            ArgumentError: there is no such task; the message lists those that there are.
        """
        tasks = self._job(job_name)
        if task_index not in tasks:
            known = ", ".join(map(str, tasks)) or "none"
            raise ArgumentError(
                f"cluster: job {job_name!r} has no task {task_index}; its tasks are {known}"
            )
        return tasks[task_index]

    def contradiction(self, other: ClusterSpec) -> str:
        """Where two specs of one cluster differ, in words; empty if they do not."""
        for job in sorted(self._jobs.keys() & other._jobs.keys()):
            mine, its = self._jobs[job], other._jobs[job]
            for index in sorted(mine.keys() & its.keys()):
                if mine[index] != its[index]:
                    return f"{DeviceName(job, 0, index)} is {mine[index]} here, {its[index]} there"
            if job in self._listed & other._listed and len(mine) != len(its):
                return f"job {job!r} has {len(mine)} tasks here, {len(its)} there"
        return ""

    def _job(self, name: str) -> dict[int, str]:
        if name not in self._jobs:
            known = ", ".join(self.jobs) or "none"
            raise ArgumentError(f"cluster: there is no job {name!r}; the jobs are {known}")
        return self._jobs[name]


def _check_task(job: str, index: Any, address: Any) -> None:
    if not isinstance(index, int) or index < 0:
        raise DTypeError(f"ClusterSpec: job {job!r}: expected the number of a task, got {index!r}")
    if not isinstance(address, str) or not address:
        raise DTypeError(
            f"ClusterSpec: job {job!r}, task {index}: expected an address such as "
            f"host:2222, got {address!r}"
        )


def _as_listed(tasks: dict[int, str]) -> list[str] | dict[int, str]:
    whole = list(tasks) == list(range(len(tasks)))
    return list(tasks.values()) if whole else dict(tasks)

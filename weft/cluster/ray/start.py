"""`start`: the tasks of a cluster as Ray actors in a placement group."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from weft.cluster.ray.library import in_bundle, library, placed, removed
from weft.cluster.ray.task import TaskActor, free_address
from weft.cluster.rpc import RpcOptions
from weft.cluster.spec import ClusterSpec
from weft.errors import ArgumentError, DeadlineError

__all__ = ["RayCluster", "start"]

Program = Callable[..., Any]
READY_SECONDS: Final = 120.0
MOST_DRAWS: Final = 10


class RayCluster:
    """Tasks that run on Ray; it is stopped at the end of a `with` block.

    Attributes:
        spec: all tasks, with their addresses.
        actors: Ray's handles, by job and number.
    """

    def __init__(
        self, spec: ClusterSpec, actors: Mapping[tuple[str, int], Any], group: Any
    ) -> None:
        self.spec: Final = spec
        self.actors: Final = dict(actors)
        self._group = group
        self._running: dict[tuple[str, int], Any] = {}

    def run(self, programs: Mapping[str, Program], args: Sequence[Any] = ()) -> None:
        """Begins the programs of jobs.

        A task that is killed comes back and begins its program anew, with `Task.restarted` set.

        Args:
            programs: what each task of a job calls, with a `Task` and the arguments.
            args: of the programs.
        """
        unknown = sorted(set(programs) - set(self.spec.jobs))
        if unknown:
            raise ArgumentError.here(
                f"weft.cluster.ray: expected programs of {', '.join(self.spec.jobs)}, "
                f"got one of {unknown[0]!r}"
            )
        for (job, index), actor in self.actors.items():
            if job in programs:
                self._running[job, index] = actor.run.remote(programs[job], tuple(args))

    def wait(self, timeout: float | None = None) -> dict[str, list[Any]]:
        """The results of the programs, by job.

        Args:
            timeout: the most seconds that it may take.

        Raises:
            DeadlineError: it takes longer.
            Exception: what a program has raised.
        """
        ray = library()
        pending = list(self._running.values())
        done, rest = ray.wait(pending, num_returns=len(pending), timeout=timeout)
        if rest:
            raise DeadlineError(
                f"weft.cluster.ray: {len(rest)} of {len(pending)} programs still run after "
                f"{timeout} s"
            )
        ray.get(done)
        jobs = dict.fromkeys(job for job, _ in self._running)
        return {
            job: [ray.get(ref) for (its, _), ref in self._running.items() if its == job]
            for job in jobs
        }

    def kill(self, job: str, index: int) -> None:
        """Kills the process of a task; Ray starts another.

        Args:
            job: of the task.
            index: its number in the job.
        """
        library().kill(self.actors[job, index], no_restart=False)

    def stop(self) -> None:
        """Ends all tasks, and gives their resources back."""
        ray = library()
        for actor in self.actors.values():
            ray.kill(actor)
        removed(self._group)

    def __enter__(self) -> RayCluster:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


def start(
    jobs: Mapping[str, int], programs: Mapping[str, Program] | None = None,
    args: Sequence[Any] = (), *, servers: Collection[str] | None = None,
    resources: Mapping[str, Mapping[str, float]] | None = None, strategy: str = "SPREAD",
    max_restarts: int = -1, environment: Mapping[str, str] | None = None,
    options: RpcOptions | None = None, timeout: float = READY_SECONDS,
) -> RayCluster:  # fmt: skip
    """Starts the tasks of a cluster as Ray actors, one a bundle of a placement group.

    Each task has `TF_CONFIG` in its environment, and a server that listens at its address. A task
    that is killed is started again by Ray on its node, at its address, and the others let it in.

    Args:
        jobs: how many tasks each job has.
        programs: what each task of a job calls, with a `Task` and the arguments; a job without one
            serves the others.
        args: of the programs.
        servers: the jobs whose tasks have servers; all by default.
        resources: what a task of a job needs, such as `{"ps": {"CPU": 2}}`; one CPU by default.
        strategy: of the placement group: `SPREAD`, `PACK`, `STRICT_SPREAD` (one task a node) or
            `STRICT_PACK`.
        max_restarts: how often a task may be started again; -1 for without end.
        environment: variables of the tasks.
        options: of connections.
        timeout: seconds until the resources must be there, and then until all tasks listen.

    Raises:
        ArgumentError: Ray is not installed, or its cluster lacks the resources.
        DeadlineError: the tasks do not listen in time.
    """
    ray = library()
    tasks = [(job, index) for job, count in jobs.items() for index in range(count)]
    if not tasks:
        raise ArgumentError.here("weft.cluster.ray: expected at least one task")
    needs = {job: dict((resources or {}).get(job, {"CPU": 1.0})) for job in jobs}
    group = placed([needs[job] for job, _ in tasks], strategy, timeout)
    try:
        addresses = _addresses(ray, group, len(tasks))
        lists = {job: [a for (j, _), a in zip(tasks, addresses, strict=True) if j == job]
                 for job in jobs}  # fmt: skip
        variables = {"env_vars": dict(environment or {})}
        actors: dict[tuple[str, int], Any] = {}
        for number, (job, index) in enumerate(tasks):
            serves = servers is None or job in servers
            made = ray.remote(TaskActor).options(
                **_asked(needs[job]), max_restarts=max_restarts, max_concurrency=4,
                max_task_retries=max_restarts, scheduling_strategy=in_bundle(group, number),
                runtime_env=variables,
            )  # fmt: skip
            actors[job, index] = made.remote(lists, job, index, serves, options or RpcOptions())
        _wait_ready(ray, list(actors.values()), timeout)
    except BaseException:
        removed(group)
        raise
    cluster = RayCluster(ClusterSpec(lists), actors, group)
    if programs:
        cluster.run(programs, args)
    return cluster


def _asked(needs: Mapping[str, float]) -> dict[str, Any]:
    """Resources as Ray's options of an actor."""
    rest = {name: amount for name, amount in needs.items() if name != "CPU"}
    return {"num_cpus": needs.get("CPU", 0), "resources": rest}


def _addresses(ray: Any, group: Any, count: int) -> list[str]:
    """An address for the task of each bundle, on its node."""
    found: list[str] = []
    for _ in range(MOST_DRAWS):
        asked = [
            ray.remote(free_address)
            .options(num_cpus=0, scheduling_strategy=in_bundle(group, number))
            .remote()
            for number in range(count)
        ]
        found = ray.get(asked)
        if len(set(found)) == count:
            return found
    raise ArgumentError(f"weft.cluster.ray: expected {count} free ports, got {sorted(found)}")


def _wait_ready(ray: Any, actors: Sequence[Any], timeout: float) -> None:
    asked = [actor.ready.remote() for actor in actors]
    done, rest = ray.wait(asked, num_returns=len(asked), timeout=timeout)
    ray.get(done)  # raises what a task's start has raised
    if rest:
        raise DeadlineError(
            f"weft.cluster.ray: {len(rest)} of {len(asked)} tasks do not listen after {timeout} s"
        )

"""Cluster resolvers, with TensorFlow's names: which tasks there are, and which this process is."""

from __future__ import annotations

import abc
from typing import Any

from weft.cluster.spec import ClusterSpec
from weft.errors import ArgumentError, DTypeError, UnknownKeyError

__all__ = ["ClusterResolver", "SimpleClusterResolver", "UnionClusterResolver"]


def url(address: str, rpc_layer: str | None) -> str:
    """The target of sessions at an address: `grpc://host:port`."""
    return f"{rpc_layer}://{address}" if rpc_layer and address else address


class ClusterResolver(abc.ABC):
    """Tells a cluster, and this process's place in it.

    Attributes:
        task_type: the job of this process; `None` if unknown.
        task_id: its number in the job.
        rpc_layer: the protocol, `grpc`.
    """

    task_type: str | None = None
    task_id: int | None = None
    rpc_layer: str | None = None

    @property
    def environment(self) -> str:
        """Where the cluster runs; empty unless a resolver was told."""
        return ""

    @abc.abstractmethod
    def cluster_spec(self) -> ClusterSpec:
        """The cluster."""

    def master(
        self, task_type: str | None = None, task_id: int | None = None,
        rpc_layer: str | None = None,
    ) -> str:  # fmt: skip
        """The target of sessions with a task's master; this process's own by default.

        Args:
            task_type: the task's job.
            task_id: its number in the job.
            rpc_layer: the protocol.
        """
        job = self.task_type if task_type is None else task_type
        index = self.task_id if task_id is None else task_id
        if job is None or index is None:
            return ""
        return url(self.cluster_spec().task_address(job, index), rpc_layer or self.rpc_layer)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]:
        """How many accelerators a task has, by kind: none."""
        return {}


class SimpleClusterResolver(ClusterResolver):
    """Tells what it was told.

    Args:
        cluster_spec: the cluster.
        master: the target of sessions.
        task_type: the job of this process.
        task_id: its number in the job.
        environment: where the cluster runs.
        num_accelerators: how many accelerators a task has, by kind.
        rpc_layer: the protocol.
    """

    def __init__(
        self, cluster_spec: ClusterSpec, master: str = "", task_type: str | None = None,
        task_id: int | None = None, environment: str = "",
        num_accelerators: Any = None, rpc_layer: str | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(cluster_spec, ClusterSpec):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DTypeError.here(
                f"SimpleClusterResolver: expected a ClusterSpec, got {cluster_spec!r}"
            )
        if not isinstance(master, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DTypeError.here(f"SimpleClusterResolver: expected master as text, got {master!r}")
        self._spec, self._master, self._environment = cluster_spec, master, environment
        self._accelerators: Any = {} if num_accelerators is None else num_accelerators
        self.task_type, self.task_id, self.rpc_layer = task_type, task_id, rpc_layer

    @property
    def environment(self) -> str:
        """What it was told."""
        return self._environment

    def cluster_spec(self) -> ClusterSpec:
        """The cluster."""
        return self._spec

    def master(
        self, task_type: str | None = None, task_id: int | None = None,
        rpc_layer: str | None = None,
    ) -> str:  # fmt: skip
        """The target that it was told; with a task, that of the task's master."""
        layer = rpc_layer or self.rpc_layer
        if task_type is not None and task_id is not None:
            return url(self._spec.task_address(task_type, task_id), layer)
        return url(self._master, layer)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]:
        """What it was told."""
        return self._accelerators


class UnionClusterResolver(ClusterResolver):
    """Joins the clusters of several resolvers; everything else is the first one's.

    Lists of one job's tasks are appended; where one of them is a dict by number, all are merged.

    Args:
        resolvers: at least one.
        rpc_layer, task_type, task_id: instead of the first resolver's.
    """

    def __init__(
        self, *resolvers: ClusterResolver, rpc_layer: str | None = None,
        task_type: str | None = None, task_id: int | None = None,
    ) -> None:  # fmt: skip
        if not resolvers:
            raise ArgumentError.here("UnionClusterResolver: expected at least one resolver")
        for one in resolvers:
            if not isinstance(one, ClusterResolver):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise DTypeError.here(f"UnionClusterResolver: expected resolvers, got {one!r}")
        first = resolvers[0]
        self._resolvers = resolvers
        self.rpc_layer = rpc_layer or first.rpc_layer
        self.task_type = task_type or first.task_type
        self.task_id = first.task_id if task_id is None else task_id

    @property
    def environment(self) -> str:
        """The first resolver's."""
        return self._resolvers[0].environment

    def cluster_spec(self) -> ClusterSpec:
        """All tasks.

        Raises:
            UnknownKeyError: two dicts have a task of one number.
        """
        every = [resolver.cluster_spec().as_dict() for resolver in self._resolvers]
        merged: dict[str, list[str] | dict[int, str]] = {}
        for job in dict.fromkeys(job for jobs in every for job in jobs):
            parts = [jobs[job] for jobs in every if job in jobs]
            merged[job] = _joined(job, parts)
        return ClusterSpec(merged)

    def master(
        self, task_type: str | None = None, task_id: int | None = None,
        rpc_layer: str | None = None,
    ) -> str:  # fmt: skip
        """The first resolver's; with a task, that of the task's master."""
        if task_type is not None and task_id is not None:
            return super().master(task_type, task_id, rpc_layer)
        return self._resolvers[0].master(rpc_layer=rpc_layer)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]:
        """The first resolver's."""
        return self._resolvers[0].num_accelerators(task_type, task_id, config_proto)


def _joined(job: str, parts: list[list[str] | dict[int, str]]) -> list[str] | dict[int, str]:
    lists = [part for part in parts if isinstance(part, list)]
    if len(lists) == len(parts):
        return [address for part in lists for address in part]
    found: dict[int, str] = {}
    for part in parts:
        tasks = dict(enumerate(part)) if isinstance(part, list) else part
        twice = sorted(found.keys() & tasks.keys())
        if twice:
            raise UnknownKeyError(
                f"UnionClusterResolver: job {job!r} has tasks {twice} in several clusters"
            )
        found.update(tasks)
    return found

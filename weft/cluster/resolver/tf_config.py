"""The cluster that the environment variable `TF_CONFIG` tells: Kubeflow, JobSet, and by hand."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Final, cast

from weft.cluster.resolver.base import ClusterResolver, url
from weft.cluster.spec import ClusterSpec
from weft.errors import ArgumentError

__all__ = ["TFConfigClusterResolver"]

VARIABLE: Final = "TF_CONFIG"


class TFConfigClusterResolver(ClusterResolver):
    """Reads `TF_CONFIG`: `{"cluster": {"worker": [...]}, "task": {"type": ..., "index": ...}}`.

    Args:
        task_type: the job of this process, instead of the variable's.
        task_id: its number in the job, instead of the variable's.
        rpc_layer: the protocol, instead of the variable's.
        environment: where the cluster runs.
    """

    def __init__(
        self, task_type: str | None = None, task_id: int | None = None,
        rpc_layer: str | None = None, environment: str | None = None,
    ) -> None:  # fmt: skip
        config = read()
        task = config.get("task", {})
        index = task.get("index") if task_id is None else task_id
        job = task.get("type") if task_type is None else task_type
        self.task_type = None if job is None else str(job)
        self.task_id = None if index is None else int(index)
        self.rpc_layer = rpc_layer or config.get("rpc_layer")
        self._environment = environment or config.get("environment", "")

    @property
    def environment(self) -> str:
        """What it was told, or the variable tells."""
        return self._environment

    def cluster_spec(self) -> ClusterSpec:
        """The cluster; empty without the variable."""
        jobs = read().get("cluster", {})
        return ClusterSpec({job: _tasks(tasks) for job, tasks in jobs.items()})

    def master(
        self, task_type: str | None = None, task_id: int | None = None,
        rpc_layer: str | None = None,
    ) -> str:  # fmt: skip
        """The target of sessions: what the variable tells, else this process's own.

        It is empty, this process without a server, where the cluster has one task or none.
        """
        told = read().get("session_master")
        if told is not None:
            return str(told)
        spec = self.cluster_spec()
        if sum([spec.num_tasks(job) for job in spec.jobs]) < 2:
            return ""
        job = self.task_type if task_type is None else task_type
        index = self.task_id if task_id is None else task_id
        if job is None or index is None:
            raise ArgumentError.here(f"{VARIABLE}: expected a task in it, or given to master()")
        return url(spec.task_address(job, index), rpc_layer or self.rpc_layer)


def read(environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What the variable tells; empty without it.

    Raises:
        ArgumentError: it is no JSON object.
    """
    text = (os.environ if environ is None else environ).get(VARIABLE, "{}")
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ArgumentError.here(
            f"{VARIABLE}: expected JSON, got {text[:200]!r}: {error}"
        ) from None
    if not isinstance(found, dict):
        raise ArgumentError.here(f"{VARIABLE}: expected a JSON object, got {text[:200]!r}")
    return cast("dict[str, Any]", found)


def _tasks(tasks: Any) -> Any:
    """Numbers of tasks as numbers: the keys of JSON objects are text."""
    if isinstance(tasks, dict):
        return {int(index): address for index, address in cast("dict[str, str]", tasks).items()}
    return tasks

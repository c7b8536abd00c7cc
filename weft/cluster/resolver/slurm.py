"""The cluster that a job step of Slurm is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from weft.cluster.resolver.base import ClusterResolver
from weft.cluster.resolver.hostlist import expand_hostlist, expand_tasks_per_node
from weft.cluster.resolver.placed import addresses_of, divided
from weft.cluster.spec import ClusterSpec
from weft.errors import ArgumentError, UndefinedMethodError

__all__ = ["SlurmClusterResolver"]

PORT_BASE: Final = 8888


class SlurmClusterResolver(ClusterResolver):
    """Reads the environment of a process that `srun` has started.

    Tasks are given to jobs, sorted by name, in the order of their ranks. `srun` must place them
    node by node, as it does by default (`--distribution=block`).

    Args:
        jobs: how many tasks each job has; all are workers by default.
        port_base: the port of a node's first task; the others follow.
        gpus_per_node, gpus_per_task: 0 or `None`: there are no devices but processors.
        tasks_per_node: how many tasks a node has, or each by name; by default as Slurm tells.
        auto_set_gpu: accepted; there is no GPU to set.
        rpc_layer: the protocol.

    Raises:
        ArgumentError: Slurm has not started this process, or its tasks are not those of the jobs.
    """

    def __init__(
        self, jobs: Mapping[str, int] | None = None, port_base: int = PORT_BASE,
        gpus_per_node: int | None = None, gpus_per_task: int | None = None,
        tasks_per_node: int | Mapping[str, int] | None = None, auto_set_gpu: bool = True,
        rpc_layer: str | None = "grpc",
    ) -> None:  # fmt: skip
        if gpus_per_node or gpus_per_task:
            raise UndefinedMethodError(
                f"SlurmClusterResolver: expected no GPUs, which are not supported, "
                f"got gpus_per_node={gpus_per_node}, gpus_per_task={gpus_per_task}"
            )
        rank = int(_read("PROCID"))
        hosts = _hosts(tasks_per_node)
        self._spec, tasks = divided(addresses_of(hosts, port_base), jobs, "SlurmClusterResolver")
        if not 0 <= rank < len(tasks):
            raise ArgumentError.here(
                f"SlurmClusterResolver: expected SLURM_PROCID below {len(tasks)}, got {rank}"
            )
        _check_host(hosts[rank], rank)
        self.task_type, self.task_id = tasks[rank]
        self.rpc_layer = rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        """The cluster."""
        return self._spec

    def get_task_info(self) -> tuple[str | None, int | None]:
        """The job of this process, and its number there."""
        return self.task_type, self.task_id


def present(environ: Mapping[str, str]) -> bool:
    """Whether `srun` has started this process, as one of several or by itself."""
    return all(f"SLURM_{name}" in environ for name in ("PROCID", "STEP_NODELIST"))


def _read(name: str) -> str:
    variable = f"SLURM_{name}"
    if variable not in os.environ:
        raise ArgumentError.here(
            f"SlurmClusterResolver: expected {variable} in the environment; start the program by "
            f"srun"
        )
    return os.environ[variable]


def _hosts(tasks_per_node: Any) -> list[str]:
    """The host of each rank."""
    if isinstance(tasks_per_node, Mapping):
        counts = {str(host): int(count) for host, count in tasks_per_node.items()}
        return [host for host, count in counts.items() for _ in range(count)]
    hosts = expand_hostlist(_read("STEP_NODELIST"))
    if tasks_per_node is None:
        numbers = expand_tasks_per_node(_read("STEP_TASKS_PER_NODE"))
    else:
        numbers = [int(tasks_per_node)] * len(hosts)
    if len(numbers) != len(hosts):
        raise ArgumentError.here(
            f"SlurmClusterResolver: expected tasks of {len(hosts)} nodes, got {numbers}"
        )
    return [host for host, count in zip(hosts, numbers, strict=True) for _ in range(count)]


def _check_host(host: str, rank: int) -> None:
    """Refuse ranks that are not placed node by node."""
    own = os.environ.get("SLURMD_NODENAME", host)
    if own != host:
        raise ArgumentError.here(
            f"SlurmClusterResolver: expected rank {rank} on {host}, got {own}; start the program "
            f"by srun --distribution=block"
        )

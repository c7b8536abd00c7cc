"""`resolve`: the cluster of this process, whatever has started it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from weft.cluster.resolver import mpi, slurm, tf_config
from weft.cluster.resolver.base import ClusterResolver
from weft.cluster.resolver.mpi import MPIClusterResolver
from weft.cluster.resolver.slurm import PORT_BASE, SlurmClusterResolver
from weft.cluster.resolver.tf_config import TFConfigClusterResolver
from weft.cluster.spec import ClusterSpec
from weft.errors import ArgumentError

__all__ = ["Resolved", "resolve"]


@dataclass(frozen=True)
class Resolved:
    """A cluster, and this process's place in it.

    Attributes:
        cluster: all tasks; empty if this process is by itself.
        job_name: the job of this process.
        task_index: its number in the job.
        source: what told: `TF_CONFIG`, `Slurm`, `MPI`, or nothing: empty.
    """

    cluster: ClusterSpec
    job_name: str
    task_index: int
    source: str

    @property
    def is_chief(self) -> bool:
        """Whether this process is the one that saves and coordinates.

        It is the only task of a job `chief` or `master`, else the first worker.
        """
        leads = [job for job in ("chief", "master") if job in self.cluster.jobs]
        return self.task_index == 0 and self.job_name == (leads[0] if leads else "worker")


def resolve(jobs: Mapping[str, int] | None = None, port_base: int = PORT_BASE) -> Resolved:
    """The cluster of this process, from the environment that whatever started it has set.

    `TF_CONFIG` comes first, which is set on purpose (Kubeflow, JobSet, `weft.cluster.ray`), then
    MPI, whose launcher may run under Slurm, then Slurm's `srun`. A process that none has started is
    a worker by itself.

    Args:
        jobs: how many tasks each job has, where the launcher only counts processes (Slurm, MPI);
            all are workers by default.
        port_base: the port of a host's first task there.

    Raises:
        ArgumentError: the environment contradicts itself, or the jobs.

    Example:
        >>> import os
        >>> os.environ["TF_CONFIG"] = (
        ...     '{"cluster": {"ps": ["a:1"], "worker": ["b:1", "c:1"]},'
        ...     ' "task": {"type": "worker", "index": 1}}'
        ... )
        >>> found = resolve()
        >>> found.cluster.jobs, found.job_name, found.task_index, found.is_chief
        (['ps', 'worker'], 'worker', 1, False)
        >>> del os.environ["TF_CONFIG"]
    """
    found = _resolver(jobs, port_base)
    if found is None:
        return Resolved(ClusterSpec({}), "worker", 0, "")
    source, resolver = found
    spec, job, index = resolver.cluster_spec(), resolver.task_type, resolver.task_id
    if job is None or index is None:
        raise ArgumentError.here(f"cluster: {source} tells no task: expected its type and index")
    if job != "evaluator" and spec:  # which Estimators have outside the cluster
        spec.task_address(job, index)
    return Resolved(spec, job, index, source)


def _resolver(jobs: Mapping[str, int] | None, port_base: int) -> tuple[str, ClusterResolver] | None:
    if tf_config.VARIABLE in os.environ:
        return tf_config.VARIABLE, TFConfigClusterResolver()
    if mpi.present(os.environ):
        return "MPI", MPIClusterResolver(jobs, port_base)
    if slurm.present(os.environ):
        return "Slurm", SlurmClusterResolver(jobs, port_base)
    return None

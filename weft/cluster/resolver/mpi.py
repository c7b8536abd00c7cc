"""The cluster that the ranks of an MPI job are."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Final

from weft.cluster.resolver.base import ClusterResolver
from weft.cluster.resolver.placed import addresses_of, divided
from weft.cluster.resolver.slurm import PORT_BASE
from weft.cluster.spec import ClusterSpec
from weft.errors import ArgumentError
from weft.transport import collective, session

__all__ = ["MPIClusterResolver"]

_LAUNCHERS: Final = (
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"),  # MPICH, Intel MPI
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"),  # Open MPI
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE"),  # MVAPICH2
)
"""Variables of launchers: the rank, how many there are, how many of them on this host."""


class MPIClusterResolver(ClusterResolver):
    """Reads the environment of a rank that `mpiexec` or `weft launch` has started.

    Ranks on one host are found at the loopback address. Ranks on several tell each other their
    hosts, for which all must have joined the job before (`weft.distributed.init_process_group`, or
    `hvd.init`), and make the resolver together.

    Args:
        jobs: how many tasks each job has; all are workers by default. Ranks are given to jobs,
            sorted by name, in order.
        port_base: the port of a host's first rank; the others follow.
        rpc_layer: the protocol.

    Raises:
        ArgumentError: no launcher has started this process, or its ranks are not those of the jobs.
    """

    def __init__(
        self, jobs: Mapping[str, int] | None = None, port_base: int = PORT_BASE,
        rpc_layer: str | None = "grpc",
    ) -> None:  # fmt: skip
        rank, size, local = _read()
        hosts = ["127.0.0.1"] * size if local == size else _told(size)
        self._spec, tasks = divided(addresses_of(hosts, port_base), jobs, "MPIClusterResolver")
        self.task_type, self.task_id = tasks[rank]
        self.rpc_layer = rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        """The cluster."""
        return self._spec


def present(environ: Mapping[str, str]) -> bool:
    """Whether a launcher has started this process, as one of several."""
    return any(int(environ.get(names[1], "1")) > 1 for names in _LAUNCHERS if names[0] in environ)


def _read() -> tuple[int, int, int]:
    """Rank, size, and how many ranks this host has."""
    for names in _LAUNCHERS:
        if names[0] in os.environ:
            rank, size = int(os.environ[names[0]]), int(os.environ[names[1]])
            return rank, size, int(os.environ.get(names[2], 0))
    raise ArgumentError.here(
        "MPIClusterResolver: expected the environment of a rank; start the program by mpiexec or "
        "weft launch"
    )


def _told(size: int) -> list[str]:
    """The host of each rank, as they tell each other."""
    joined = session.current()
    if joined is None or joined.world.size != size:
        raise ArgumentError.here(
            "MPIClusterResolver: ranks on several hosts must join the job before, by "
            "weft.distributed.init_process_group or hvd.init"
        )
    told = collective.all_gather_bytes(joined.world, socket.gethostname().encode(), "hosts")
    return [name.decode() for name in told]

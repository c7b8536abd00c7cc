"""A task of a cluster as a Ray actor, and what its program gets."""

from __future__ import annotations

import json
import os
import socket
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.cluster.ray.library import library
from weft.cluster.resolver.tf_config import VARIABLE
from weft.cluster.rpc import RpcOptions
from weft.cluster.server import Server
from weft.cluster.spec import ClusterSpec
from weft.errors import UnavailableError

BIND_SECONDS = 10.0
"""How long a task that comes back waits for the port of its predecessor."""


@dataclass(frozen=True)
class Task:
    """What a program is told.

    Attributes:
        cluster: all tasks.
        job_name: the job of this one.
        task_index: its number in the job.
        restarted: whether it has come back after it was killed.
        server: its server; `None` where the job has none.
    """

    cluster: ClusterSpec
    job_name: str
    task_index: int
    restarted: bool
    server: Server | None


class TaskActor:
    """The actor. Ray makes it anew, with the same arguments, after it was killed.

    Args:
        jobs: addresses of all tasks, by job.
        job: of this task.
        index: its number in the job.
        serves: whether it has a server.
        options: of connections.
    """

    def __init__(
        self, jobs: Mapping[str, Sequence[str]], job: str, index: int, serves: bool,
        options: RpcOptions,
    ) -> None:  # fmt: skip
        config = {"cluster": dict(jobs), "task": {"type": job, "index": index}}
        os.environ[VARIABLE] = json.dumps(config)
        self._cluster = ClusterSpec(jobs)
        self._task = job, index
        self._check_place(self._cluster.task_address(job, index))
        self._server = Server(self._cluster, job, index, options=options) if serves else None
        if self._server is not None:
            _listening(self._server)

    def ready(self) -> int:
        """The process, once it listens."""
        return os.getpid()

    def run(self, program: Callable[..., Any], args: Sequence[Any]) -> Any:
        """The result of a program."""
        with warnings.catch_warnings():  # Ray's own code calls what Ray deprecates
            warnings.simplefilter("ignore")
            restarted = library().get_runtime_context().was_current_actor_reconstructed
        return program(Task(self._cluster, *self._task, bool(restarted), self._server), *args)

    def _check_place(self, address: str) -> None:
        """Refuse to listen for others: a bundle whose node was lost may be on another one."""
        host = address.rpartition(":")[0]
        own = library().util.get_node_ip_address()
        if host != own:
            job, index = self._task
            raise UnavailableError(
                f"weft.cluster.ray: task {index} of {job!r} was at {address}, and has come back on "
                f"{own}; start the cluster anew"
            )


def _listening(server: Server) -> None:
    """Listens, once the process that had the port before is gone."""
    end = time.monotonic() + BIND_SECONDS
    while True:
        try:
            return server.start()
        except UnavailableError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def free_address() -> str:
    """An address on this node whose port is free now."""
    host = library().util.get_node_ip_address()
    with socket.socket() as free:
        free.bind((host, 0))
        return f"{host}:{free.getsockname()[1]}"

"""A session on the tasks of a cluster, through the master of a server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from weft.cluster.client import ClientSession
from weft.cluster.server import server_at
from weft.cluster.session import ClusterSession
from weft.cluster.variables import Variables
from weft.config import MAX_THREADS
from weft.errors import ConfigError
from weft.ir.device import DeviceName
from weft.ir.node import Node
from weft.passes.placement.place import Placed, place
from weft.passes.step import Request
from weft.resource.base import Array, Cancellation
from weft.tf1.framework.graph import Graph
from weft.tf1.session.backend import Backend, Run
from weft.tf1.session.options import ConfigProto


class ClusterBackend(Backend):
    """Runs on the tasks of a cluster.

    Args:
        target: of the server whose master is asked: `grpc://host:port`.
        config: options of the session.
        graph: whose variables the session reads and writes.

    Raises:
        UnavailableError: the server, or a task that it needs, does not answer.
    """

    def __init__(self, target: str, config: ConfigProto | None, graph: Graph) -> None:
        config = ConfigProto() if config is None else config
        threads = config.intra_op_parallelism_threads
        if threads < 0:
            raise ConfigError(f"intra_op_parallelism_threads: expected >= 0, got {threads}")
        self._soft = config.allow_soft_placement
        self._graph = graph
        self._session = _opened(target, config, min(threads, MAX_THREADS))
        names = map(DeviceName.parse, self._session.devices)
        task = DeviceName.parse(self._session.task)
        self._names = sorted(names, key=lambda name: name.of_task != task)
        self._placed: tuple[int, Placed] | None = None
        self.state = Variables(self._session, self._home)

    def function(self, request: Request) -> Run:
        """A part of a graph, placed."""
        placed = self._placement()
        return self._session.function(replace(request, placed=placed.devices))

    def _placement(self) -> Placed:
        """Where the graph's nodes are; computed again when it has grown."""
        graph = self._graph.ir
        if self._placed is None or self._placed[0] != len(graph.nodes):
            placed = place(graph, self._names, soft=self._soft, default=self._names[0])
            self._placed = len(graph.nodes), placed
        return self._placed[1]

    def _home(self, key: str) -> str | None:
        return self._placement().homes.get(key)

    def call(self, node: Node, inputs: Sequence[Array], cancel: Cancellation) -> Sequence[Array]:
        """A call of a resource, which lives in the task of the node's device."""
        device = self._placement().devices.get(node, str(self._names[0]))
        attrs: Any = node.attrs
        options = dict(attrs["options"])
        return self._session.call(
            device, attrs["resource"], attrs["method"], options, inputs, cancel
        )

    def devices(self) -> list[str]:
        """The names of all devices of all tasks."""
        return list(self._session.devices)

    def close(self) -> None:
        """Close the session of the master; variables stay."""
        self._session.close()


def _opened(target: str, config: ConfigProto, threads: int) -> ClusterSession:
    filters = [str(name) for name in config.device_filters]
    server = server_at(target)
    if server is not None:
        return server.master.open(filters, threads)
    return ClientSession(target, filters, threads)

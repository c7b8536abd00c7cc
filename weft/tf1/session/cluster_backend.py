"""A session on the tasks of a cluster, through the master of a server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from weft.cluster.client import ClientSession
from weft.cluster.client import reset as reset_at
from weft.cluster.server import server_at
from weft.cluster.session import ClusterSession
from weft.cluster.variables import Variables
from weft.config import MAX_THREADS
from weft.errors import ConfigError
from weft.ir.device import DeviceName
from weft.ir.node import Node
from weft.passes.level import calls_python
from weft.passes.step import Request
from weft.resource.base import Array, Cancellation
from weft.runtime.device.base import DeviceAttributes
from weft.tf1.framework.graph import Graph
from weft.tf1.session.backend import Backend, Run
from weft.tf1.session.options import ConfigProto
from weft.tf1.session.placement import Placement


class ClusterBackend(Backend):
    """Runs on the tasks of a cluster.

    Args:
        target: of the server whose master is asked: `grpc://host:port`.
        config: options of the session.
        graph: whose variables the session reads and writes.

    Raises:
        UnavailableError: the server, or a task that it needs, does not answer.
        ConfigError: an option has no meaning here.
    """

    apart = staticmethod(calls_python)  # programs run in other processes

    def __init__(self, target: str, config: ConfigProto | None, graph: Graph) -> None:
        config = ConfigProto() if config is None else config
        threads = config.intra_op_parallelism_threads
        if threads < 0:
            raise ConfigError(f"intra_op_parallelism_threads: expected >= 0, got {threads}")
        if config.isolate_session_state:
            raise ConfigError(
                "isolate_session_state: sessions of a server share their variables; leave it out, "
                "and build what is to be apart inside tf.container(...)"
            )
        self._session = _opened(target, config, min(threads, MAX_THREADS))
        names = map(DeviceName.parse, self._session.devices)
        task = DeviceName.parse(self._session.task)
        self._names = sorted(names, key=lambda name: name.of_task != task)
        self._placement = Placement(graph, self._names, config, always=True)
        self.state = Variables(self._session, self._home)

    def function(self, request: Request) -> Run:
        """A part of a graph, placed."""
        placed = self._placement.now(request)
        self._placement.log(request, None, {})
        return self._session.function(replace(request, placed=placed.devices))

    def _home(self, key: str) -> str | None:
        return self._placement.now().homes.get(key)

    def call(self, node: Node, inputs: Sequence[Array], cancel: Cancellation) -> Sequence[Array]:
        """A call of a resource, which lives in the task of the node's device."""
        device = self._placement.of(node)
        attrs: Any = node.attrs
        options = dict(attrs["options"])
        return self._session.call(
            device, attrs["resource"], attrs["method"], options, inputs, cancel
        )

    def devices(self) -> list[DeviceAttributes]:
        """All devices of all tasks."""
        return list(self._session.devices.values())

    def close(self) -> None:
        """Close the session of the master; variables stay."""
        self._session.close()


def reset(target: str, containers: Sequence[str]) -> None:
    """Close the sessions of a server's master, and forget the contents of containers."""
    server = server_at(target)
    if server is not None:
        server.master.reset(containers)
    else:
        reset_at(target, containers)


def _opened(target: str, config: ConfigProto, threads: int) -> ClusterSession:
    filters = [str(name) for name in config.device_filters]
    server = server_at(target)
    if server is not None:
        return server.master.open(filters, threads)
    return ClientSession(target, filters, threads, options=config.rpc_options)

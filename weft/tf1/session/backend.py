"""What a session runs on: this process, or the tasks of a cluster."""

from __future__ import annotations

import abc
from collections.abc import Callable, MutableMapping, Sequence
from typing import Any, Final

from weft.config import MAX_THREADS
from weft.errors import ConfigError
from weft.ir.device import DeviceName
from weft.ir.node import Node
from weft.library.first_runs import first_runs
from weft.ops.effect import is_host
from weft.passes.level import Apart
from weft.passes.step import Request
from weft.resource.base import Array, Cancellation, Containers
from weft.runtime.device.base import DeviceAttributes
from weft.runtime.device.local import LOCAL, cpu_devices
from weft.runtime.engine import Function, State
from weft.tf1.framework.graph import Graph
from weft.tf1.session.options import ConfigProto
from weft.tf1.session.placement import Placement

FIRST: Final = LOCAL.merged(DeviceName(kind="CPU", index=0))
Run = Callable[[Sequence[Any], Any], list[Any]]
"""A part of a graph as a function of the arrays of its feeds, and the variables."""


class Backend(abc.ABC):
    """Runs parts of a graph, and keeps the values of variables.

    Attributes:
        state: the values of variables and counters, by name.
        apart: which nodes run here, between programs.
    """

    state: MutableMapping[str, Any]
    apart: Apart = staticmethod(is_host)

    @abc.abstractmethod
    def function(self, request: Request) -> Run:
        """A part of a graph without host nodes, ready to run."""

    @abc.abstractmethod
    def call(self, node: Node, inputs: Sequence[Array], cancel: Cancellation) -> Sequence[Array]:
        """The results of a `resource_call`; it waits as long as need be, or until cancelled."""

    @abc.abstractmethod
    def devices(self) -> list[DeviceAttributes]:
        """All devices."""

    @abc.abstractmethod
    def close(self) -> None:
        """Free what the session holds."""


class ProcessBackend(Backend):
    """The one device of this process.

    Args:
        config: options of the session.
        graph: of the session.
    """

    def __init__(self, config: ConfigProto | None, graph: Graph) -> None:
        self._threads = 0 if config is None else config.intra_op_parallelism_threads
        if self._threads < 0:
            raise ConfigError(f"intra_op_parallelism_threads: expected >= 0, got {self._threads}")
        self.state = State()
        self._placement = Placement(graph, [FIRST], config)
        self._containers = Containers()

    def function(self, request: Request) -> Run:
        """A compiled part of a graph."""
        placed = self._placement.now(request)
        self._placement.log(request, None, {})
        asked = request.graph, request.fetches, request.targets, request.feeds
        threads = min(self._threads, MAX_THREADS) or None
        return Function(
            *asked, threads, done=request.done, placed=placed.apart, first=first_runs
        )  # fmt: skip

    def call(self, node: Node, inputs: Sequence[Array], cancel: Cancellation) -> Sequence[Array]:
        """A call of a resource of this session."""
        self._placement.of(node)
        attrs = node.attrs
        options = dict(attrs["options"])
        return self._containers.call(attrs["resource"], attrs["method"], inputs, options, cancel)

    def devices(self) -> list[DeviceAttributes]:
        """The device."""
        return [device.attributes for device in cpu_devices(1)]

    def close(self) -> None:
        """Forget all values and resources."""
        self.state = State()
        self._containers.reset()

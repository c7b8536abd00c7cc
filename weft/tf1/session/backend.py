"""What a session runs on: this process, or the tasks of a cluster."""

from __future__ import annotations

import abc
from collections.abc import Callable, MutableMapping, Sequence
from typing import Any

from weft.config import MAX_THREADS
from weft.errors import ConfigError
from weft.ir.node import Node
from weft.passes.step import Request
from weft.resource.base import Array, Cancellation, Containers
from weft.runtime.engine import Function, State
from weft.tf1.session.options import ConfigProto

Run = Callable[[Sequence[Any], Any], list[Any]]
"""A part of a graph as a function of the arrays of its feeds, and the variables."""


class Backend(abc.ABC):
    """Runs parts of a graph, and keeps the values of variables.

    Attributes:
        state: the values of variables and counters, by name.
    """

    state: MutableMapping[str, Any]

    @abc.abstractmethod
    def function(self, request: Request) -> Run:
        """A part of a graph without host nodes, ready to run."""

    @abc.abstractmethod
    def call(self, node: Node, inputs: Sequence[Array], cancel: Cancellation) -> Sequence[Array]:
        """The results of a `resource_call`; it waits as long as need be, or until cancelled."""

    @abc.abstractmethod
    def devices(self) -> list[str]:
        """The names of all devices."""

    @abc.abstractmethod
    def close(self) -> None:
        """Free what the session holds."""


class ProcessBackend(Backend):
    """The one device of this process."""

    def __init__(self, config: ConfigProto | None = None) -> None:
        self._threads = 0 if config is None else config.intra_op_parallelism_threads
        if self._threads < 0:
            raise ConfigError(f"intra_op_parallelism_threads: expected >= 0, got {self._threads}")
        self.state = State()
        self._containers = Containers()

    def function(self, request: Request) -> Run:
        """A compiled part of a graph."""
        asked = request.graph, request.fetches, request.targets, request.feeds
        threads = min(self._threads, MAX_THREADS) or None
        return Function(*asked, threads, done=request.done, placed=request.placed)

    def call(self, node: Node, inputs: Sequence[Array], cancel: Cancellation) -> Sequence[Array]:
        """A call of a resource of this session."""
        attrs = node.attrs
        options = dict(attrs["options"])
        return self._containers.call(attrs["resource"], attrs["method"], inputs, options, cancel)

    def devices(self) -> list[str]:
        """The name of the device."""
        return ["/job:localhost/replica:0/task:0/device:CPU:0"]

    def close(self) -> None:
        """Forget all values and resources."""
        self.state = State()
        self._containers.reset()

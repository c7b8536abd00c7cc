"""What a session over a cluster can do, in the process of its master or in another one."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from weft.ops.resource.spec import ResourceSpec
from weft.passes.step import Request
from weft.resource.base import Cancellation
from weft.runtime.device.base import DeviceAttributes

Array = np.ndarray[Any, Any]
Run = Callable[[Sequence[Any], Any], list[Any]]
"""A part of a graph as a function of the arrays of its feeds; the second argument is not used."""


class ClusterSession(abc.ABC):
    """Runs requests on the tasks of a cluster.

    Attributes:
        devices: all devices by full name.
        task: the name of the master's task, where what asks for no device runs.
    """

    devices: Mapping[str, DeviceAttributes]
    task: str

    @abc.abstractmethod
    def function(self, request: Request) -> Run:
        """A part of a graph, ready to run; `request.placed` has a device for each variable."""

    @abc.abstractmethod
    def ask(
        self, device: str, do: str, keys: Sequence[str] = (), arrays: Sequence[Array] = ()
    ) -> tuple[Mapping[str, Any], Sequence[Array]]:
        """Ask a device about its variables: see `weft.cluster.worker.store.Store.ask`."""

    @abc.abstractmethod
    def call(
        self, device: str, spec: ResourceSpec, method: str, options: Mapping[str, Any],
        inputs: Sequence[Array], cancel: Cancellation,
    ) -> Sequence[Array]:  # fmt: skip
        """Call a method of a resource that lives in the task of a device; may wait."""

    @abc.abstractmethod
    def close(self) -> None:
        """Give up what runs and waits, and free what the session has registered."""

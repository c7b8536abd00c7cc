"""A session on several devices of this process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from weft.config import MAX_THREADS
from weft.errors import ConfigError
from weft.host.cores import core_count
from weft.ir.node import Node
from weft.passes.placement.choose import Choice, choose
from weft.passes.placement.explanation import explained
from weft.passes.placement.place import Placed
from weft.passes.step import Request, Step
from weft.resource.base import Array, Cancellation, Containers
from weft.runtime.device.base import DeviceAttributes
from weft.runtime.device.kept_memory import KeptMemory
from weft.runtime.device.local import cpu_devices
from weft.runtime.device.states import DeviceStates
from weft.runtime.engine import Function
from weft.runtime.finish import partitioned
from weft.runtime.local_devices import LocalProgram
from weft.tf1.framework.graph import Graph
from weft.tf1.session.backend import Backend, Run
from weft.tf1.session.options import ConfigProto
from weft.tf1.session.placement import Placement


class LocalDevicesBackend(Backend):
    """As many CPUs of this process as the options ask for.

    Args:
        config: `device_count` tells how many.
        graph: of the session.

    Raises:
        ConfigError: the options ask for other devices.
    """

    def __init__(self, config: ConfigProto, graph: Graph) -> None:
        threads = config.intra_op_parallelism_threads
        if threads < 0:
            raise ConfigError(f"intra_op_parallelism_threads: expected >= 0, got {threads}")
        self._threads = min(threads, MAX_THREADS) or None
        made = cpu_devices(config.device_count["CPU"], self._threads)
        self._devices = {str(d.name): d for d in made}
        self._names = [d.name for d in made]
        self._apart = sum([d.threads for d in made]) <= core_count()
        self._placement: Final = Placement(graph, self._names, config)
        self._kept: Final = KeptMemory(self._devices)
        self._containers: Final = Containers()
        self._forget()

    def _forget(self) -> None:
        states = {name: d.variables() for name, d in self._devices.items()}
        self.state = self._states = DeviceStates(states, str(self._names[0]))

    def function(self, request: Request) -> Run:
        """A compiled part of a graph."""
        asked = request.graph, request.fetches, request.targets, request.feeds
        placed = self._placement.now(request)
        self._states.tell(placed.homes)

        def finish(step: Step, threads: int, count: int) -> LocalProgram:
            del threads
            return self._program(request, placed, step, count)

        return Function(*asked, self._threads, finish, done=request.done, placed=placed.devices)

    def _program(self, request: Request, placed: Placed, step: Step, count: int) -> LocalProgram:
        names = list(map(str, self._names))
        found: list[Choice] = []

        def devices_of(step: Step) -> dict[Node, str]:
            choice = choose(step, names[0], names if self._apart else ())
            self._placement.log(request, step, choice.devices)
            found.append(choice)
            return choice.devices

        homes = {key: self._states.home(key) for key in placed.homes}
        whole, parts = partitioned(step, devices_of, homes, self._apart, names[0])
        explain = partial(explained, whole, found[0], placed.reasons, parts)
        return LocalProgram(whole, parts, self._devices, count, self._apart, explain, self._kept)

    def call(self, node: Node, inputs: Sequence[Array], cancel: Cancellation) -> Sequence[Array]:
        """A call of a resource of this session."""
        self._placement.of(node)
        attrs = node.attrs
        options = dict(attrs["options"])
        return self._containers.call(attrs["resource"], attrs["method"], inputs, options, cancel)

    def devices(self) -> list[DeviceAttributes]:
        """The devices."""
        return [device.attributes for device in self._devices.values()]

    def close(self) -> None:
        """Forget all values."""
        self._forget()
        self._containers.reset()

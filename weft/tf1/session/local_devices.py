"""A session on several devices of this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.config import MAX_THREADS
from weft.errors import ConfigError
from weft.ir.node import Node
from weft.passes.placement.choose import chosen
from weft.passes.placement.place import place
from weft.passes.step import Request, Step
from weft.resource.base import Array, Cancellation, Containers
from weft.runtime.device.local import cpu_devices
from weft.runtime.engine import Function
from weft.runtime.finish import partitioned
from weft.runtime.local_devices import DeviceStates, LocalProgram
from weft.tf1.session.backend import Backend, Run
from weft.tf1.session.options import ConfigProto


class LocalDevicesBackend(Backend):
    """As many CPUs of this process as the options ask for.

    Args:
        config: `device_count` tells how many.

    Raises:
        ConfigError: the options ask for other devices.
    """

    def __init__(self, config: ConfigProto) -> None:
        self._soft: Final = config.allow_soft_placement
        threads = config.intra_op_parallelism_threads
        if threads < 0:
            raise ConfigError(f"intra_op_parallelism_threads: expected >= 0, got {threads}")
        self._threads = min(threads, MAX_THREADS) or None
        made = cpu_devices(config.device_count["CPU"], self._threads)
        self._devices = {str(d.name): d for d in made}
        self._names = [d.name for d in made]
        self.state: DeviceStates = self._states()
        self._containers: Final = Containers()

    def _states(self) -> DeviceStates:
        states = {name: d.variables() for name, d in self._devices.items()}
        return DeviceStates(states, str(self._names[0]))

    def function(self, request: Request) -> Run:
        """A compiled part of a graph."""
        asked = request.graph, request.fetches, request.targets, request.feeds
        placed = place(request.graph, self._names, soft=self._soft)
        state = self.state
        for key, home in placed.homes.items():
            state.homes.setdefault(key, home)
        homes = {key: state.home(key) for key in placed.homes}
        default = str(self._names[0])

        def finish(step: Step, threads: int, count: int) -> LocalProgram:
            del threads
            whole, parts = partitioned(step, lambda step: chosen(step, default), homes)
            return LocalProgram(whole, parts, self._devices, count)

        return Function(*asked, self._threads, finish, done=request.done, placed=placed.devices)

    def call(self, node: Node, inputs: Sequence[Array], cancel: Cancellation) -> Sequence[Array]:
        """A call of a resource of this session."""
        attrs = node.attrs
        options = dict(attrs["options"])
        return self._containers.call(attrs["resource"], attrs["method"], inputs, options, cancel)

    def devices(self) -> list[str]:
        """The names of the devices."""
        return list(self._devices)

    def close(self) -> None:
        """Forget all values, and end the threads of the devices."""
        self.state = self._states()
        self._containers.reset()

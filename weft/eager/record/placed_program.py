"""Programs of recorded calls on other CPUs than the first, or on several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft import config
from weft.eager.record.placed_type import full_name
from weft.host.cores import core_count
from weft.host.deferred import Deferred
from weft.ir.node import Node
from weft.passes.step import Step
from weft.runtime.device.local import cpu_devices
from weft.runtime.device.states import DeviceStates
from weft.runtime.finish import partitioned
from weft.runtime.flight import land
from weft.runtime.memory.state import State
from weft.runtime.oracle import Oracle

if TYPE_CHECKING:
    from weft.runtime import local_devices
else:  # few programs are on several
    local_devices = Deferred("weft.runtime.local_devices")

Array = np.ndarray[Any, Any]


class OverDevices:
    """A step over several CPUs, as a function of its feeds.

    Args:
        step: specialized; nodes have the full names of their devices, or none.
        count: how many CPUs it may be on.
        compared: whether each run is compared with the reference.
    """

    def __init__(self, step: Step, count: int, compared: bool) -> None:
        threads = int(config.get("threads"))
        devices = {str(d.name): d for d in cpu_devices(count, threads)}
        first, apart = full_name(0), count * threads <= core_count()

        def choose(step: Step) -> dict[Node, str]:
            return {node: node.device or first for node in step.graph.nodes}

        whole, parts = partitioned(step, choose, {}, early=apart)
        self._program: Final = local_devices.LocalProgram(whole, parts, devices, apart=apart)
        self._variables: Final = DeviceStates({n: d.variables() for n, d in devices.items()}, first)
        self._oracle: Final = Oracle(whole, threads) if compared else None

    def __call__(self, leaves: Sequence[Array]) -> list[Array]:
        """Runs it once; fresh arrays."""
        land()
        if self._oracle is not None:
            self._oracle.compare(leaves, State())
        return [np.asarray(found) for found in self._program.run(leaves, self._variables)]

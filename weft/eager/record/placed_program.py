"""Programs of recorded calls on other CPUs than the first, or on several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import config
from weft.eager.record.placed_type import full_name
from weft.ir.node import Node
from weft.passes.step import Step
from weft.runtime.device.local import cpu_devices
from weft.runtime.finish import partitioned
from weft.runtime.local_devices import DeviceStates, LocalProgram

Array = np.ndarray[Any, Any]


def over_devices(step: Step, count: int) -> Callable[[Sequence[Array]], list[Array]]:
    """A step over several CPUs, as a function of its feeds.

    Args:
        step: specialized; nodes have the full names of their devices, or none.
        count: how many CPUs it may be on.
    """
    devices = {str(d.name): d for d in cpu_devices(count, int(config.get("threads")))}
    first = full_name(0)

    def choose(step: Step) -> dict[Node, str]:
        return {node: node.device or first for node in step.graph.nodes}

    whole, parts = partitioned(step, choose, {})
    program = LocalProgram(whole, parts, devices)
    variables = DeviceStates({name: d.variables() for name, d in devices.items()}, first)

    def run(leaves: Sequence[Array]) -> list[Array]:
        return [np.asarray(found) for found in program.run(leaves, variables)]

    return run

"""Structures with a program on several CPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from weft import config
from weft.eager.record.call.placed_type import full_name
from weft.eager.record.listing.collective_calls import collective_calls
from weft.eager.record.listing.expansion import Expanded
from weft.eager.record.pending.lazy import Array, Lazy
from weft.eager.record.recognition.structure import Structure
from weft.eager.record.run.compiled_tier import specialized
from weft.eager.record.run.tier import Compute, Results, Tier
from weft.host.cores import core_count
from weft.host.deferred import Deferred
from weft.host.garbage_collection import uncollected
from weft.ir.node import Node
from weft.passes.step import Step
from weft.runtime.device.local import cpu_devices
from weft.runtime.device.states import DeviceStates
from weft.runtime.finish import partitioned
from weft.runtime.flight import land
from weft.runtime.memory.state import State
from weft.runtime.oracle import Oracle
from weft.transport import session

if TYPE_CHECKING:
    from weft.runtime import local_devices
else:  # few programs are on several
    local_devices = Deferred("weft.runtime.local_devices")


class OverDevices(Tier):
    """A program on several CPUs; it is compiled before its first run.

    Raises:
        CompileError: there is no kernel for something.
        NoCompilerError: no compiler process is available.
    """

    @uncollected
    def __init__(self, structure: Structure, as_rows: bool, expanded: Expanded) -> None:
        super().__init__(as_rows)
        count, threads = max(structure.devices) + 1, int(config.get("threads"))
        devices = {str(d.name): d for d in cpu_devices(count, threads)}
        first, apart = full_name(0), count * threads <= core_count()

        def choose(step: Step) -> dict[Node, str]:
            return {node: node.device or first for node in step.graph.nodes}

        self._rows = expanded.rows
        self._collectives = collective_calls(structure, as_rows)
        whole, parts = partitioned(specialized(expanded), choose, {}, early=apart)
        self._program = local_devices.LocalProgram(whole, parts, devices, apart=apart)
        self._variables = DeviceStates({n: d.variables() for n, d in devices.items()}, first)
        compared = bool(config.get("reference")) and self._collectives is None  # else run twice
        self._oracle = Oracle(whole, threads) if compared else None

    @property
    def why(self) -> str:
        """See `Tier`."""
        return "a program of its own, on several CPUs"

    @property
    def is_ready(self) -> bool:
        """See `Tier`."""
        return True

    def begin(self, structure: Structure, leaves: Sequence[Array], wanted: Lazy | None) -> Compute:
        """See `Tier`."""

        def compute() -> Results:
            land()
            if self._oracle is not None:
                self._oracle.compare(leaves, State())
            found = self._program.run(leaves, self._variables)
            return Results([np.asarray(y) for y in found], self._rows)

        if self._collectives is not None:
            session.enter(self._collectives)
        return compute

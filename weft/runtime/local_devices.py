"""Steps over several devices of this process: their variables, and programs made of stages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from weft.ir.node import TensorType
from weft.ops.declaration import calls_python
from weft.passes.partition import Partition
from weft.passes.placement.cost import node_ns
from weft.passes.placement.explanation import PlacementExplanation
from weft.passes.staging.lend import Lent, lend
from weft.passes.step import Step
from weft.runtime.device.base import Buffer, Device, HostArray
from weft.runtime.device.kept_memory import KeptMemory
from weft.runtime.device.states import DeviceStates
from weft.runtime.executable import uninitialized
from weft.runtime.memory.state import State
from weft.runtime.stage_times import StageTime, duration, show_times, watchers
from weft.runtime.staged import Box, StagedProgram


class LocalProgram:
    """A partitioned step as a program.

    Values that stages give to each other lie in memory that is kept from run to run.

    Args:
        step: the whole step.
        partition: its stages.
        devices: by full name.
        fetches: how many of the step's fetches are returned, if not all.
        apart: whether the devices have processors of their own.
        explain: says why its nodes are where they are.
        kept: memory that it shares with other programs of its session.
    """

    def __init__(
        self, step: Step, partition: Partition, devices: Mapping[str, Device],
        fetches: int | None = None, apart: bool = True,
        explain: Callable[[], PlacementExplanation] | None = None,
        kept: KeptMemory | None = None,
    ) -> None:  # fmt: skip
        self.step: Final = step
        self.explain: Final = explain
        self._fetches: Final = partition.fetches[:fetches]
        in_turn = not apart or _calls_python(partition) or gain_ns(partition) < WORTH_NS
        partition, self._lent = lend(partition, in_turn)
        self.partition: Final = partition
        self._staged: Final = StagedProgram(partition, devices, in_turn=in_turn)
        self._kept: Final = (kept or KeptMemory(devices)).of(partition, self._fetches)

    def run(self, arrays: Sequence[Buffer], state: DeviceStates) -> list[Any]:
        """Runs the step once; fresh arrays."""
        partition, watch = self.partition, watchers.tell if watchers else None
        box = Box(len(partition.types), self._memory, watch=watch)
        for number, array in zip(partition.feeds, arrays, strict=True):
            box.put(number, np.asarray(array))
        with state.lock:
            for number, lent in self._lent.items():
                box.put(number, _memory_of(lent, state.states[lent.device]))
            self._staged.run(box, state.states)
        seen = set(partition.feeds)
        found: list[Any] = []
        for number in self._fetches:
            array = box.get(number)
            if not array.ndim:
                array = array[()]
            elif number in seen:
                array = array.copy()
            found.append(array)
            seen.add(number)
        return found

    def _memory(self, value: int, kind: TensorType) -> Buffer | None:
        del kind
        return self._kept.get(value)

    def profile(self, arrays: Sequence[Buffer], state: DeviceStates, runs: int = 5) -> str:
        """When each stage ran, as text; runs `runs` real steps and shows the shortest."""
        found: list[list[StageTime]] = []
        for _ in range(runs):
            with watchers.watch() as times:
                self.run(arrays, state)
            found.append(sorted(times))
        return show_times(self.partition, min(found, key=duration))


def _memory_of(lent: Lent, state: State) -> HostArray:
    if lent.key not in state:
        raise uninitialized(lent.key, lent.node)
    return state.memory(lent.key)


WORTH_NS: Final = 100_000.0
"""What must be gained by running devices at the same time, as threads have to wake up."""


def _calls_python(partition: Partition) -> bool:
    """Whether Python is called, which is done by the caller's thread: it may run other steps."""
    return any([calls_python(n) for stage in partition.stages for n in stage.step.graph.nodes])


def gain_ns(partition: Partition) -> float:
    """How much sooner a step is done if its devices run at the same time."""
    times = [sum(map(node_ns, stage.step.graph.nodes)) for stage in partition.stages]
    ready: dict[int, float] = {}
    free: dict[str, float] = {}
    for stage, time in zip(partition.stages, times, strict=True):
        begin = max([free.get(stage.device, 0.0), *[ready.get(v, 0.0) for v in stage.inputs]])
        free[stage.device] = begin + time
        ready.update(dict.fromkeys(stage.outputs, begin + time))
    return sum(times) - max(free.values(), default=0.0)

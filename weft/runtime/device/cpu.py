"""Processors as devices: each has its own threads, and its own memory for programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from weft import config
from weft.errors import ArgumentError
from weft.host.memory import capacity
from weft.ir.device import DeviceName
from weft.ir.dtype import as_dtype
from weft.ir.graph import Graph
from weft.ir.node import TensorType, Value
from weft.ir.shape import is_stack, known
from weft.passes.step import Step, storing
from weft.passes.zeroed import zeroed
from weft.runtime.device.base import Buffer, Device, DeviceProgram, Event, HostArray, Variables
from weft.runtime.executable import Executable
from weft.runtime.execution.processor import Processor
from weft.runtime.execution.team import Team
from weft.runtime.finish import finish
from weft.runtime.memory.budget import Budget
from weft.runtime.memory.pages import LARGE
from weft.runtime.memory.recycled import empty
from weft.runtime.memory.shared import ArenaPool
from weft.runtime.memory.state import State, aligned


class _Done(Event):
    """Programs of a processor are done when `launch` returns."""

    def wait(self, timeout: float | None = None) -> bool:
        return True


_DONE: Final = _Done()


class CpuProgram(DeviceProgram):
    """A step as a native program that writes its results to given memory.

    Results whose number of rows is known only after a run are copied from the program's memory.
    """

    def __init__(self, step: Step, threads: int, processor: Processor) -> None:
        placeholders = {node.name: node for node in step.graph.nodes}
        self.inputs = tuple([placeholders[name].types[0] for name in step.feeds])
        self.outputs = tuple([value.type for value in step.fetches])
        stacks = [i for i, kind in enumerate(self.outputs) if is_stack(kind.shape)]
        self._stacks: Final = stacks
        self._stored = [i for i in range(len(self.outputs)) if i not in stacks]
        self._keys: Final = {i: f"<output {i}>" for i in self._stored}
        self._threads, self._processor = threads, processor
        self._executable: Final = self._compiled(step)

    def _compiled(self, step: Step) -> Executable:
        keys = tuple(self._keys.values())
        step, variables = zeroed(step, LARGE)
        fetches = step.fetches
        order: list[Value] = [fetches[i] for i in (*self._stacks, *self._stored)]
        graph = Graph(step.graph.nodes, (*order, *step.graph.outputs[len(fetches) :]))
        step = storing(replace(step, graph=graph), keys, {})
        found = finish(step, self._threads, processor=self._processor, simplified=True)
        found.zeroed.update(variables)
        return found

    def run(
        self, inputs: Sequence[HostArray], outputs: Sequence[HostArray | None], state: State,
        allocate: Callable[[TensorType], HostArray],
    ) -> list[HostArray]:  # fmt: skip
        """Runs the step; `allocate` gives memory for results without."""
        lent: dict[str, HostArray] = {}
        for i, key in self._keys.items():
            memory = outputs[i]
            lent[key] = allocate(self.outputs[i]) if memory is None else memory
        stacked = self._executable.run(inputs, state, lent)
        return [
            lent[self._keys[i]] if i in self._keys else stacked.pop(0)
            for i in range(len(self.outputs))
        ]


class CpuDevice(Device):
    """A part of the machine's processors.

    Args:
        name: its full name.
        threads: how many threads run a program; `WEFT_THREADS` by default. Results do not depend
            on it.
        memory_limit: bytes that its tensors, variables and programs may take together; by default
            what the machine has, without counting.
        processor: threads and memory, if not its own.
        incarnation: as of `Device`.
    """

    in_host_memory = True

    def __init__(
        self, name: DeviceName, threads: int | None = None, memory_limit: int | None = None,
        processor: Processor | None = None, incarnation: int | None = None,
    ) -> None:  # fmt: skip
        limit = capacity() if memory_limit is None else memory_limit
        super().__init__(name, limit, incarnation)
        if memory_limit is not None and memory_limit <= 0:
            raise ArgumentError(f"{name}: expected a memory limit above 0, got {memory_limit}")
        self.threads: Final = int(config.get("threads")) if threads is None else threads
        self._budget: Final = Budget(str(name), memory_limit)
        self.processor: Final = processor or Processor(Team(), ArenaPool(self._budget))

    @property
    def memory_taken(self) -> int:
        """Bytes that are taken, if there is a limit."""
        return self._budget.taken

    def variables(self) -> State:
        """A new, empty set of variables."""
        return State(self._budget)

    def allocate(self, kind: TensorType) -> HostArray:
        """Memory for a tensor, on a cache line; that of earlier ones, unless it is counted."""
        shape, dtype = known(kind.shape), kind.dtype.numpy
        if self._budget.limit is None:
            return empty(shape, dtype)
        return aligned(shape, dtype, self._budget)

    def from_host(self, array: HostArray) -> HostArray:
        """The array itself."""
        return array

    def to_host(self, buffer: Buffer) -> HostArray:
        """The array itself."""
        return buffer

    def copy(self, buffer: Buffer, to: Device) -> Buffer:
        """A copy of an array in the memory of another device."""
        if not to.in_host_memory:
            return to.from_host(buffer)
        made = to.allocate(TensorType(as_dtype(buffer.dtype), buffer.shape))
        np.copyto(made, buffer)
        return made

    def compile(self, step: Step) -> CpuProgram:
        """The native program of an optimized step."""
        return CpuProgram(step, self.threads, self.processor)

    def launch(
        self, program: DeviceProgram, inputs: Sequence[Buffer], outputs: Sequence[Buffer | None],
        variables: Variables,
    ) -> list[Buffer]:  # fmt: skip
        """Runs a program in the caller's thread, with the help of the device's."""
        assert isinstance(program, CpuProgram)
        assert isinstance(variables, State)
        return program.run(inputs, outputs, variables, self.allocate)

    def event(self) -> Event:
        """An event that has happened."""
        return _DONE

    def close(self) -> None:
        """Ends its threads."""
        self.processor.team.stop()

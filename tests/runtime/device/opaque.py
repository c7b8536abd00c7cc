"""A device whose memory is not NumPy's: what stands above devices has to work with it."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any

import numpy as np

from weft.ir.device import DeviceName
from weft.ir.node import TensorType
from weft.passes.step import Step
from weft.runtime.device.base import Buffer, Device, DeviceProgram, Event, HostArray, Variables
from weft.runtime.device.cpu import CpuDevice
from weft.runtime.memory.state import State


class Opaque:
    """A buffer of a device: nothing but the device may look into it."""

    __slots__ = ("_array", "_device")

    def __init__(self, device: OpaqueDevice, array: HostArray) -> None:
        self._device, self._array = device, array

    def inside(self, device: OpaqueDevice) -> HostArray:
        assert device is self._device, "a buffer of another device"
        return self._array

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"a buffer of a device has no {name}")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("a buffer of a device is no array")


class OpaqueVariables(MutableMapping[str, HostArray]):
    """Variables in a device's memory; whatever reads them copies them."""

    def __init__(self, state: State) -> None:
        self.state, self.lock = state, state.lock

    @property
    def version(self) -> int:
        return self.state.version

    def __getitem__(self, key: str) -> HostArray:
        return self.state[key]

    def __setitem__(self, key: str, value: HostArray) -> None:
        self.state[key] = value

    def __delitem__(self, key: str) -> None:
        del self.state[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.state)

    def __len__(self) -> int:
        return len(self.state)


class OpaqueDevice(Device):
    """A processor whose buffers are opaque, and counted when they are copied."""

    def __init__(self, name: DeviceName) -> None:
        super().__init__(name, 1 << 30)
        self._cpu = CpuDevice(name, threads=1)
        self.moves: list[str] = []

    def variables(self) -> Any:
        return OpaqueVariables(self._cpu.variables())

    def allocate(self, kind: TensorType) -> Opaque:
        return Opaque(self, self._cpu.allocate(kind))

    def from_host(self, array: HostArray) -> Opaque:
        self.moves.append("in")
        return Opaque(self, np.array(array, order="C"))

    def to_host(self, buffer: Buffer) -> HostArray:
        self.moves.append("out")
        return buffer.inside(self).copy()

    def copy(self, buffer: Buffer, to: Device) -> Buffer:
        return to.from_host(self.to_host(buffer))

    def compile(self, step: Step) -> DeviceProgram:
        return self._cpu.compile(step)

    def launch(
        self, program: DeviceProgram, inputs: Sequence[Buffer], outputs: Sequence[Buffer | None],
        variables: Variables,
    ) -> list[Buffer]:  # fmt: skip
        assert isinstance(variables, OpaqueVariables)
        arrays = [buffer.inside(self) for buffer in inputs]
        memories = [None if out is None else out.inside(self) for out in outputs]
        found = self._cpu.launch(program, arrays, memories, variables.state)
        return [Opaque(self, array) for array in found]

    def event(self) -> Event:
        return self._cpu.event()

    def close(self) -> None:
        self._cpu.close()

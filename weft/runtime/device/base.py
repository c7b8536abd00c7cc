"""The interface of a device: its memory, its programs, and when they are done.

What stands above it passes buffers on without looking into them: only the device knows whether one
is an array of NumPy or memory of an accelerator.
"""

from __future__ import annotations

import abc
import os
from collections.abc import Iterable, MutableMapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from weft.errors import ArgumentError
from weft.ir.device import DeviceName
from weft.ir.node import TensorType
from weft.passes.step import Step

Buffer = Any
"""The value of a tensor in a device's memory."""
HostArray = np.ndarray[Any, Any]
Variables = MutableMapping[str, HostArray]
"""Variables in a device's memory, by key; reading and writing an item copies it."""


def new_incarnation() -> int:
    """A number that no other process draws."""
    return int.from_bytes(os.urandom(8)) >> 1 | 1


class Event(abc.ABC):
    """A point in the work of a device."""

    @abc.abstractmethod
    def wait(self, timeout: float | None = None) -> bool:
        """Waits until all work before it is done; whether it is, after `timeout` seconds."""


class DeviceProgram(abc.ABC):
    """A step that is compiled for a device.

    Attributes:
        inputs: types of the step's feeds.
        outputs: types of its fetches; an unknown first dimension is known only after a run.
    """

    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]


class DeviceAttributes(NamedTuple):
    """What a session tells about a device.

    Attributes:
        name: its full name.
        device_type: `CPU`, for example.
        memory_limit_bytes: that it may take.
        incarnation: differs after each start of its process.
    """

    name: str
    device_type: str
    memory_limit_bytes: int
    incarnation: int

    def __repr__(self) -> str:
        return f"_DeviceAttributes({', '.join(map(str, self))})"


def attributes_of(told: Iterable[Sequence[Any]]) -> dict[str, DeviceAttributes]:
    """Devices by name, from what another process told of them."""
    return {str(each[0]): DeviceAttributes(*each) for each in told}


class Device(abc.ABC):
    """Runs compiled steps, and holds tensors and variables.

    Args:
        name: its full name.
        memory_limit: bytes that it may take.
        incarnation: differs from that of the device of this name in another process; by default
            also from that of any other device in this one.
    """

    in_host_memory: ClassVar[bool] = False
    """Whether its buffers are arrays of NumPy, which other devices of this kind read in place."""

    def __init__(
        self, name: DeviceName, memory_limit: int, incarnation: int | None = None
    ) -> None:  # fmt: skip
        if not name.is_full:
            raise ArgumentError(
                f"device: expected a full name such as /job:localhost/task:0/device:CPU:0, "
                f"got {str(name)!r}"
            )
        self.name: Final = name
        self.memory_limit: Final = memory_limit
        self.incarnation: Final = new_incarnation() if incarnation is None else incarnation

    @property
    def attributes(self) -> DeviceAttributes:
        """What a session tells about it."""
        return DeviceAttributes(str(self.name), self.kind, self.memory_limit, self.incarnation)

    @property
    def kind(self) -> str:
        """`CPU`, for example."""
        return self.name.kind or ""

    @property
    def index(self) -> int:
        """Its number among the devices of its kind in the process."""
        return self.name.index or 0

    @abc.abstractmethod
    def variables(self) -> Variables:
        """A new, empty set of variables in this device's memory."""

    @abc.abstractmethod
    def allocate(self, kind: TensorType) -> Buffer:
        """Memory for a tensor, not initialized.

        Raises:
            OutOfMemoryError: it would exceed the limit.
        """

    @abc.abstractmethod
    def from_host(self, array: HostArray) -> Buffer:
        """The value of an array in this device's memory; the array itself if that is the same."""

    @abc.abstractmethod
    def to_host(self, buffer: Buffer) -> HostArray:
        """A buffer of this device as an array; without a copy if it is one."""

    def shares_memory(self, other: Device) -> bool:
        """Whether programs of the other device read this one's buffers in place."""
        return self is other or (self.in_host_memory and other.in_host_memory)

    @abc.abstractmethod
    def copy(self, buffer: Buffer, to: Device) -> Buffer:
        """A copy of a buffer of this device in the memory of another one."""

    def send(self, buffer: Buffer, to: Device) -> Buffer:
        """The buffer for programs of the other device: itself, if they can read it."""
        return buffer if self.shares_memory(to) else self.copy(buffer, to)

    @abc.abstractmethod
    def compile(self, step: Step) -> DeviceProgram:
        """The program of a step that is optimized already, from the cache on disk if it is there.

        Raises:
            CompileError: there is no kernel for something.
            OutOfMemoryError: its temporary memory would exceed the limit.
        """

    @abc.abstractmethod
    def launch(
        self, program: DeviceProgram, inputs: Sequence[Buffer], outputs: Sequence[Buffer | None],
        variables: Variables,
    ) -> list[Buffer]:  # fmt: skip
        """Runs a program once; it may still run when this returns: see `event`.

        Programs of one device take turns; other devices run theirs at the same time.

        Args:
            program: what `compile` returned.
            inputs: one per feed.
            outputs: memory for each result; where it is `None`, the device allocates some.
            variables: of this device, read and updated.

        Returns:
            The results, in `outputs` where these are given.

        Raises:
            UninitializedError: a variable is read that has no value.
            OutOfRangeError: an index is out of bounds; no variable has changed.
        """

    @abc.abstractmethod
    def event(self) -> Event:
        """An event behind everything that has been launched so far."""

    @abc.abstractmethod
    def close(self) -> None:
        """Ends its threads, once its programs are done; a later program starts new ones."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

"""Where arrays lie: the one device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Client:
    """What runs the devices: this process."""

    platform: str = "cpu"
    platform_version: str = "cpu"
    runtime_type: str = "cpu"


@dataclass(frozen=True)
class Device:
    """A device.

    >>> Device()
    CpuDevice(id=0)
    """

    id: int = 0
    process_index: int = 0
    platform: str = "cpu"
    device_kind: str = "cpu"
    client: Client = Client()

    def memory_stats(self) -> None:
        """Nothing is known."""

    def addressable_memories(self) -> list[Any]:
        """Memories of other kinds than the usual one: there are none."""
        return []

    def __repr__(self) -> str:
        return f"CpuDevice(id={self.id})"


CPU = Device()


@dataclass(frozen=True)
class Shard:
    """The part of an array on a device, which is all of it."""

    data: Any
    device: Device = CPU
    replica_id: int = 0

    @property
    def index(self) -> tuple[slice, ...]:
        """Its place in the array."""
        return (slice(None),) * self.data.ndim


class Sharding:
    """Where an array lies: on the one device."""

    memory_kind = "device"
    is_fully_addressable = is_fully_replicated = True
    num_devices = 1

    @property
    def device_set(self) -> set[Device]:
        """The devices."""
        return {CPU}

    def devices_indices_map(self, global_shape: Any) -> dict[Device, tuple[slice, ...]]:
        """The place of each device's part: the whole array."""
        return {CPU: (slice(None),) * len(global_shape)}

    def shard_shape(self, global_shape: Any) -> tuple[int, ...]:
        """The shape of each part: that of the array."""
        return tuple(global_shape)

    addressable_devices, addressable_devices_indices_map = device_set, devices_indices_map


class SingleDeviceSharding(Sharding):
    """The one device."""

    def __init__(self, device: Any = None, **_: Any) -> None:
        self.device = CPU if device is None else device

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self.device}, memory_kind={self.memory_kind})"


PLACE = SingleDeviceSharding()

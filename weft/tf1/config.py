"""`tf.config`: devices, of which there are processors only."""

from __future__ import annotations

from typing import Any, NamedTuple

from weft.errors import ArgumentError
from weft.tf1.framework.graph import fail
from weft.tf1.version import Behavior

__all__ = [
    "experimental_run_functions_eagerly", "functions_run_eagerly", "get_visible_devices",
    "list_logical_devices", "list_physical_devices", "run_functions_eagerly", "set_memory_growth",
    "set_soft_device_placement", "set_visible_devices",
]  # fmt: skip


class PhysicalDevice(NamedTuple):
    """A device of the machine."""

    name: str
    device_type: str


_CPU = PhysicalDevice("/physical_device:CPU:0", "CPU")


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The processor, if it is of this type."""
    return [_CPU] if device_type in (None, "CPU") else []


list_logical_devices = get_visible_devices = list_physical_devices


def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
    """No effect: there is one device.

    Raises:
        ArgumentError: the devices are others.
    """
    if any(device is not _CPU for device in devices or ()):
        raise fail(ArgumentError, f"set_visible_devices: expected {_CPU}, got {devices!r}")
    del device_type


def set_memory_growth(device: Any, enable: bool) -> None:
    """No effect: memory is taken as it is needed."""
    del device, enable


def set_soft_device_placement(enabled: bool) -> None:
    """No effect."""
    del enabled


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Whether each call of a `tf.function` runs it in Python, from now on."""
    Behavior.runs_functions = bool(run_eagerly)


experimental_run_functions_eagerly = run_functions_eagerly


def functions_run_eagerly() -> bool:
    """Whether each call of a `tf.function` runs it in Python."""
    return Behavior.runs_functions

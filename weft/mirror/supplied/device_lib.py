"""`tensorflow.python.client.device_lib`: the devices of this process."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["list_local_devices"]


class LocalDevice(NamedTuple):
    """A device."""

    name: str = "/device:CPU:0"
    device_type: str = "CPU"
    memory_limit: int = 1 << 28
    physical_device_desc: str = ""


def list_local_devices(session_config: Any = None) -> list[LocalDevice]:
    """The processor.

    Args:
        session_config: accepted.
    """
    del session_config
    return [LocalDevice()]

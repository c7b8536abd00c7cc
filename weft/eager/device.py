"""Where tensors live: this computer's memory, the only place there is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from weft.errors import ConfigError
from weft.ops.base import at_user_line


@dataclass(frozen=True)
class Device:
    """A place for tensors.

    >>> Device("cpu")
    device(type='cpu')
    """

    type: str
    index: int | None = None

    def __repr__(self) -> str:
        return f"device(type={self.type!r})"

    def __str__(self) -> str:
        return self.type


CPU: Final = Device("cpu")


def device(spec: Any) -> Device:
    """The device of a name, such as `"cpu"`.

    Raises:
        ConfigError: there is no such device.
    """
    if isinstance(spec, Device) or spec in ("cpu", "cpu:0"):
        return CPU
    raise ConfigError(f"device: expected 'cpu', the only device here, got {spec!r}{at_user_line()}")


def check_device(spec: Any) -> None:
    """Accept `device=` arguments that name the CPU, or nothing."""
    if spec is not None:
        device(spec)

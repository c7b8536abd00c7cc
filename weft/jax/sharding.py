"""`jax.sharding`: names for one device."""

from __future__ import annotations

import enum
from typing import Any

from weft.func import PartitionSpec as PartitionSpec
from weft.jax.device import Mesh as Mesh

P = PartitionSpec


class AxisType(enum.Enum):
    """Who decides how arrays are split along an axis of a mesh: nothing is split here."""

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


class Sharding:
    """Where an array lies: on the one device."""


class NamedSharding(Sharding):
    """A place on a mesh; all is on one device."""

    def __init__(self, mesh: Any, spec: Any, **_: Any) -> None:
        self.mesh, self.spec = mesh, spec


class SingleDeviceSharding(Sharding):
    """The one device."""

    def __init__(self, device: Any = None, **_: Any) -> None:
        self.device = device


__all__ = [
    "AxisType", "Mesh", "NamedSharding", "P", "PartitionSpec", "Sharding",
    "SingleDeviceSharding",
]  # fmt: skip

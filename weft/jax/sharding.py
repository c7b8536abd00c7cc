"""`jax.sharding`: names for one device."""

from __future__ import annotations

import enum
from typing import Any

from weft.func import PartitionSpec as PartitionSpec
from weft.jax.device import Mesh as Mesh
from weft.jax.place import Sharding as Sharding
from weft.jax.place import SingleDeviceSharding as SingleDeviceSharding

P = PartitionSpec


class AxisType(enum.Enum):
    """Who decides how arrays are split along an axis of a mesh: nothing is split here."""

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


class NamedSharding(Sharding):
    """A place on a mesh; all is on one device."""

    def __init__(self, mesh: Any, spec: Any, **_: Any) -> None:
        self.mesh, self.spec = mesh, spec


__all__ = [
    "AxisType", "Mesh", "NamedSharding", "P", "PartitionSpec", "Sharding",
    "SingleDeviceSharding",
]  # fmt: skip

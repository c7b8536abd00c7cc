"""Distributed tensors on meshes: placements, and tensor parallelism."""

from __future__ import annotations

from weft.distributed.device_mesh import DeviceMesh, init_device_mesh
from weft.distributed.tensor.creation import (
    distribute_tensor,
    empty,
    full,
    ones,
    rand,
    randn,
    zeros,
)
from weft.distributed.tensor.dtensor import DTensor
from weft.distributed.tensor.placement import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor",
    "DeviceMesh",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_tensor",
    "empty",
    "full",
    "init_device_mesh",
    "ones",
    "rand",
    "randn",
    "zeros",
]

"""Tensors divided among ranks along dimensions of a mesh: placements, and tensor parallelism."""

from __future__ import annotations

from weft.distributed.device_mesh import DeviceMesh, init_device_mesh
from weft.distributed.tensor.placement import Partial, Placement, Replicate, Shard

__all__ = ["DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "init_device_mesh"]

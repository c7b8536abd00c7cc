"""Distributed tensors on meshes: placements, and tensor parallelism."""

from __future__ import annotations

from weft import exports as _exports
from weft.distributed.device_mesh import *
from weft.distributed.tensor.creation import *
from weft.distributed.tensor.dtensor import DTensor as DTensor
from weft.distributed.tensor.placement import *

_exports.gather(globals())

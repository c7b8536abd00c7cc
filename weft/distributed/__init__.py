"""Training on several processes: the names of PyTorch's `torch.distributed`, on MPI.

Start them with `weft launch -n 2 SCRIPT`. See docs/DISTRIBUTED.md.
"""

from __future__ import annotations

from weft import exports as _exports
from weft.collectives.collective import *
from weft.collectives.objects import *
from weft.collectives.point_to_point import *
from weft.collectives.process_group import *
from weft.collectives.profile import *
from weft.collectives.reduce_op import ReduceOp as ReduceOp
from weft.collectives.subgroup import *
from weft.collectives.work import Work as Work
from weft.distributed.device_mesh import *
from weft.host.cores import name_ranks as _name_ranks

_exports.gather(globals())
_name_ranks()  # programs for `torchrun` read the environment before they join the job

# Above `weft.nn`, so loaded on first use.
_PARTS = "algorithms", "checkpoint", "fsdp", "nn", "pipelining", "tensor"
_exports.lazy(globals(), {"weft.distributed": _PARTS})

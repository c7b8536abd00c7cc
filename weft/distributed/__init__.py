"""Training on several processes: the names of PyTorch's `torch.distributed`, on MPI.

Start them with `weft launch -n 2 SCRIPT`. See docs/DISTRIBUTED.md.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

from weft.collectives.collective import (
    all_gather,
    all_gather_into_tensor,
    all_reduce,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    monitored_barrier,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
)
from weft.collectives.objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    scatter_object_list,
)
from weft.collectives.point_to_point import (
    P2POp,
    batch_isend_irecv,
    irecv,
    isend,
    recv,
    send,
)
from weft.collectives.process_group import (
    ProcessGroup,
    destroy_process_group,
    get_backend,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    init_process_group,
    is_available,
    is_initialized,
    is_mpi_available,
    new_group,
)
from weft.collectives.profile import CommunicationProfile, RankProfile, communication_profile
from weft.collectives.reduce_op import ReduceOp
from weft.collectives.work import Work
from weft.distributed.device_mesh import DeviceMesh, init_device_mesh
from weft.host.cores import name_ranks

__all__ = [
    "CommunicationProfile",
    "DeviceMesh",
    "P2POp",
    "ProcessGroup",
    "RankProfile",
    "ReduceOp",
    "Work",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "communication_profile",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_default_backend_for_device",
    "get_global_rank",
    "get_group_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "init_device_mesh",
    "init_process_group",
    "irecv",
    "is_available",
    "is_initialized",
    "is_mpi_available",
    "isend",
    "monitored_barrier",
    "new_group",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
]  # fmt: skip

name_ranks()  # programs for `torchrun` read the environment before they join the job

# Above `weft.nn`, so loaded on first use.
_MODULES: Final = ("checkpoint", "fsdp", "pipelining", "tensor")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"weft.distributed.{name}")
    raise AttributeError(f"module 'weft.distributed' has no attribute {name!r}")

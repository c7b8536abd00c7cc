"""Many processes, one training: PyTorch's `torch.distributed` by its names, on MPI.

Start them with `weft launch -n 2 SCRIPT`. See docs/DISTRIBUTED.md.
"""

from __future__ import annotations

from weft.distributed.collective import (
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
from weft.distributed.process_group import (
    ProcessGroup,
    destroy_process_group,
    get_backend,
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
from weft.distributed.reduce_op import ReduceOp

__all__ = [
    "ProcessGroup", "ReduceOp", "all_gather", "all_gather_into_tensor", "all_reduce", "all_to_all",
    "all_to_all_single", "barrier", "broadcast", "destroy_process_group", "gather", "get_backend",
    "get_global_rank", "get_group_rank", "get_process_group_ranks", "get_rank", "get_world_size",
    "init_process_group", "is_available", "is_initialized", "is_mpi_available",
    "monitored_barrier", "new_group", "reduce", "reduce_scatter", "reduce_scatter_tensor",
    "scatter",
]  # fmt: skip

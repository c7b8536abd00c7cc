"""Horovod for eager tensors: programs written for `horovod.torch` change their import.

>>> import weft as wf
>>> import weft.horovod.torch as hvd
>>> hvd.init()
>>> model = wf.nn.Linear(2, 1)
>>> optimizer = wf.optim.SGD(model.parameters(), lr=0.1 * hvd.size())
>>> optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
>>> hvd.broadcast_parameters(model.state_dict(), root_rank=0)
>>> hvd.broadcast_optimizer_state(optimizer, root_rank=0)
>>> model(wf.ones(4, 2)).mean().backward()
>>> optimizer.step()
>>> hvd.shutdown()
"""

from __future__ import annotations

from weft.horovod.basics import (
    Average,
    Max,
    Min,
    Product,
    Sum,
    ccl_built,
    cross_rank,
    cross_size,
    cuda_built,
    ddl_built,
    gloo_built,
    gloo_enabled,
    init,
    is_homogeneous,
    is_initialized,
    join,
    local_rank,
    local_size,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    rank,
    rocm_built,
    shutdown,
    size,
)
from weft.horovod.process_set import (
    ProcessSet,
    add_process_set,
    global_process_set,
    remove_process_set,
)
from weft.horovod.reduction import Adasum
from weft.horovod.timeline import start_timeline, stop_timeline
from weft.horovod.torch import elastic
from weft.horovod.torch.collective import (
    allgather,
    allgather_async,
    allreduce,
    allreduce_,
    allreduce_async,
    allreduce_async_,
    alltoall,
    alltoall_async,
    barrier,
    broadcast,
    broadcast_,
    broadcast_async,
    broadcast_async_,
    grouped_allgather,
    grouped_allreduce,
    grouped_allreduce_,
    grouped_allreduce_async,
    grouped_allreduce_async_,
    grouped_reducescatter,
    poll,
    reducescatter,
    reducescatter_async,
    synchronize,
)
from weft.horovod.torch.compression import Compression
from weft.horovod.torch.norm import SyncBatchNorm
from weft.horovod.torch.optimizer import DistributedOptimizer
from weft.horovod.torch.state import (
    allgather_object,
    broadcast_object,
    broadcast_optimizer_state,
    broadcast_parameters,
)

__all__ = [
    "Adasum", "Average", "Compression", "DistributedOptimizer", "Max", "Min", "ProcessSet",
    "Product", "Sum", "SyncBatchNorm", "add_process_set", "allgather", "allgather_async",
    "allgather_object", "allreduce", "allreduce_", "allreduce_async", "allreduce_async_",
    "alltoall", "alltoall_async", "barrier", "broadcast", "broadcast_", "broadcast_async",
    "broadcast_async_", "broadcast_object", "broadcast_optimizer_state", "broadcast_parameters",
    "ccl_built", "cross_rank", "cross_size", "cuda_built", "ddl_built", "elastic",
    "global_process_set", "gloo_built", "gloo_enabled", "grouped_allgather", "grouped_allreduce",
    "grouped_allreduce_", "grouped_allreduce_async", "grouped_allreduce_async_",
    "grouped_reducescatter", "init", "is_homogeneous", "is_initialized", "join", "local_rank",
    "local_size", "mpi_built", "mpi_enabled", "mpi_threads_supported", "nccl_built", "poll",
    "rank", "reducescatter", "reducescatter_async", "remove_process_set", "rocm_built", "shutdown",
    "size", "start_timeline", "stop_timeline", "synchronize",
]  # fmt: skip

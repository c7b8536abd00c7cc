"""Shared by Horovod's front ends: joining the job, ranks and sizes, `join`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import weft.distributed as dist
from weft.collectives.elements import compute_pending
from weft.collectives.reduce_op import ReduceOp
from weft.errors import ArgumentError, DistributedError
from weft.horovod import timeline
from weft.horovod.process_set import ProcessSet, add_process_set, ranks_of
from weft.host.cores import local_rank as _local_rank
from weft.host.cores import local_size as _local_size
from weft.transport import session
from weft.transport.join import join_all

Average = ReduceOp.AVG
Sum = ReduceOp.SUM
Min = ReduceOp.MIN
Max = ReduceOp.MAX
Product = ReduceOp.PRODUCT
HorovodInternalError = DistributedError


class HostsUpdatedInterrupt(RuntimeError):
    """Hosts were added or removed; never raised: a job's hosts are fixed.

    Attributes:
        skip_sync: whether state need not be copied to all ranks.
    """

    def __init__(self, skip_sync: bool = False) -> None:
        super().__init__(skip_sync)
        self.skip_sync = skip_sync


def init(
    comm: Any = None, process_sets: Sequence[ProcessSet | Sequence[int]] | str | None = None
) -> None:  # fmt: skip
    """Join the job that the launcher has started; does nothing if called again.

    Args:
        comm: a communicator of mpi4py or a list of ranks; must have all ranks of the job.
        process_sets: subsets of ranks that run collectives of their own; the same on all ranks.
            With or without `"dynamic"`, `add_process_set` adds others.

    Raises:
        ArgumentError: `comm` leaves out ranks, or two process sets have the same ranks.
    """
    if dist.is_initialized():
        return
    dist.init_process_group()
    ranks = list(range(dist.get_world_size()))
    if comm is not None and sorted(ranks_of(comm) or ranks) != ranks:
        dist.destroy_process_group()
        raise ArgumentError.here(
            f"hvd.init: expected all ranks of the job, got {ranks_of(comm)}: start fewer, or give "
            "collectives a process_set"
        )
    for each in () if process_sets is None or isinstance(process_sets, str) else process_sets:
        add_process_set(each)
    timeline.start_if_asked()


def shutdown() -> None:
    """Leave the job; all ranks call it."""
    timeline.stop_timeline()
    if dist.is_initialized():
        dist.destroy_process_group()


def is_initialized() -> bool:
    """Whether `init` was called."""
    return dist.is_initialized()


def rank() -> int:
    """This process's rank, from 0.

    Raises:
        DistributedError: `init` was not called.
    """
    _check("rank")
    return dist.get_rank()


def size() -> int:
    """The number of processes.

    Raises:
        DistributedError: `init` was not called.
    """
    _check("size")
    return dist.get_world_size()


def local_rank() -> int:
    """This process's rank among the processes on its machine."""
    _check("local_rank")
    return _local_rank()


def local_size() -> int:
    """The number of processes on this machine."""
    _check("local_size")
    return _local_size()


def cross_rank() -> int:
    """The number of this process's machine, if all machines run equally many processes."""
    return rank() // local_size()


def cross_size() -> int:
    """The number of machines."""
    return -(-size() // local_size())


def is_homogeneous() -> bool:
    """Whether all machines run equally many processes."""
    sizes: list[Any] = [None] * size()
    dist.all_gather_object(sizes, local_size())
    return len(set(sizes)) == 1


def mpi_built(verbose: bool = False) -> bool:
    """Whether MPI is available: always, because all messages use it.

    Args:
        verbose: has no effect.
    """
    return True


mpi_enabled = mpi_built


def mpi_threads_supported() -> bool:
    """Whether MPI may be called from several threads: always; `init` requires it."""
    return True


def nccl_built(verbose: bool = False) -> bool:
    """Whether this library is built in: never, for NCCL and the others.

    Args:
        verbose: has no effect.
    """
    return False


gloo_built = gloo_enabled = ddl_built = ccl_built = cuda_built = rocm_built = nccl_built


def join(device: int = -1) -> int:
    """Declare that this rank has no more data; returns the last rank to join.

    Args:
        device: has no effect.

    Until all ranks have joined, this rank contributes zeros to the others' sums and means. A
    mean is still divided by the number of all ranks.

    Raises:
        DistributedError: another rank calls a collective other than a sum or a mean over all ranks.

    Example:
        >>> import weft.horovod.torch as hvd
        >>> hvd.init()
        >>> hvd.join()
        0
        >>> hvd.shutdown()
    """
    del device
    compute_pending()
    return join_all("hvd.join")


def _check(name: str) -> None:
    if session.current() is None:
        raise DistributedError.here(f"{name}: call hvd.init() first")


__all__ = [
    "Average", "HorovodInternalError", "HostsUpdatedInterrupt", "Sum", "ccl_built", "cross_rank",
    "cross_size", "cuda_built", "ddl_built", "gloo_built", "gloo_enabled", "init", "is_initialized",
    "local_rank", "local_size", "mpi_built", "mpi_enabled", "mpi_threads_supported", "nccl_built",
    "rank", "rocm_built", "shutdown", "size",
]  # fmt: skip

"""What Horovod's front ends share: the job, and how gradients travel."""

from __future__ import annotations

from typing import Any

import weft.distributed as dist
from weft.distributed.reduce_op import ReduceOp
from weft.errors import ArgumentError, DistributedError
from weft.ir.dtype import DType, float16
from weft.ops.base import at_user_line
from weft.placement import local_rank as _local_rank
from weft.placement import local_size as _local_size
from weft.transport import session

Average = ReduceOp.AVG
Sum = ReduceOp.SUM
Min = ReduceOp.MIN
Max = ReduceOp.MAX
Product = ReduceOp.PRODUCT


def init() -> None:
    """Join the job that a launcher has started; once more does nothing."""
    if not dist.is_initialized():
        dist.init_process_group()


def shutdown() -> None:
    """Leave the job together with all ranks."""
    if dist.is_initialized():
        dist.destroy_process_group()


def is_initialized() -> bool:
    """Whether `init` was called."""
    return dist.is_initialized()


def rank() -> int:
    """This process's number, from 0.

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
    """This process's number among those on its machine."""
    _check("local_rank")
    return _local_rank()


def local_size() -> int:
    """The number of processes on this machine."""
    _check("local_size")
    return _local_size()


def _check(name: str) -> None:
    if session.current() is None:
        raise DistributedError(f"{name}: call hvd.init() first{at_user_line()}")


class Compression:
    """The type in which gradients travel.

    Attributes:
        none: their own.
        fp16: float16, half the bytes; they are added up in float32.
    """

    none: DType | None = None
    fp16: DType | None = float16


def reduction_of(op: Any, average: bool | None) -> ReduceOp:
    """A reduction as Horovod's arguments say it.

    Raises:
        ArgumentError: both arguments, or no reduction.
    """
    if average is not None and op is not None:
        raise ArgumentError(f"allreduce: expected op or average, got both{at_user_line()}")
    found = (Sum if average is False else Average) if op is None else op
    if not isinstance(found, ReduceOp):
        raise ArgumentError(f"allreduce: expected hvd.Average, hvd.Sum, ..., got {op!r}")
    return found

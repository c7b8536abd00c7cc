"""Made by `python -m tools.stubs`."""

from typing import Any
from weft.horovod.compression import Compressor

def broadcast_global_variables(root_rank: int) -> None:
    """Give all variables of the default graph one rank's values.

    Args:
        root_rank: the rank in the job that sends.
    """

def allreduce(value: Any, name: str | None = ..., average: bool | None = ..., prescale_factor: float = ..., postscale_factor: float = ..., op: Any = ..., compression: type[Compressor] = ...) -> Any:
    """The reduction of all ranks' values, as a new array; the mean unless `op` says otherwise.

    Means of integers are rounded towards zero. The gradient is the same reduction of the
    results' gradients, as in Horovod, so all ranks take part in the backward pass. Results
    of handles have no gradient.

    Args:
        value: what this rank contributes.
        name: of the tensor in the timeline, or of the operation in the graph.
        average: `False` for a sum, `True` for a mean; or pass `op`.
        prescale_factor: factor before the reduction.
        postscale_factor: factor after the reduction.
        op: `hvd.Average`, which is the default, `hvd.Sum` or another reduction.
        compression: `hvd.Compression.fp16` sends floating-point elements as float16; or a class of
            your own with `compress` and `decompress`.

    Raises:
        ArgumentError: both `op` and `average` are given, or `op` is not a reduction.
        DistributedError: ranks make different calls, or one of them failed or ended.
    """

def reducescatter(value: Any, name: str | None = ..., op: Any = ...) -> Any:
    """This rank's rows of the reduction, as a new array; the mean unless `op` is `hvd.Sum`.

    If rows cannot be divided equally, the first ranks get one more. The gradient gathers
    all ranks' rows, as in Horovod.

    Args:
        value: what this rank contributes.
        name: of the tensor in the timeline, or of the operation in the graph.
        op: `hvd.Average`, which is the default, `hvd.Sum` or another reduction.

    Raises:
        ArgumentError: `op` is neither a sum nor a mean.
        ShapeError: the value is a scalar.
    """

def allgather(value: Any, name: str | None = ...) -> Any:
    """Concatenate all ranks' values along their first dimension, whose length may differ.

    The gradient is this rank's rows of the mean of all ranks' gradients, as in Horovod.

    Args:
        value: what this rank contributes.
        name: of the tensor in the timeline, or of the operation in the graph.

    Raises:
        ShapeError: other dimensions or types differ, or they are scalars.
    """

def broadcast(value: Any, root_rank: int, name: str | None = ...) -> Any:
    """The value of one rank, as a new array.

    The gradient is the mean of all ranks' gradients on that rank, as in Horovod, and zero
    on the others.

    Args:
        value: what this rank contributes.
        root_rank: the rank in the job that sends.
        name: of the tensor in the timeline, or of the operation in the graph.

    Raises:
        DistributedError: `root_rank` is not in the process set.
    """

__all__ = [
    "allgather",
    "allreduce",
    "broadcast",
    "broadcast_global_variables",
    "reducescatter",
]

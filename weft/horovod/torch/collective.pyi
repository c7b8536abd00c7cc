"""Made by `python -m tools.stubs`."""

from collections.abc import Sequence
from typing import Any
from collections.abc import Callable
from weft.eager.tensor.tensor import Tensor
from weft.horovod.compression import Compressor
from weft.horovod.process_set import ProcessSet

def poll(handle: int) -> bool:
    """Whether the call of a handle has completed.

    Args:
        handle: what an asynchronous collective returned.

    Raises:
        DistributedError: `synchronize` has been called for it, or there is no such handle.
    """

def synchronize(handle: int) -> Any:
    """Wait for an asynchronous call; returns its result.

    Args:
        handle: what an asynchronous collective returned.

    Raises:
        DistributedError: it has been waited for already, or the call failed.
    """

def allreduce(tensor: Tensor, average: bool | None = ..., name: str | None = ..., compression: type[Compressor] = ..., op: Any = ..., prescale_factor: float = ..., postscale_factor: float = ..., process_set: ProcessSet = ...) -> Tensor:
    """The reduction of all ranks' tensors, as a new tensor; the mean unless `op` says otherwise.

    Means of integers are rounded towards zero. The gradient is the same reduction of the
    results' gradients, as in Horovod, so all ranks take part in the backward pass. Results
    of handles have no gradient.

    Args:
        tensor: what this rank contributes.
        average: `False` for a sum, `True` for a mean; or pass `op`.
        name: of the tensor in the timeline, or of the operation in the graph.
        compression: `hvd.Compression.fp16` sends floating-point elements as float16; or a class of
            your own with `compress` and `decompress`.
        op: `hvd.Average`, which is the default, `hvd.Sum` or another reduction.
        prescale_factor: factor before the reduction.
        postscale_factor: factor after the reduction.
        process_set: the ranks that take part.

    Raises:
        ArgumentError: both `op` and `average` are given, or `op` is not a reduction.
        DistributedError: ranks make different calls, or one of them failed or ended.
    """

def allreduce_(tensor: Tensor, average: bool | None = ..., name: str | None = ..., op: Any = ..., prescale_factor: float = ..., postscale_factor: float = ..., process_set: ProcessSet = ...) -> Tensor:
    """`allreduce` in place.

    Args:
        tensor: what this rank contributes.
        average: `False` for a sum, `True` for a mean; or pass `op`.
        name: of the tensor in the timeline, or of the operation in the graph.
        op: `hvd.Average`, which is the default, `hvd.Sum` or another reduction.
        prescale_factor: factor before the reduction.
        postscale_factor: factor after the reduction.
        process_set: the ranks that take part.
    """

def allreduce_async(tensor: Tensor, average: bool | None = ..., name: str | None = ..., op: Any = ..., prescale_factor: float = ..., postscale_factor: float = ..., process_set: ProcessSet = ...) -> int:
    """Asynchronous `allreduce`; returns a handle for `poll` and `synchronize`.

    Args:
        tensor: what this rank contributes.
        average: `False` for a sum, `True` for a mean; or pass `op`.
        name: of the tensor in the timeline, or of the operation in the graph.
        op: `hvd.Average`, which is the default, `hvd.Sum` or another reduction.
        prescale_factor: factor before the reduction.
        postscale_factor: factor after the reduction.
        process_set: the ranks that take part.
    """

def allreduce_async_(tensor: Tensor, average: bool | None = ..., name: str | None = ..., op: Any = ..., prescale_factor: float = ..., postscale_factor: float = ..., process_set: ProcessSet = ...) -> int:
    """Asynchronous `allreduce_`; the tensor changes in `synchronize`.

    Args:
        tensor: what this rank contributes.
        average: `False` for a sum, `True` for a mean; or pass `op`.
        name: of the tensor in the timeline, or of the operation in the graph.
        op: `hvd.Average`, which is the default, `hvd.Sum` or another reduction.
        prescale_factor: factor before the reduction.
        postscale_factor: factor after the reduction.
        process_set: the ranks that take part.
    """

def grouped_allreduce(tensors: Sequence[Tensor], average: bool | None = ..., name: str | None = ..., compression: type[Compressor] = ..., op: Any = ..., prescale_factor: float = ..., postscale_factor: float = ..., process_set: ProcessSet = ...) -> list[Tensor]:
    """`allreduce` of several tensors; those of one type are sent as one vector.

    Args:
        tensors: what this rank contributes.
        average: `False` for a sum, `True` for a mean; or pass `op`.
        name: of the tensor in the timeline, or of the operation in the graph.
        compression: `hvd.Compression.fp16` sends floating-point elements as float16; or a class of
            your own with `compress` and `decompress`.
        op: `hvd.Average`, which is the default, `hvd.Sum` or another reduction.
        prescale_factor: factor before the reduction.
        postscale_factor: factor after the reduction.
        process_set: the ranks that take part.
    """

def grouped_allreduce_(tensors: Sequence[Tensor], average: bool | None = ..., name: str | None = ..., op: Any = ..., prescale_factor: float = ..., postscale_factor: float = ..., process_set: ProcessSet = ...) -> list[Tensor]:
    """`grouped_allreduce` in place.

    Args:
        tensors: what this rank contributes.
        average: `False` for a sum, `True` for a mean; or pass `op`.
        name: of the tensor in the timeline, or of the operation in the graph.
        op: `hvd.Average`, which is the default, `hvd.Sum` or another reduction.
        prescale_factor: factor before the reduction.
        postscale_factor: factor after the reduction.
        process_set: the ranks that take part.
    """

def grouped_allreduce_async(tensors: Sequence[Tensor], average: bool | None = ..., name: str | None = ..., op: Any = ..., prescale_factor: float = ..., postscale_factor: float = ..., process_set: ProcessSet = ...) -> int:
    """Asynchronous `grouped_allreduce`; returns a handle for `poll` and `synchronize`.

    Args:
        tensors: what this rank contributes.
        average: `False` for a sum, `True` for a mean; or pass `op`.
        name: of the tensor in the timeline, or of the operation in the graph.
        op: `hvd.Average`, which is the default, `hvd.Sum` or another reduction.
        prescale_factor: factor before the reduction.
        postscale_factor: factor after the reduction.
        process_set: the ranks that take part.
    """

def grouped_allreduce_async_(tensors: Sequence[Tensor], average: bool | None = ..., name: str | None = ..., op: Any = ..., prescale_factor: float = ..., postscale_factor: float = ..., process_set: ProcessSet = ...) -> int:
    """Asynchronous `grouped_allreduce_`; the tensor changes in `synchronize`.

    Args:
        tensors: what this rank contributes.
        average: `False` for a sum, `True` for a mean; or pass `op`.
        name: of the tensor in the timeline, or of the operation in the graph.
        op: `hvd.Average`, which is the default, `hvd.Sum` or another reduction.
        prescale_factor: factor before the reduction.
        postscale_factor: factor after the reduction.
        process_set: the ranks that take part.
    """

def reducescatter(tensor: Tensor, name: str | None = ..., compression: type[Compressor] = ..., op: Any = ..., process_set: ProcessSet = ..., prescale_factor: float = ..., postscale_factor: float = ...) -> Tensor:
    """This rank's rows of the reduction, as a new tensor; the mean unless `op` is `hvd.Sum`.

    If rows cannot be divided equally, the first ranks get one more. The gradient gathers
    all ranks' rows, as in Horovod.

    Args:
        tensor: what this rank contributes.
        name: of the tensor in the timeline, or of the operation in the graph.
        compression: `hvd.Compression.fp16` sends floating-point elements as float16; or a class of
            your own with `compress` and `decompress`.
        op: `hvd.Average`, which is the default, `hvd.Sum` or another reduction.
        process_set: the ranks that take part.
        prescale_factor: factor before the reduction.
        postscale_factor: factor after the reduction.

    Raises:
        ArgumentError: `op` is neither a sum nor a mean.
        ShapeError: the tensor is a scalar.
    """

def reducescatter_async(tensor: Tensor, name: str | None = ..., op: Any = ..., process_set: ProcessSet = ..., prescale_factor: float = ..., postscale_factor: float = ...) -> int:
    """Asynchronous `reducescatter`; returns a handle for `poll` and `synchronize`.

    Args:
        tensor: what this rank contributes.
        name: of the tensor in the timeline, or of the operation in the graph.
        op: `hvd.Average`, which is the default, `hvd.Sum` or another reduction.
        process_set: the ranks that take part.
        prescale_factor: factor before the reduction.
        postscale_factor: factor after the reduction.
    """

def grouped_reducescatter(tensors: Sequence[Tensor], name: str | None = ..., compression: type[Compressor] = ..., op: Any = ..., process_set: ProcessSet = ..., prescale_factor: float = ..., postscale_factor: float = ...) -> list[Tensor]:
    """`reducescatter` of several tensors.

    Args:
        tensors: what this rank contributes.
        name: of the tensor in the timeline, or of the operation in the graph.
        compression: `hvd.Compression.fp16` sends floating-point elements as float16; or a class of
            your own with `compress` and `decompress`.
        op: `hvd.Average`, which is the default, `hvd.Sum` or another reduction.
        process_set: the ranks that take part.
        prescale_factor: factor before the reduction.
        postscale_factor: factor after the reduction.
    """

def grouped_reducescatter_async(tensors: Sequence[Tensor], name: str | None = ..., op: Any = ..., process_set: ProcessSet = ..., prescale_factor: float = ..., postscale_factor: float = ...) -> int:
    """Asynchronous `grouped_reducescatter`; returns a handle for `poll` and `synchronize`.

    Args:
        tensors: what this rank contributes.
        name: of the tensor in the timeline, or of the operation in the graph.
        op: `hvd.Average`, which is the default, `hvd.Sum` or another reduction.
        process_set: the ranks that take part.
        prescale_factor: factor before the reduction.
        postscale_factor: factor after the reduction.
    """

def allgather(tensor: Tensor, name: str | None = ..., process_set: ProcessSet = ...) -> Tensor:
    """Concatenate all ranks' tensors along their first dimension, whose length may differ.

    The gradient is this rank's rows of the mean of all ranks' gradients, as in Horovod.

    Args:
        tensor: what this rank contributes.
        name: of the tensor in the timeline, or of the operation in the graph.
        process_set: the ranks that take part.

    Raises:
        ShapeError: other dimensions or types differ, or they are scalars.
    """

def allgather_async(tensor: Tensor, name: str | None = ..., process_set: ProcessSet = ...) -> int:
    """Asynchronous `allgather`; returns a handle for `poll` and `synchronize`.

    Args:
        tensor: what this rank contributes.
        name: of the tensor in the timeline, or of the operation in the graph.
        process_set: the ranks that take part.
    """

def grouped_allgather(tensors: Sequence[Tensor], name: str | None = ..., process_set: ProcessSet = ...) -> list[Tensor]:
    """`allgather` of several tensors.

    Args:
        tensors: what this rank contributes.
        name: of the tensor in the timeline, or of the operation in the graph.
        process_set: the ranks that take part.
    """

def grouped_allgather_async(tensors: Sequence[Tensor], name: str | None = ..., process_set: ProcessSet = ...) -> int:
    """Asynchronous `grouped_allgather`; returns a handle for `poll` and `synchronize`.

    Args:
        tensors: what this rank contributes.
        name: of the tensor in the timeline, or of the operation in the graph.
        process_set: the ranks that take part.
    """

def broadcast(tensor: Tensor, root_rank: int, name: str | None = ..., process_set: ProcessSet = ...) -> Tensor:
    """The tensor of one rank, as a new tensor.

    The gradient is the mean of all ranks' gradients on that rank, as in Horovod, and zero
    on the others.

    Args:
        tensor: what this rank contributes.
        root_rank: the rank in the job that sends.
        name: of the tensor in the timeline, or of the operation in the graph.
        process_set: the ranks that take part.

    Raises:
        DistributedError: `root_rank` is not in the process set.
    """

def broadcast_(tensor: Tensor, root_rank: int, name: str | None = ..., process_set: ProcessSet = ...) -> Tensor:
    """`broadcast` in place.

    Args:
        tensor: what this rank contributes.
        root_rank: the rank in the job that sends.
        name: of the tensor in the timeline, or of the operation in the graph.
        process_set: the ranks that take part.
    """

def broadcast_async(tensor: Tensor, root_rank: int, name: str | None = ..., process_set: ProcessSet = ...) -> int:
    """Asynchronous `broadcast`; returns a handle for `poll` and `synchronize`.

    Args:
        tensor: what this rank contributes.
        root_rank: the rank in the job that sends.
        name: of the tensor in the timeline, or of the operation in the graph.
        process_set: the ranks that take part.
    """

def broadcast_async_(tensor: Tensor, root_rank: int, name: str | None = ..., process_set: ProcessSet = ...) -> int:
    """Asynchronous `broadcast_`; the tensor changes in `synchronize`.

    Args:
        tensor: what this rank contributes.
        root_rank: the rank in the job that sends.
        name: of the tensor in the timeline, or of the operation in the graph.
        process_set: the ranks that take part.
    """

def alltoall(tensor: Tensor, splits: Any = ..., name: str | None = ..., process_set: ProcessSet = ...) -> Any:
    """The rows that the ranks send to this one, as a new tensor.

    The gradient of the rows goes back to where they came from.

    Args:
        tensor: what this rank contributes.
        splits: the number of rows for each rank; by default equal numbers.
        name: of the tensor in the timeline, or of the operation in the graph.
        process_set: the ranks that take part.

    Returns:
        The rows; with `splits`, a pair of them and the number of rows from each rank.

    Raises:
        ShapeError: `splits` does not add up to the rows.
    """

def alltoall_async(tensor: Tensor, splits: Any = ..., name: str | None = ..., process_set: ProcessSet = ...) -> int:
    """Asynchronous `alltoall`; returns a handle for `poll` and `synchronize`.

    Args:
        tensor: what this rank contributes.
        splits: the number of rows for each rank; by default equal numbers.
        name: of the tensor in the timeline, or of the operation in the graph.
        process_set: the ranks that take part.
    """

def sparse_allreduce_async(tensor: Any, name: str | None = ..., op: Any = ..., process_set: ProcessSet = ...) -> Callable[[], Any]:
    """Start the reduction of all ranks' sparse tensors; returns a function that waits for it.

    Args:
        tensor: this rank's tensor by coordinates; entries of ranks at one place are added.
        name: of the tensor in the timeline.
        op: `hvd.Average` or `hvd.Sum`.
        process_set: the ranks that take part.
    """

def barrier(process_set: ProcessSet = ...) -> None:
    """Wait until all ranks have called it.

    Args:
        process_set: the ranks that wait.
    """

__all__ = [
    "allgather",
    "allgather_async",
    "allreduce",
    "allreduce_",
    "allreduce_async",
    "allreduce_async_",
    "alltoall",
    "alltoall_async",
    "barrier",
    "broadcast",
    "broadcast_",
    "broadcast_async",
    "broadcast_async_",
    "grouped_allgather",
    "grouped_allgather_async",
    "grouped_allreduce",
    "grouped_allreduce_",
    "grouped_allreduce_async",
    "grouped_allreduce_async_",
    "grouped_reducescatter",
    "grouped_reducescatter_async",
    "poll",
    "reducescatter",
    "reducescatter_async",
    "sparse_allreduce_async",
    "synchronize",
]

"""Made by `python -m tools.stubs`."""

from collections.abc import Sequence
from typing import Any
from collections.abc import Callable
from weft.horovod.compression import Compressor
from weft.horovod.process_set import ProcessSet
from weft.horovod.reduction import Reduction
from weft.tf1.framework.tensor import Operation

def reduced(tensors: Sequence[Any], how: Reduction, name: str | None, process_set: ProcessSet) -> list[Any]:
    """Reduce several tensors together; `IndexedSlices` become dense."""

def allreduce(tensor: Any, average: bool | None = ..., device_dense: str = ..., device_sparse: str = ..., compression: type[Compressor] = ..., op: Any = ..., prescale_factor: float = ..., postscale_factor: float = ..., name: str | None = ..., process_set: ProcessSet = ...) -> Any:
    """The reduction of all ranks' tensors, as a new tensor; the mean unless `op` says otherwise.

    Means of integers are rounded towards zero. The gradient is the same reduction of the
    results' gradients, as in Horovod, so all ranks take part in the backward pass. Results
    of handles have no gradient.

    Args:
        tensor: what this rank contributes.
        average: `False` for a sum, `True` for a mean; or pass `op`.
        device_dense: ignored; there is one device.
        device_sparse: ignored; there is one device.
        compression: `hvd.Compression.fp16` sends floating-point elements as float16; or a class of
            your own with `compress` and `decompress`.
        op: `hvd.Average`, which is the default, `hvd.Sum` or another reduction.
        prescale_factor: factor before the reduction.
        postscale_factor: factor after the reduction.
        name: of the tensor in the timeline, or of the operation in the graph.
        process_set: the ranks that take part.

    Raises:
        ArgumentError: both `op` and `average` are given, or `op` is not a reduction.
        DistributedError: ranks make different calls, or one of them failed or ended.
    """

def grouped_allreduce(tensors: Sequence[Any], average: bool | None = ..., device_dense: str = ..., device_sparse: str = ..., compression: type[Compressor] = ..., op: Any = ..., prescale_factor: float = ..., postscale_factor: float = ..., name: str | None = ..., process_set: ProcessSet = ...) -> list[Any]:
    """`allreduce` of several tensors; those of one type are sent as one vector.

    Args:
        tensors: what this rank contributes.
        average: `False` for a sum, `True` for a mean; or pass `op`.
        device_dense: ignored; there is one device.
        device_sparse: ignored; there is one device.
        compression: `hvd.Compression.fp16` sends floating-point elements as float16; or a class of
            your own with `compress` and `decompress`.
        op: `hvd.Average`, which is the default, `hvd.Sum` or another reduction.
        prescale_factor: factor before the reduction.
        postscale_factor: factor after the reduction.
        name: of the tensor in the timeline, or of the operation in the graph.
        process_set: the ranks that take part.
    """

def reducescatter(tensor: Any, device_dense: str = ..., compression: type[Compressor] = ..., op: Any = ..., name: str | None = ..., process_set: ProcessSet = ..., prescale_factor: float = ..., postscale_factor: float = ...) -> Any:
    """This rank's rows of the reduction, as a new tensor; the mean unless `op` is `hvd.Sum`.

    If rows cannot be divided equally, the first ranks get one more. The gradient gathers
    all ranks' rows, as in Horovod.

    Args:
        tensor: what this rank contributes.
        device_dense: ignored; there is one device.
        compression: `hvd.Compression.fp16` sends floating-point elements as float16; or a class of
            your own with `compress` and `decompress`.
        op: `hvd.Average`, which is the default, `hvd.Sum` or another reduction.
        name: of the tensor in the timeline, or of the operation in the graph.
        process_set: the ranks that take part.
        prescale_factor: factor before the reduction.
        postscale_factor: factor after the reduction.

    Raises:
        ArgumentError: `op` is neither a sum nor a mean.
        ShapeError: the tensor is a scalar.
    """

def grouped_reducescatter(tensors: Sequence[Any], device_dense: str = ..., compression: type[Compressor] = ..., op: Any = ..., name: str | None = ..., process_set: ProcessSet = ..., prescale_factor: float = ..., postscale_factor: float = ...) -> list[Any]:
    """`reducescatter` of several tensors.

    Args:
        tensors: what this rank contributes.
        device_dense: ignored; there is one device.
        compression: `hvd.Compression.fp16` sends floating-point elements as float16; or a class of
            your own with `compress` and `decompress`.
        op: `hvd.Average`, which is the default, `hvd.Sum` or another reduction.
        name: of the tensor in the timeline, or of the operation in the graph.
        process_set: the ranks that take part.
        prescale_factor: factor before the reduction.
        postscale_factor: factor after the reduction.
    """

def allgather(tensor: Any, name: str | None = ..., process_set: ProcessSet = ...) -> Any:
    """Concatenate all ranks' tensors along their first dimension, whose length may differ.

    The gradient is this rank's rows of the mean of all ranks' gradients, as in Horovod.

    Args:
        tensor: what this rank contributes.
        name: of the tensor in the timeline, or of the operation in the graph.
        process_set: the ranks that take part.

    Raises:
        ShapeError: other dimensions or types differ, or they are scalars.
    """

def grouped_allgather(tensors: Sequence[Any], name: str | None = ..., process_set: ProcessSet = ...) -> list[Any]:
    """`allgather` of several tensors.

    Args:
        tensors: what this rank contributes.
        name: of the tensor in the timeline, or of the operation in the graph.
        process_set: the ranks that take part.
    """

def broadcast(tensor: Any, root_rank: int, name: str | None = ..., process_set: ProcessSet = ...) -> Any:
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

def alltoall(tensor: Any, splits: Any = ..., name: str | None = ..., process_set: ProcessSet = ...) -> Any:
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

def join(device: int = ...) -> Any:
    """A tensor whose evaluation declares that this rank has no more data; the last rank to join.

    See `weft.horovod.torch.join`.

    Args:
        device: has no effect.
    """

def broadcast_variables(variables: Sequence[Any], root_rank: int) -> Operation:
    """An operation that broadcasts one rank's variables.

    Args:
        variables: variables of the default graph.
        root_rank: the rank in the job that sends.
    """

def broadcast_global_variables(root_rank: int) -> Operation:
    """An operation that broadcasts one rank's values of all global variables.

    Args:
        root_rank: the rank in the job that sends.
    """

def broadcast_object(obj: Any, root_rank: int = ..., session: Any = ..., name: str | None = ..., process_set: ProcessSet = ...) -> Any:
    """Broadcast one rank's nested structure of arrays, numbers and strings, immediately.

    Args:
        obj: what is sent; other ranks' are ignored.
        root_rank: the rank in the job that sends.
        session: ignored.
        name: ignored.
        process_set: the ranks that take part.
    """

def broadcast_object_fn(root_rank: int = ..., session: Any = ..., name: str | None = ..., process_set: ProcessSet = ...) -> Callable[[Any], Any]:
    """`broadcast_object` as a function of the object.

    Args:
        root_rank: the rank in the job that sends.
        session: ignored.
        name: ignored.
        process_set: the ranks that take part.
    """

def allgather_object(obj: Any, session: Any = ..., name: str | None = ..., process_set: ProcessSet = ...) -> list[Any]:
    """Gather all ranks' nested structures, immediately.

    Args:
        obj: what this rank contributes.
        session: ignored.
        name: ignored.
        process_set: the ranks that take part.
    """

__all__ = [
    "allgather",
    "allgather_object",
    "allreduce",
    "alltoall",
    "broadcast",
    "broadcast_global_variables",
    "broadcast_object",
    "broadcast_object_fn",
    "broadcast_variables",
    "grouped_allgather",
    "grouped_allreduce",
    "grouped_reducescatter",
    "join",
    "reducescatter",
]

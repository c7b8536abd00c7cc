"""Collectives in TensorFlow 1 graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import ops
from weft.distributed.objects import all_gather_object, broadcast_object_list
from weft.distributed.reduce_op import ReduceOp
from weft.eager.tensor.handle import Handle
from weft.func.tree import map_structure
from weft.horovod import basics, reduction
from weft.horovod.basics import Compression
from weft.horovod.process_set import ProcessSet, global_process_set
from weft.horovod.reduction import Op, Reduction, reduction_of
from weft.ir.dtype import DType
from weft.ir.node import Value
from weft.ops.communication.exchange_log import logged
from weft.tf1.control.dependency import group
from weft.tf1.control.py_func import host_function
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.graph import get_default_graph, name_scope
from weft.tf1.framework.indexed_slices import IndexedSlices
from weft.tf1.framework.tensor import Operation, Tensor
from weft.tf1.variable.variable_list import global_variables
from weft.transport.base import Array

Everyone = global_process_set


def allreduce(
    tensor: Any, average: bool | None = None, device_dense: str = "", device_sparse: str = "",
    compression: DType | None = Compression.none, op: Any = None, prescale_factor: float = 1.0,
    postscale_factor: float = 1.0, name: str | None = None, process_set: ProcessSet = Everyone,
) -> Any:  # fmt: skip
    """The reduction of all ranks' tensors; their mean unless `op` says otherwise.

    Args:
        device_dense, device_sparse: ignored.
        compression: `hvd.Compression.fp16` sends floating-point elements as float16.
        prescale_factor, postscale_factor: factors before and after the reduction.
        process_set: the ranks that take part.
    """
    how = Reduction(reduction_of(op, average), compression, prescale_factor, postscale_factor)
    return reduced([tensor], how, name, process_set)[0]


def grouped_allreduce(
    tensors: Sequence[Any], average: bool | None = None, device_dense: str = "",
    device_sparse: str = "", compression: DType | None = Compression.none, op: Any = None,
    prescale_factor: float = 1.0, postscale_factor: float = 1.0, name: str | None = None,
    process_set: ProcessSet = Everyone,
) -> list[Any]:  # fmt: skip
    """`allreduce` of several tensors together."""
    how = Reduction(reduction_of(op, average), compression, prescale_factor, postscale_factor)
    return reduced(tensors, how, name, process_set)


def reduced(
    tensors: Sequence[Any], how: Reduction, name: str | None, process_set: ProcessSet
) -> list[Any]:
    """Reduce several tensors together; `IndexedSlices` become dense."""
    dense = [convert_to_tensor(x) if isinstance(x, IndexedSlices) else x for x in tensors]
    if not isinstance(how.op, ReduceOp):
        return _on_arrays("HorovodAdasum", dense, lambda *xs: how.all(process_set.group, xs), name)
    reduction_name, number = how.op.value, process_set.group.number

    def build(*values: Value) -> tuple[Value, ...]:
        sent = [_low(_scaled(x, how.prescale), how.compression) for x in values]
        found = ops.all_reduce.all(*sent, reduction=reduction_name, group=number)
        pairs = zip(values, found, strict=True)
        return tuple([_scaled(_typed(y, x.dtype), how.postscale) for x, y in pairs])

    return _emitted("HorovodAllreduce", dense, build, name)


def _scaled(x: Value, factor: float) -> Value:
    return x if factor == 1.0 else x * ops.base.constant_of(factor, x.dtype)


def _low(x: Value, kind: DType | None) -> Value:
    return x if kind is None or not x.dtype.is_inexact else _typed(x, kind)


def _typed(x: Value, kind: DType) -> Value:
    return x if x.dtype is kind else ops.cast(x, dtype=kind)


def _emitted(kind: str, tensors: Sequence[Any], build: Any, name: str | None) -> list[Any]:
    """The outputs of an operation that `build` adds to the graph."""
    given = [convert_to_tensor(t) for t in tensors]
    with name_scope(name, kind, given) as scope:
        return list(get_default_graph().emit(kind, given, build, name=scope).outputs)


def _on_arrays(
    kind: str, tensors: Sequence[Any], work: Callable[..., Any], name: str | None
) -> list[Any]:
    """The outputs, shaped like the inputs, of a collective on arrays; without gradients."""
    given = [convert_to_tensor(t) for t in tensors]
    shapes = [_shape_of(x, i) for i, x in enumerate(given)]
    found = host_function(kind, _once(work), given, [x.dtype for x in given], shapes, name)
    return list(found.outputs)


def _shape_of(x: Tensor, position: int) -> Any:
    """The shape of an input, as `host_function` takes it for a result."""
    if x.shape.ndims is None:
        return None
    return [(position, axis) if n is None else n for axis, n in enumerate(x.shape.as_list())]


def _once(work: Callable[..., Any]) -> Callable[..., tuple[Array, ...]]:
    """A collective on arrays, called once while a step is computed several times."""

    def call(*xs: Array) -> tuple[Array, ...]:
        found = work(*xs)
        return tuple(found) if isinstance(found, list | tuple) else (found,)

    return logged(call, compared=True)


def broadcast(
    tensor: Any, root_rank: int, name: str | None = None, process_set: ProcessSet = Everyone
) -> Any:
    """The tensor of one rank."""
    members = process_set.group
    root = reduction.root_index(members, root_rank, "broadcast")

    def build(x: Value) -> tuple[Value, ...]:
        return ops.broadcast_from.all(x, root=root, group=members.number)

    return _emitted("HorovodBroadcast", [tensor], build, name)[0]


def _rows(
    kind: str, tensor: Any, work: Callable[..., Any], name: str | None, more: Sequence[Any] = ()
) -> Any:
    """The output of a collective whose number of rows is known only when the graph runs."""
    x = convert_to_tensor(tensor)
    return _of_rows(
        x, host_function(kind, _once(work), [x, *more], [x.dtype], [None], name, alike=False)
    )[0]


def _of_rows(x: Tensor, op: Operation) -> Sequence[Tensor]:
    """The outputs of a collective, the first of which has rows like those of `x`."""
    if x.shape.ndims:
        op.outputs[0].set_shape([None, *x.shape.as_list()[1:]])
    return op.outputs


def allgather(tensor: Any, name: str | None = None, process_set: ProcessSet = Everyone) -> Any:
    """Concatenate all ranks' tensors along their first dimension, whose length may differ.

    It has no gradient.
    """

    def work(x: Array) -> Array:
        return reduction.gather(process_set.group, np.asarray(x, order="C"))

    return _rows("HorovodAllgather", tensor, work, name)


def alltoall(
    tensor: Any, splits: Any = None, name: str | None = None, process_set: ProcessSet = Everyone
) -> Any:
    """The rows that the ranks send to this one; with `splits`, also their numbers.

    It has no gradient.

    Args:
        splits: the number of rows for each rank; by default equal numbers.
    """
    if splits is None:
        return _rows("HorovodAlltoall", tensor, lambda x: _exchanged(x, None, process_set)[0], name)
    x, shares = convert_to_tensor(tensor), convert_to_tensor(splits)

    def work(values: Array, counts: Array) -> list[Array]:
        found, taken = _exchanged(values, counts, process_set)
        return [found, np.array(taken, counts.dtype)]

    kinds, shapes = [x.dtype, shares.dtype], [None, [process_set.size()]]
    found = _of_rows(
        x,
        host_function(
            "HorovodAlltoall", _once(work), [x, shares], kinds, shapes, name, alike=False
        ),
    )
    return found[0], found[1]


def _exchanged(x: Array, splits: Array | None, process_set: ProcessSet) -> tuple[Array, list[int]]:
    shares = None if splits is None else [int(n) for n in splits]
    return reduction.exchange(process_set.group, np.asarray(x, order="C"), shares)


def reducescatter(
    tensor: Any, op: Any = None, name: str | None = None, prescale_factor: float = 1.0,
    postscale_factor: float = 1.0, process_set: ProcessSet = Everyone,
) -> Any:  # fmt: skip
    """This rank's rows of the reduction; the mean unless `op` is `hvd.Sum`.

    It has no gradient.
    """
    chosen: Op = reduction_of(op, None, "reducescatter")
    how = Reduction(chosen, None, prescale_factor, postscale_factor)

    def work(x: Array) -> Array:
        return reduction.scatter(process_set.group, np.asarray(x, order="C"), how)

    return _rows("HorovodReducescatter", tensor, work, name)


def join() -> Any:
    """A tensor whose evaluation declares that this rank has no more data: the last rank to join.

    See `weft.horovod.torch.join`.
    """

    def work() -> Array:
        return np.array(basics.join(), np.int32)

    return host_function("HorovodJoin", _once(work), [], ["int32"], [[]]).outputs[0]


def broadcast_variables(variables: Sequence[Any], root_rank: int) -> Operation:
    """An operation that broadcasts one rank's variables."""
    return group(*[v.assign(broadcast(v.read_value(), root_rank)) for v in variables])


def broadcast_global_variables(root_rank: int) -> Operation:
    """An operation that broadcasts one rank's values of all global variables."""
    return broadcast_variables(global_variables(), root_rank)


def broadcast_object(
    obj: Any, root_rank: int = 0, session: Any = None, name: str | None = None,
    process_set: ProcessSet = Everyone,
) -> Any:  # fmt: skip
    """Broadcast one rank's nested structure of arrays, numbers and strings, immediately."""
    found = [obj]
    broadcast_object_list(found, root_rank, process_set.group)
    return map_structure(_plain, found[0])


def allgather_object(
    obj: Any, session: Any = None, name: str | None = None, process_set: ProcessSet = Everyone
) -> list[Any]:
    """Gather all ranks' nested structures, immediately."""
    every: list[Any] = [None] * process_set.size()
    all_gather_object(every, obj, process_set.group)
    return [map_structure(_plain, each) for each in every]


def _plain(x: Any) -> Any:
    return np.asarray(x) if isinstance(x, Handle) else x

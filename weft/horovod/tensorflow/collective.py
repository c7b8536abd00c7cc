"""Collectives in TensorFlow 1 graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import ops
from weft.collectives.objects import all_gather_object, broadcast_object_list
from weft.collectives.reduce_op import ReduceOp
from weft.documentation import arguments_of
from weft.eager.tensor.handle import Handle
from weft.errors import ArgumentError
from weft.func.tree import map_structure
from weft.horovod import basics, reduction
from weft.horovod.collective_table import TENSORFLOW, Form, functions
from weft.horovod.compression import Compressor
from weft.horovod.process_set import ProcessSet, global_process_set
from weft.horovod.reduction import Op, Reduction, reduction_of
from weft.horovod.tensorflow.movement import Movement, once
from weft.ir.dtype import float32
from weft.ir.node import Value
from weft.tf1.control.dependency import group
from weft.tf1.control.py_func import host_function
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.dtypes import as_dtype
from weft.tf1.framework.graph import get_default_graph, name_scope
from weft.tf1.framework.indexed_slices import IndexedSlices
from weft.tf1.framework.tensor import Operation, Tensor
from weft.tf1.variable.variable_list import global_variables
from weft.transport.base import Array


def _reduce(
    tensors: Sequence[Any], average: bool | None, op: Any, compression: type[Compressor],
    prescale_factor: float, postscale_factor: float, name: str | None, process_set: ProcessSet,
    **devices: str,
) -> list[Any]:  # fmt: skip
    how = Reduction(reduction_of(op, average), prescale_factor, postscale_factor, compression)
    return reduced(tensors, how, name, process_set)


def reduced(
    tensors: Sequence[Any], how: Reduction, name: str | None, process_set: ProcessSet
) -> list[Any]:
    """Reduce several tensors together; `IndexedSlices` become dense."""
    if any([_is_open(x) for x in tensors]):
        return [_slices(x, how, process_set) if _is_open(x) else
                reduced([x], how, name, process_set)[0] for x in tensors]  # fmt: skip
    dense = [convert_to_tensor(x) for x in tensors]
    if how.on_integers([x.dtype.ir for x in dense]) and len({x.dtype for x in dense}) > 1:
        return [y for x in dense for y in reduced([x], how, name, process_set)]
    pairs = [how.compression.compress(x) for x in dense]
    ys = _reduced([x for x, _ in pairs], how, name, process_set)
    return [how.compression.decompress(y, c) for y, (_, c) in zip(ys, pairs, strict=True)]


def _is_open(x: Any) -> bool:
    """Whether these are rows of a tensor of unknown size."""
    return isinstance(x, IndexedSlices) and x.dense_shape is None


def _slices(x: IndexedSlices, how: Reduction, process_set: ProcessSet) -> IndexedSlices:
    """All ranks' rows, as rows."""
    if how.op not in (ReduceOp.AVG, ReduceOp.SUM) or (how.prescale, how.postscale) != (1.0, 1.0):
        raise ArgumentError.here(
            "allreduce: expected hvd.Average or hvd.Sum without factors for IndexedSlices without "
            f"a dense_shape, got {how.op}"
        )
    values, indices = (
        allgather(x.values, None, process_set),
        allgather(x.indices, None, process_set),
    )
    mean = how.op is ReduceOp.AVG
    return IndexedSlices(values / process_set.size() if mean else values, indices)


def _reduced(
    tensors: Sequence[Tensor], how: Reduction, name: str | None, process_set: ProcessSet
) -> list[Any]:
    members = process_set.group
    if not isinstance(how.op, ReduceOp) or how.on_integers([x.dtype.ir for x in tensors]):
        op_type = "HorovodAllreduce" if isinstance(how.op, ReduceOp) else "HorovodAdasum"
        return _on_arrays(op_type, tensors, lambda *xs: how.all(members, xs), name)
    reduction_name, number = how.op.value, members.number

    def build(*values: Value) -> tuple[Value, ...]:
        sent = [_scaled(x, how.prescale) for x in values]
        ys = ops.all_reduce.all(*sent, reduction=reduction_name, group=number)
        return tuple([_scaled(y, how.postscale) for y in ys])

    return _emitted("HorovodAllreduce", tensors, build, name)


def _scaled(x: Value, factor: float) -> Value:
    """A value times a factor; products of 16-bit floats are rounded once."""
    if factor == 1.0:
        return x
    wide = ops.cast(x, dtype=float32) if x.dtype.size == 2 else x
    y = wide * ops.declaration.constant_of(factor, wide.dtype)
    return ops.cast(y, dtype=x.dtype) if wide is not x else y


def _emitted(op_type: str, tensors: Sequence[Any], build: Any, name: str | None) -> list[Any]:
    """The outputs of an operation that `build` adds to the graph."""
    xs = [convert_to_tensor(t) for t in tensors]
    with name_scope(name, op_type, xs) as scope:
        return list(get_default_graph().emit(op_type, xs, build, name=scope).outputs)


def _on_arrays(
    op_type: str, tensors: Sequence[Any], work: Callable[..., Any], name: str | None
) -> list[Any]:
    """The outputs, shaped like the inputs, of a collective on arrays; without gradients."""
    xs = [convert_to_tensor(t) for t in tensors]
    shapes = [_shape_of(x, i) for i, x in enumerate(xs)]
    op = host_function(op_type, once(work), xs, [x.dtype for x in xs], shapes, name)
    return list(op.outputs)


def _shape_of(x: Tensor, position: int) -> Any:
    """The shape of an input, as `host_function` takes it for a result."""
    if x.shape.ndims is None:
        return None
    return [(position, axis) if n is None else n for axis, n in enumerate(x.shape.as_list())]


def _broadcast(tensor: Any, root_rank: int, name: str | None, process_set: ProcessSet) -> Any:
    members = process_set.group
    root = reduction.root_index(members, root_rank, "broadcast")

    def build(x: Value) -> tuple[Value, ...]:
        return ops.broadcast_from.all(x, root=root, group=members.number, gradient="mean")

    return _emitted("HorovodBroadcast", [tensor], build, name)[0]


def _of_rows(x: Tensor, op: Operation) -> Sequence[Tensor]:
    """The outputs of a collective, the first of which has rows like those of `x`."""
    if x.shape.ndims:
        op.outputs[0].set_shape([None, *x.shape.as_list()[1:]])
    return op.outputs


def _gather(tensor: Any, name: str | None, process_set: ProcessSet) -> Any:
    x, rules = convert_to_tensor(tensor), Movement(process_set)
    op = host_function(
        "HorovodAllgather", rules.gather, [x], [x.dtype], [None], name, rules.gather_vjp,
        alike=False,
    )  # fmt: skip
    return _of_rows(x, op)[0]


def _exchange(tensor: Any, splits: Any, name: str | None, process_set: ProcessSet) -> Any:
    x, rules = convert_to_tensor(tensor), Movement(process_set)
    xs = [x] if splits is None else [x, convert_to_tensor(splits)]
    dtypes = [x.dtype, as_dtype("int32") if splits is None else xs[1].dtype]
    op = host_function(
        "HorovodAlltoall", rules.exchange(dtypes[1].ir), xs, dtypes, [None, [process_set.size()]],
        name, rules.exchange_vjp, alike=False,
    )  # fmt: skip
    rows, counts = _of_rows(x, op)
    return rows if splits is None else (rows, counts)


def _scatter(
    tensor: Any, compression: type[Compressor], op: Any, name: str | None, process_set: ProcessSet,
    prescale_factor: float, postscale_factor: float, device_dense: str,
) -> Any:  # fmt: skip
    chosen: Op = reduction_of(op, None, "reducescatter")
    how = Reduction(chosen, prescale_factor, postscale_factor)
    x, ctx = compression.compress(convert_to_tensor(tensor))
    rules = Movement(process_set)
    scattered = host_function(
        "HorovodReducescatter", rules.scatter(how), [x], [x.dtype], [None], name,
        rules.scatter_vjp(how), alike=False,
    )  # fmt: skip
    return compression.decompress(_of_rows(x, scattered)[0], ctx)


def _functions(name: str, work: Callable[..., Any], together: bool = False) -> list[Any]:
    """The forms of a collective; `work` takes one tensor, or several together."""

    def perform(form: Form, tensors: Sequence[Any], **options: Any) -> Any:
        every = work(tensors, **options) if together else [work(x, **options) for x in tensors]
        return every if form.grouped else every[0]

    return functions(TENSORFLOW, name, perform)


allreduce, grouped_allreduce = _functions("allreduce", _reduce, together=True)
reducescatter, grouped_reducescatter = _functions("reducescatter", _scatter)
allgather, grouped_allgather = _functions("allgather", _gather)
(broadcast,) = _functions("broadcast", _broadcast)
(alltoall,) = _functions("alltoall", _exchange)


def join(device: int = -1) -> Any:
    """A tensor whose evaluation declares that this rank has no more data; the last rank to join.

    See `weft.horovod.torch.join`.

    Args:
        device: has no effect.
    """
    del device

    def work() -> Array:
        return np.array(basics.join(), np.int32)

    return host_function("HorovodJoin", once(work), [], ["int32"], [[]]).outputs[0]


def broadcast_variables(variables: Sequence[Any], root_rank: int) -> Operation:
    """An operation that broadcasts one rank's variables.

    Args:
        variables: variables of the default graph.
        root_rank: the rank in the job that sends.
    """
    return group(*[v.assign(broadcast(v.read_value(), root_rank)) for v in variables])


def broadcast_global_variables(root_rank: int) -> Operation:
    """An operation that broadcasts one rank's values of all global variables.

    Args:
        root_rank: the rank in the job that sends.
    """
    return broadcast_variables(global_variables(), root_rank)


def broadcast_object(
    obj: Any, root_rank: int = 0, session: Any = None, name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Any:  # fmt: skip
    """Broadcast one rank's nested structure of arrays, numbers and strings, immediately.

    Args:
        obj: what is sent; other ranks' are ignored.
        root_rank: the rank in the job that sends.
        session: ignored.
        name: ignored.
        process_set: the ranks that take part.
    """
    objects = [obj]
    broadcast_object_list(objects, root_rank, process_set.group)
    return map_structure(_plain, objects[0])


@arguments_of(broadcast_object)
def broadcast_object_fn(
    root_rank: int = 0, session: Any = None, name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Callable[[Any], Any]:  # fmt: skip
    """`broadcast_object` as a function of the object."""
    return lambda obj: broadcast_object(obj, root_rank, session, name, process_set)


def allgather_object(
    obj: Any,
    session: Any = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> list[Any]:
    """Gather all ranks' nested structures, immediately.

    Args:
        obj: what this rank contributes.
        session: ignored.
        name: ignored.
        process_set: the ranks that take part.
    """
    every: list[Any] = [None] * process_set.size()
    all_gather_object(every, obj, process_set.group)
    return [map_structure(_plain, each) for each in every]


def _plain(x: Any) -> Any:
    return np.asarray(x) if isinstance(x, Handle) else x


__all__ = [
    "allgather", "allgather_object", "allreduce", "alltoall", "broadcast",
    "broadcast_global_variables", "broadcast_object", "broadcast_object_fn", "broadcast_variables",
    "grouped_allgather", "grouped_allreduce", "grouped_reducescatter", "join", "reducescatter",
]  # fmt: skip

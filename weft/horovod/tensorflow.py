"""Horovod for TensorFlow 1 graphs: programs written for `horovod.tensorflow` change their import.

>>> import weft.tf1 as tf
>>> import weft.horovod.tensorflow as hvd
>>> hvd.init()
>>> tf.reset_default_graph()
>>> w = tf.Variable([1.0, 2.0])
>>> loss = tf.reduce_sum(w * w)
>>> optimizer = hvd.DistributedOptimizer(tf.train.GradientDescentOptimizer(0.5))
>>> train = optimizer.minimize(loss)
>>> with tf.Session() as session:
...     session.run(tf.global_variables_initializer())
...     session.run(hvd.broadcast_global_variables(0))
...     session.run(train)
...     session.run(w).tolist()
[0.0, 0.0]
>>> hvd.shutdown()
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import ops
from weft.horovod.basics import (
    Average,
    Compression,
    Max,
    Min,
    Product,
    Sum,
    init,
    is_initialized,
    local_rank,
    local_size,
    rank,
    shutdown,
    size,
)
from weft.horovod.reduction import reduction_of
from weft.ir.dtype import DType
from weft.ir.node import Value
from weft.tf1.control.dependency import group
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.graph import get_default_graph, name_scope
from weft.tf1.framework.indexed_slices import IndexedSlices
from weft.tf1.framework.tensor import Operation
from weft.tf1.train.optimizer.base import Optimizer
from weft.tf1.variable.variable_list import global_variables


def allreduce(
    tensor: Any, average: bool | None = None, name: str | None = None,
    compression: DType | None = Compression.none, op: Any = None,
) -> Any:  # fmt: skip
    """A tensor: the reduction of all ranks' tensors, their mean unless `op` says otherwise."""
    return _reduced([tensor], reduction_of(op, average).value, compression, name)[0]


def broadcast(tensor: Any, root_rank: int, name: str | None = None) -> Any:
    """A tensor: that of one rank."""

    def build(x: Value) -> tuple[Value, ...]:
        return ops.broadcast_from.all(x, root=root_rank)

    return _emitted("HorovodBroadcast", [tensor], build, name)[0]


def _emitted(kind: str, tensors: Sequence[Any], build: Any, name: str | None) -> list[Any]:
    """The outputs of an operation that `build` adds to the graph."""
    given = [convert_to_tensor(t) for t in tensors]
    with name_scope(name, kind, given) as scope:
        return list(get_default_graph().emit(kind, given, build, name=scope).outputs)


def broadcast_variables(variables: Sequence[Any], root_rank: int) -> Operation:
    """An operation that gives variables one rank's values."""
    return group(*[v.assign(broadcast(v.read_value(), root_rank)) for v in variables])


def broadcast_global_variables(root_rank: int) -> Operation:
    """An operation that gives all variables one rank's values."""
    return broadcast_variables(global_variables(), root_rank)


def _reduced(
    tensors: Sequence[Any], reduction: str, compression: DType | None, name: str | None = None
) -> list[Any]:
    """The reductions of several tensors, all together."""

    def build(*values: Value) -> tuple[Value, ...]:
        if compression is None:
            return ops.all_reduce.all(*values, reduction=reduction)
        low = [ops.cast(x, dtype=compression) for x in values]
        found = ops.all_reduce.all(*low, reduction=reduction)
        return tuple([ops.cast(y, dtype=x.dtype) for x, y in zip(values, found, strict=True)])

    return _emitted("HorovodAllreduce", tensors, build, name)


class DistributedOptimizer(Optimizer):
    """An optimizer whose gradients are the means over all ranks.

    Args:
        compression: `hvd.Compression.fp16` has gradients travel as float16.
        op: `hvd.Average` or `hvd.Sum`.
    """

    def __init__(
        self, optimizer: Optimizer, name: str | None = None, use_locking: bool = False,
        compression: DType | None = Compression.none, op: Any = Average,
    ) -> None:  # fmt: skip
        super().__init__(use_locking, name or f"Distributed{optimizer.get_name()}")
        self._optimizer = optimizer
        self._compression = compression
        self._reduction = reduction_of(op, None).value

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """Those of the optimizer, reduced over ranks; row-sparse ones become dense."""
        pairs = self._optimizer.compute_gradients(*args, **kwargs)
        dense = [convert_to_tensor(g) if isinstance(g, IndexedSlices) else g for g, _ in pairs]
        present = [g for g in dense if g is not None]
        found = iter(_reduced(present, self._reduction, self._compression) if present else ())
        reduced = [None if g is None else next(found) for g in dense]
        return [(g, v) for g, (_, v) in zip(reduced, pairs, strict=True)]

    def apply_gradients(self, *args: Any, **kwargs: Any) -> Operation:
        """That of the optimizer."""
        return self._optimizer.apply_gradients(*args, **kwargs)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """That of the optimizer."""
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self) -> list[str]:
        """Those of the optimizer."""
        return self._optimizer.get_slot_names()

    def variables(self) -> list[Any]:
        """Those of the optimizer."""
        return self._optimizer.variables()


__all__ = [
    "Average", "Compression", "DistributedOptimizer", "Max", "Min", "Product", "Sum", "allreduce",
    "broadcast", "broadcast_global_variables", "broadcast_variables", "init", "is_initialized",
    "local_rank", "local_size", "rank", "shutdown", "size",
]  # fmt: skip

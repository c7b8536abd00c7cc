"""`DistributedOptimizer` for graphs, and the hook that broadcasts initial variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft import ops
from weft.collectives.reduce_op import ReduceOp
from weft.errors import ArgumentError
from weft.horovod.basics import Average
from weft.horovod.compression import Compressor
from weft.horovod.process_set import ProcessSet, global_process_set
from weft.horovod.reduction import Adasum, Reduction, reduction_of
from weft.horovod.tensorflow.aggregation import Aggregation, checked_passes
from weft.horovod.tensorflow.collective import broadcast_global_variables, reduced
from weft.horovod.tensorflow.compression import Compression
from weft.horovod.tensorflow.start import check_start
from weft.ir.node import Value
from weft.ops.communication.shard import gather_parts
from weft.tf1.control.branch import cond
from weft.tf1.control.dependency import group, identity, with_dependencies
from weft.tf1.elementwise.arithmetic import equal, floormod
from weft.tf1.framework.default_graph import control_dependencies
from weft.tf1.framework.dtypes import int64
from weft.tf1.framework.graph import get_default_graph, name_scope
from weft.tf1.framework.indexed_slices import IndexedSlices
from weft.tf1.framework.tensor import Operation
from weft.tf1.indexing.slicing import where
from weft.tf1.train.hook.run_hook import SessionRunHook
from weft.tf1.train.optimizer.base import Optimizer
from weft.tf1.variable.variable import Variable


class DistributedOptimizer(Optimizer):
    """An optimizer whose gradients are first reduced over all ranks.

    Args:
        optimizer: an optimizer of `tf.train`.
        name: of the optimizer; by default derived from that of `optimizer`.
        use_locking, device_dense, device_sparse: ignored.
        compression: `hvd.Compression.fp16` sends gradients as float16.
        sparse_as_dense: whether `IndexedSlices` are reduced as dense gradients. If not, ranks
            exchange their rows if the graph knows their number (the same on all ranks), for a sum
            or an average without compression and predivide factor.
        backward_passes_per_step: the number of runs per update. Until then, gradients accumulate in
            local variables (`tf.local_variables_initializer`), other variables do not change, and
            ranks exchange nothing; a global step counts all runs. With `hvd.Adasum`, every run
            updates, and that many updates are combined.
        op: `hvd.Average`, `hvd.Sum`, or `hvd.Adasum`: each rank applies its own update, and the
            changes of each variable are combined.
        gradient_predivide_factor: an average divides by this factor before the sum, and by
            size / factor after it.
        average_aggregated_gradients: whether gradients are averaged over these runs instead of
            summed.
        num_groups, groups: ignored: all gradients are sent together.
        process_set: the ranks that take part.

    Raises:
        ArgumentError: `backward_passes_per_step` is not a positive integer, a factor without
            `hvd.Average`, or averages over runs with `hvd.Adasum`.

    A session's first update raises `DistributedError` if ranks have different variables; run
    `hvd.broadcast_global_variables` before.

    >>> import weft.horovod.tensorflow as hvd
    >>> import weft.tf1 as tf
    >>> hvd.init()
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     w = tf.Variable(4.0)
    ...     sgd = tf.train.GradientDescentOptimizer(0.5)
    ...     train = hvd.DistributedOptimizer(sgd, backward_passes_per_step=2).minimize(w)
    ...     session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    ...     for _ in range(4):
    ...         session.run(train)
    ...         print(session.run(w))
    [None, None]
    4.0
    3.0
    3.0
    2.0
    >>> hvd.shutdown()
    """

    def __init__(
        self, optimizer: Optimizer, name: str | None = None, use_locking: bool = False,
        device_dense: str = "", device_sparse: str = "",
        compression: type[Compressor] = Compression.none, sparse_as_dense: bool = False,
        backward_passes_per_step: int = 1, op: Any = Average,
        gradient_predivide_factor: float = 1.0, average_aggregated_gradients: bool = False,
        num_groups: int = 0, groups: Any = None, process_set: ProcessSet = global_process_set,
    ) -> None:  # fmt: skip
        super().__init__(use_locking, name or f"Distributed{optimizer.get_name()}")
        passes = checked_passes(backward_passes_per_step)
        self._how = gradient_reduction(op, compression, gradient_predivide_factor, process_set)
        self._refuse_average(average_aggregated_gradients)
        self._optimizer = optimizer
        self._process_set = process_set
        self._sparse_as_dense = sparse_as_dense
        self._passes = passes
        self._sums = Aggregation(self._name, passes, average_aggregated_gradients, sparse_as_dense)

    def _refuse_average(self, averages: bool) -> None:
        if averages and self._how.op is Adasum:
            raise ArgumentError.here(
                "DistributedOptimizer: expected average_aggregated_gradients=False with "
                "op=hvd.Adasum, whose gradients are not added up"
            )

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """The optimizer's gradients, reduced over ranks; see `backward_passes_per_step`."""
        pairs = self._optimizer.compute_gradients(*args, **kwargs)
        if self._how.op is Adasum:
            return pairs
        shapes = [v.shape for g, v in pairs if g is not None]

        def reduce(gradients: list[Any]) -> list[Any]:
            if not gradients or not self._process_set.included():
                return gradients
            return reduced_gradients(
                gradients, shapes, self._how, self._process_set, self._sparse_as_dense
            )

        if self._passes > 1:
            return self._sums.gradients(pairs, reduce)
        reduced = iter(reduce([g for g, _ in pairs if g is not None]))
        return [(None if g is None else next(reduced), v) for g, v in pairs]

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Operation:
        """The optimizer's update, in runs that update; Adasum then combines the changes.

        Raises:
            ArgumentError: `backward_passes_per_step` is above 1, and gradients are not from one
                call of `compute_gradients`.
        """
        pairs = list(grads_and_vars)
        variables = [v for g, v in pairs if g is not None]

        def apply() -> Operation:
            return self._optimizer.apply_gradients(pairs, global_step, name)

        if self._how.op is Adasum and self._process_set.included():
            update = self._combined(apply, variables)
        elif self._how.op is not Adasum and self._passes > 1:
            own = getattr(self._optimizer, "iterations", None)  # Keras optimizers have it
            update = self._sums.applied(pairs, apply, own if global_step is None else global_step)
        else:
            update = apply()
        check_start(update, variables, self._process_set)
        return update

    def _combined(self, apply: Callable[[], Operation], variables: Sequence[Any]) -> Operation:
        """An update, then Adasum of the ranks' changes since the last combination."""
        starts, combines = self._starts(variables)
        with control_dependencies(starts):
            update = apply()
        with control_dependencies([update]):
            values = [v.read_value() for v in variables]
        changes = [x - start for x, start in zip(values, starts, strict=True)]

        def reduce() -> list[Any]:
            return reduced(changes, self._how, None, self._process_set)

        if combines is None:
            combined = [s + c for s, c in zip(starts, reduce(), strict=True)]
        else:
            rows = zip(
                cond(combines, reduce, lambda: changes, strict=True), starts, values, strict=True
            )
            combined = [where(combines, start + c, x) for c, start, x in rows]
        return group(*[v.assign(x) for v, x in zip(variables, combined, strict=True)])

    def _starts(self, variables: Sequence[Any]) -> tuple[list[Any], Any]:
        """The values at the last combination, and whether this run combines (`None`: every run)."""
        values = [v.read_value() for v in variables]
        if self._passes == 1:
            return [identity(x) for x in values], None
        with control_dependencies(None), name_scope(""):
            count = Variable(0, trainable=False, name=f"{self._name}/step_count", dtype=int64)
            slots = [self.slot(v, "delta_start", "delta_start") for v in variables]
        before = floormod(count.read_value(), self._passes)
        first, last = equal(before, 0), equal(before, self._passes - 1)
        pairs = zip(slots, values, strict=True)
        starts = [slot.assign(where(first, x, slot.read_value())) for slot, x in pairs]
        return starts, with_dependencies([count.assign_add(1)], last)

    def get_slot(self, var: Any, name: str) -> Any:
        """The optimizer's slot; Adasum over several runs has its own, `delta_start`."""
        own = super().get_slot(var, name)
        return self._optimizer.get_slot(var, name) if own is None else own

    def get_slot_names(self) -> list[str]:
        """The optimizer's slot names, and those of Adasum."""
        return [*super().get_slot_names(), *self._optimizer.get_slot_names()]

    def variables(self) -> list[Any]:
        """The optimizer's variables."""
        return self._optimizer.variables()


def gradient_reduction(
    op: Any, compression: type[Compressor], predivide: float, process_set: ProcessSet
) -> Reduction:
    """The reduction that the arguments of a `DistributedOptimizer` name.

    Raises:
        ArgumentError: `op` is not a reduction, or a predivide factor without `hvd.Average`.
    """
    chosen = reduction_of(op, None, "DistributedOptimizer")
    if predivide == 1.0:
        return Reduction(chosen, compression=compression)
    if chosen is not ReduceOp.AVG:
        raise ArgumentError.here(
            "DistributedOptimizer: expected op=hvd.Average with a gradient_predivide_factor, got "
            f"{chosen}"
        )
    behind = predivide / process_set.size()
    return Reduction(ReduceOp.SUM, 1.0 / predivide, behind, compression)


class BroadcastGlobalVariablesHook(SessionRunHook):
    """Broadcasts one rank's variables to all when a session has been created.

    For `tf.train.MonitoredTrainingSession(hooks=[hvd.BroadcastGlobalVariablesHook(0)])`. A program
    with a plain session calls `hook.begin()` before it creates the session, and
    `hook.after_create_session(session, None)` after the initializer.

    Args:
        root_rank: the rank in the job that sends.
        device: ignored.
    """

    def __init__(self, root_rank: int, device: str = "") -> None:
        self._root_rank = root_rank
        self._op: Operation | None = None

    def begin(self) -> None:
        """Add the operation to the default graph."""
        self._op = broadcast_global_variables(self._root_rank)

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Run the broadcast."""
        if self._op is None:
            raise ArgumentError.here(
                "BroadcastGlobalVariablesHook: call begin() before the session is made"
            )
        session.run(self._op)


__all__ = ["BroadcastGlobalVariablesHook", "DistributedOptimizer"]


def reduced_gradients(
    gradients: Sequence[Any], shapes: Sequence[Any], how: Reduction, process_set: ProcessSet,
    sparse_as_dense: bool,
) -> list[Any]:  # fmt: skip
    """Reduce gradients over ranks; `IndexedSlices` stay rows if ranks exchange rows.

    Args:
        shapes: shapes of the variables.
    """
    pairs = zip(gradients, shapes, strict=True)
    by_rows = [
        not sparse_as_dense and _travels_as_rows(g, shape, how, process_set.size())
        for g, shape in pairs
    ]
    dense = [g for g, rows in zip(gradients, by_rows, strict=True) if not rows]
    summed = iter(reduced(dense, how, None, process_set) if dense else ())
    return [
        _gathered(g, how, process_set) if rows else next(summed)
        for g, rows in zip(gradients, by_rows, strict=True)
    ]


def _travels_as_rows(g: Any, shape: Any, how: Reduction, ranks: int) -> bool:
    """Whether ranks exchange rows: if their total number is known and at most the variable's."""
    if not isinstance(g, IndexedSlices) or how != Reduction(how.op):
        return False  # scaled or compressed
    if how.op not in (ReduceOp.AVG, ReduceOp.SUM):
        return False
    if not (g.values.shape.is_fully_defined() and g.indices.shape.is_fully_defined()):
        return False
    return (g.indices.shape.num_elements() or 0) * ranks <= (shape.as_list()[0] or 0)


def _gathered(g: IndexedSlices, how: Reduction, process_set: ProcessSet) -> IndexedSlices:
    """All ranks' rows in rank order; divided by the number of ranks for an average."""
    size, number = process_set.size(), process_set.group.number
    rows, *rest = [int(d or 0) for d in g.values.shape.as_list()]
    shapes = ((rows * size,), (rows * size, *rest))

    def build(indices: Value, values: Value) -> tuple[Value, ...]:
        places, summed, _ = gather_parts.all(indices, values, shapes=shapes, group=number)
        mean = how.op is ReduceOp.AVG
        return places, summed / ops.declaration.constant_of(size, summed.dtype) if mean else summed

    inputs = [g.indices, g.values]
    with name_scope(None, "HorovodAllgather", inputs) as scope:
        op = get_default_graph().emit("HorovodAllgather", inputs, build, name=scope)
    return IndexedSlices(op.outputs[1], op.outputs[0], g.dense_shape)

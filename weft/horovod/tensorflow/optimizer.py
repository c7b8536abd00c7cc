"""`DistributedOptimizer` for graphs, and the hook that broadcasts initial variables."""

from __future__ import annotations

from typing import Any

from weft.distributed.reduce_op import ReduceOp
from weft.errors import ArgumentError
from weft.horovod.basics import Average, Compression
from weft.horovod.process_set import ProcessSet, global_process_set
from weft.horovod.reduction import Adasum, Reduction, reduction_of
from weft.horovod.tensorflow.collective import broadcast_global_variables, reduced
from weft.horovod.tensorflow.sparse import reduced_gradients
from weft.horovod.tensorflow.start import check_start
from weft.ir.dtype import DType
from weft.ops.base import at_user_line
from weft.tf1.control.dependency import group, identity
from weft.tf1.framework.graph import control_dependencies
from weft.tf1.framework.tensor import Operation
from weft.tf1.train.hook.run_hook import SessionRunHook
from weft.tf1.train.optimizer.base import Optimizer


class DistributedOptimizer(Optimizer):
    """An optimizer whose gradients are first reduced over all ranks.

    Args:
        device_dense, device_sparse: ignored.
        compression: `hvd.Compression.fp16` sends gradients as float16.
        sparse_as_dense: whether `IndexedSlices` are reduced as dense gradients. If not, ranks
            exchange their rows where the graph knows how many there are (the same on all ranks);
            with a sum or an average, uncompressed and without a predivide factor.
        backward_passes_per_step: must be 1.
        op: `hvd.Average`, `hvd.Sum`, or `hvd.Adasum`: each rank applies its own update, and the
            changes of each variable are combined.
        gradient_predivide_factor: an average divides by this factor before the sum, and by
            size / factor after it.
        average_aggregated_gradients, num_groups, groups: ignored: all gradients travel together.
        process_set: the ranks that take part.

    Raises:
        ArgumentError: several backward passes per step, or a factor without `hvd.Average`.

    A session's first update raises `DistributedError` if ranks have different variables; run
    `hvd.broadcast_global_variables` before.
    """

    def __init__(
        self, optimizer: Optimizer, name: str | None = None, use_locking: bool = False,
        device_dense: str = "", device_sparse: str = "",
        compression: DType | None = Compression.none, sparse_as_dense: bool = False,
        backward_passes_per_step: int = 1, op: Any = Average,
        gradient_predivide_factor: float = 1.0, average_aggregated_gradients: bool = False,
        num_groups: int = 0, groups: Any = None, process_set: ProcessSet = global_process_set,
    ) -> None:  # fmt: skip
        super().__init__(use_locking, name or f"Distributed{optimizer.get_name()}")
        if backward_passes_per_step != 1:
            raise ArgumentError(
                "DistributedOptimizer: expected backward_passes_per_step=1, as gradients are not "
                f"added up over several runs of a graph, got {backward_passes_per_step}"
                f"{at_user_line()}"
            )
        self._optimizer = optimizer
        self._process_set = process_set
        self._sparse_as_dense = sparse_as_dense
        self._how = _reduction(op, compression, gradient_predivide_factor, process_set)

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """The optimizer's gradients, reduced over ranks."""
        pairs = self._optimizer.compute_gradients(*args, **kwargs)
        present = [g for g, _ in pairs if g is not None]
        if not present or self._how.op is Adasum or not self._process_set.included():
            return pairs
        shapes = [v.shape for g, v in pairs if g is not None]
        found = iter(
            reduced_gradients(present, shapes, self._how, self._process_set, self._sparse_as_dense)
        )
        return [(None if g is None else next(found), v) for g, v in pairs]

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Operation:
        """The optimizer's update; with Adasum, changes are combined after it."""
        pairs = list(grads_and_vars)
        variables = [v for g, v in pairs if g is not None]
        if self._how.op is not Adasum:
            update = self._optimizer.apply_gradients(pairs, global_step, name)
            check_start(update, variables, self._process_set)
            return update
        before = [identity(v.read_value()) for v in variables]
        with control_dependencies(before):
            update = self._optimizer.apply_gradients(pairs, global_step, name)
        check_start(update, variables, self._process_set)
        with control_dependencies([update]):
            changes = [v.read_value() - old for v, old in zip(variables, before, strict=True)]
        found = reduced(changes, self._how, None, self._process_set)
        rows = zip(variables, before, found, strict=True)
        return group(*[v.assign(old + change) for v, old, change in rows])

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's slot."""
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self) -> list[str]:
        """Those of the optimizer."""
        return self._optimizer.get_slot_names()

    def variables(self) -> list[Any]:
        """Those of the optimizer."""
        return self._optimizer.variables()


def _reduction(
    op: Any, compression: DType | None, predivide: float, process_set: ProcessSet
) -> Reduction:
    chosen = reduction_of(op, None, "DistributedOptimizer")
    if predivide == 1.0:
        return Reduction(chosen, compression)
    if chosen is not ReduceOp.AVG:
        raise ArgumentError(
            "DistributedOptimizer: expected op=hvd.Average with a gradient_predivide_factor, got "
            f"{chosen}{at_user_line()}"
        )
    behind = predivide / process_set.size()
    return Reduction(ReduceOp.SUM, compression, 1.0 / predivide, behind)


class BroadcastGlobalVariablesHook(SessionRunHook):
    """Broadcasts one rank's variables to all when a session has been created.

    For `tf.train.MonitoredTrainingSession(hooks=[hvd.BroadcastGlobalVariablesHook(0)])`. A program
    with a plain session calls `hook.begin()` before it makes the session, and
    `hook.after_create_session(session, None)` after the initializer.

    Args:
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
            raise ArgumentError(
                "BroadcastGlobalVariablesHook: call begin() before the session is made"
                f"{at_user_line()}"
            )
        session.run(self._op)

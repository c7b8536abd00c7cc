"""`tf.train.replica_device_setter`: variables on parameter servers, the rest on a worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from weft.cluster.spec import ClusterSpec
from weft.errors import DTypeError
from weft.ir.device import DeviceName
from weft.tf1 import logging
from weft.tf1.framework.graph import fail
from weft.tf1.framework.tensor import Operation

__all__ = ["replica_device_setter"]

STANDARD_PS_OPS: Final = (
    "Variable", "VariableV2", "AutoReloadVariable", "MutableHashTable", "MutableHashTableV2",
    "MutableHashTableOfTensors", "MutableHashTableOfTensorsV2", "MutableDenseHashTable",
    "MutableDenseHashTableV2", "VarHandleOp", "ResourceConditionalAccumulator",
)  # fmt: skip
"""Types of operations that keep state."""

Strategy = Callable[[Operation], int]


class RoundRobin:
    """The next task each time.

    Args:
        num_tasks: how many there are.
    """

    def __init__(self, num_tasks: int) -> None:
        self._tasks, self._next = num_tasks, 0

    def __call__(self, op: Operation) -> int:
        """The task for an operation."""
        chosen, self._next = self._next, (self._next + 1) % self._tasks
        return chosen


def replica_device_setter(
    ps_tasks: int = 0, ps_device: str = "/job:ps", worker_device: str = "/job:worker",
    merge_devices: bool = True, cluster: Any = None, ps_ops: Sequence[str] | None = None,
    ps_strategy: Strategy | None = None,
) -> Callable[[Operation], str] | None:  # fmt: skip
    """A function for `tf.device` that puts variables on parameter servers, in turns.

    Args:
        ps_tasks: the number of parameter servers; that of `cluster`, if it is given.
        ps_device: the device of what has state.
        worker_device: the device of all other operations.
        merge_devices: what `tf.device` inside says is kept, and completed; otherwise it is all.
        cluster: a `tf.train.ClusterSpec`, a dict of addresses by job, or a `ClusterDef`.
        ps_ops: types of operations with state; those of variables and tables by default.
        ps_strategy: a function from such an operation to the number of a task; in turns by default.

    Returns:
        The function, or `None` without parameter servers, which leaves devices as they are.

    Raises:
        DTypeError: `ps_strategy` is no function, or `cluster` describes none.

    Example:
        >>> import weft.tf1 as tf
        >>> cluster = {"ps": ["a:2222", "b:2222"], "worker": ["c:2222"]}
        >>> setter = tf.train.replica_device_setter(cluster=cluster)
        >>> with tf.Graph().as_default(), tf.device(setter):
        ...     v, w = tf.Variable([1.0]), tf.Variable([2.0])
        ...     v.device, w.device, (v + w).device
        ('/job:ps/task:0', '/job:ps/task:1', '/job:worker')
    """
    server, worker = DeviceName.parse(ps_device or ""), DeviceName.parse(worker_device or "")
    if cluster is not None:
        jobs = ClusterSpec(cluster).as_dict()
        ps_tasks = len(jobs.get(server.job or "", ()))
    if ps_tasks == 0:
        return None
    if not merge_devices:
        logging.warning("replica_device_setter: merge_devices=False is for old programs only.")
    chosen = RoundRobin(ps_tasks) if ps_strategy is None else ps_strategy
    if not callable(chosen):
        text = f"replica_device_setter: expected a function as ps_strategy, got {ps_strategy!r}"
        raise fail(DTypeError, text)
    kinds = frozenset(STANDARD_PS_OPS if ps_ops is None else ps_ops)

    def device(op: Operation) -> str:
        if not merge_devices and op.device:
            return op.device
        told = DeviceName.parse(op.device or "")
        if not ps_device or op.type not in kinds:
            return str(worker.merged(told))
        found = server
        if server.job is not None and told.job in (None, server.job):
            found = server.merged(DeviceName(task=int(chosen(op))))
        return str(found.merged(told))

    return device

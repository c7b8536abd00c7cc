"""Strategies for `tf.train.replica_device_setter`: which server gets a variable."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from weft.errors import GraphError
from weft.ir.shape import is_static, known, size
from weft.tf1.framework.dtypes import as_dtype
from weft.tf1.framework.tensor import Operation
from weft.tf1.framework.tensor_shape import as_shape

__all__ = ["GreedyLoadBalancingStrategy", "RandomStrategy", "byte_size_load_fn"]


class GreedyLoadBalancingStrategy:
    """The task with the least load so far.

    Args:
        num_tasks: the number of parameter servers.
        load_fn: the load of an operation, such as `byte_size_load_fn`.

    Example:
        >>> import weft.tf1 as tf
        >>> from weft.tf1.contrib import training
        >>> by_size = training.GreedyLoadBalancingStrategy(2, training.byte_size_load_fn)
        >>> setter = tf.train.replica_device_setter(2, ps_strategy=by_size)
        >>> with tf.Graph().as_default(), tf.device(setter):
        ...     [tf.Variable(tf.zeros([n])).device for n in (8, 2, 2)]
        ['/job:ps/task:0', '/job:ps/task:1', '/job:ps/task:1']
    """

    def __init__(self, num_tasks: int, load_fn: Callable[[Operation], float]) -> None:
        self._loads, self._load_of = [0.0] * num_tasks, load_fn

    def __call__(self, op: Operation) -> int:
        """The task for an operation."""
        task = self._loads.index(min(self._loads))
        self._loads[task] += self._load_of(op)
        return task


class RandomStrategy:
    """A task that follows from the operation's name, the same in every process.

    Args:
        num_ps_tasks: the number of parameter servers.
        seed: other numbers give other tasks.
    """

    def __init__(self, num_ps_tasks: int, seed: int = 0) -> None:
        self._tasks, self._seed = num_ps_tasks, seed

    def __call__(self, op: Operation) -> int:
        """The task for an operation."""
        name = f"{op.name}_{self._seed}".encode()
        return int(hashlib.md5(name, usedforsecurity=False).hexdigest(), 16) % self._tasks


def byte_size_load_fn(op: Operation) -> int:
    """The size of a variable in bytes; of a table, whose size changes, 1.

    Args:
        op: the operation of a variable or table, which may have no outputs yet.
    """
    try:
        dims = as_shape(op.get_attr("shape")).as_dims()
    except GraphError:
        return 1
    return (size(known(dims)) if is_static(dims) else 1) * as_dtype(op.get_attr("dtype")).size

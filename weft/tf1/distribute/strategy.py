"""Strategies for several devices, of which there is one: what they would divide stays whole."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from weft.errors import ArgumentError
from weft.tf1.framework.graph import fail
from weft.tf1.reduction import reduce_mean, reduce_sum

__all__ = ["MirroredStrategy", "OneDeviceStrategy", "ReduceOp", "Strategy", "get_strategy"]


class ReduceOp:
    """How values of replicas become one."""

    SUM: Final = "SUM"
    MEAN: Final = "MEAN"


class Strategy:
    """Variables, data and steps of one device.

    >>> import weft.tf1 as tf
    >>> strategy = tf.distribute.MirroredStrategy()
    >>> with strategy.scope():
    ...     strategy.num_replicas_in_sync
    1
    """

    num_replicas_in_sync: Final = 1

    @contextlib.contextmanager
    def scope(self) -> Iterator[Strategy]:
        """What is made inside belongs to the strategy."""
        yield self

    def run(self, fn: Callable[..., Any], args: Any = (), kwargs: Any = None) -> Any:
        """What a function returns.

        Args:
            fn: the function.
            args, kwargs: its arguments.
        """
        return fn(*args, **(kwargs or {}))

    experimental_run_v2 = run

    def reduce(self, reduce_op: str, value: Any, axis: int | None = None) -> Any:
        """A value of the only replica, reduced over the axis of examples if it is given.

        Args:
            reduce_op: of `ReduceOp`, in any case.
            value: a tensor.
            axis: of examples.

        Raises:
            ArgumentError: another `reduce_op`.
        """
        kinds = {ReduceOp.SUM: reduce_sum, ReduceOp.MEAN: reduce_mean}
        kind = kinds.get(str(reduce_op).upper())
        if kind is None:
            raise fail(ArgumentError, f"reduce: expected SUM or MEAN, got {reduce_op!r}")
        return value if axis is None else kind(value, axis)

    def experimental_distribute_dataset(self, dataset: Any, options: Any = None) -> Any:
        """The data set.

        Args:
            dataset: a data set.
            options: accepted.
        """
        del options
        return dataset

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """The values of all replicas."""
        return (value,)


class MirroredStrategy(Strategy):
    """The variables of each device alike: there is one.

    Args:
        devices: at most one; that of the machine by default.
        cross_device_ops: accepted.

    Raises:
        ArgumentError: several devices are asked for.
    """

    def __init__(self, devices: Sequence[str] | None = None, cross_device_ops: Any = None) -> None:
        del cross_device_ops
        if devices is not None and len(devices) > 1:
            text = f"expected one device, got {list(devices)}: start ranks by `weft launch -n N`"
            raise fail(ArgumentError, f"MirroredStrategy: {text}")


class OneDeviceStrategy(Strategy):
    """One device.

    Args:
        device: accepted.
    """

    def __init__(self, device: str) -> None:
        self.device = device


def get_strategy() -> Strategy:
    """The strategy of one device."""
    return Strategy()

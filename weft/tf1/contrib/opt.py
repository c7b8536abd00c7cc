"""`tf.contrib.opt`: Adam for tables of which a step uses a few rows, and averages of weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.errors import StateError
from weft.tf1.control.dependency import group
from weft.tf1.framework.default_graph import control_dependencies
from weft.tf1.framework.graph import fail
from weft.tf1.framework.tensor import Operation
from weft.tf1.train.moving_averages import ExponentialMovingAverage
from weft.tf1.train.optimizer.adam import AdamOptimizer
from weft.tf1.train.optimizer.base import Optimizer
from weft.tf1.train.saver import Saver
from weft.tf1.variable.variable import Variable
from weft.tf1.variable.variable_list import global_variables

__all__ = ["LazyAdamOptimizer", "MovingAverageOptimizer"]


class LazyAdamOptimizer(AdamOptimizer):
    """Adam that leaves alone the rows of a table that have no gradient."""

    _lazy = True


class MovingAverageOptimizer(Optimizer):
    """An optimizer that also keeps moving averages of what it changes.

    Args:
        opt: the optimizer.
        average_decay: the fraction of the old average to keep.
        num_updates: the number of updates; the decay is at most (1 + n) / (10 + n).
        sequential_update: averages follow the variables' updates; else they read before or after.

    >>> import weft.tf1 as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     w = tf.Variable(8.0)
    ...     plain = tf.train.GradientDescentOptimizer(1.0)
    ...     averaged = tf.contrib.opt.MovingAverageOptimizer(plain, 0.5)
    ...     step = averaged.minimize(w * 4.0)
    ...     session.run(tf.global_variables_initializer())
    ...     session.run(step)
    ...     session.run([w, averaged._ema.average(w)])
    [4.0, 6.0]
    """

    def __init__(
        self, opt: Optimizer, average_decay: Any = 0.9999, num_updates: Any = None,
        sequential_update: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(False, type(self).__name__)
        self._optimizer, self._sequential = opt, sequential_update
        self._ema = ExponentialMovingAverage(average_decay, num_updates)
        self._swapped: dict[str, str] | None = None

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Any, Variable]]:
        """The optimizer's."""
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Sequence[tuple[Any, Variable]], global_step: Any = None,
        name: str | None = None,
    ) -> Operation:  # fmt: skip
        """The optimizer's step, and that of the averages."""
        pairs = list(grads_and_vars)
        step = self._optimizer.apply_gradients(pairs, global_step, name)
        changed = [v for g, v in pairs if g is not None]
        with control_dependencies([step] if self._sequential else []):
            moved = self._ema.apply(changed)
        names = [(v.op.name, str(self._ema.average_name(v))) for v in changed]
        self._swapped = dict(names) | {b: a for a, b in names}
        return group(step, moved, name="train_with_avg")

    def get_slot(self, var: Any, name: str) -> Variable | None:
        """The optimizer's."""
        return self._optimizer.get_slot(var, name)

    def get_slot_names(self) -> list[str]:
        """The optimizer's."""
        return self._optimizer.get_slot_names()

    def variables(self) -> list[Variable]:
        """The optimizer's."""
        return self._optimizer.variables()

    def swapping_saver(
        self, var_list: Any = None, name: str = "swapping_saver", **options: Any
    ) -> Saver:
        """A saver of averages under the names of variables, and of these under those of averages.

        Args:
            var_list: variables, or a dict of them by name; all global ones by default.
            name: of its operations.
            options: of `tf.train.Saver`.

        Raises:
            StateError: no step has been made yet, or what belongs to a variable is not listed.
        """
        if self._swapped is None:
            text = "call apply_gradients or minimize before"
            raise fail(StateError, f"MovingAverageOptimizer.swapping_saver: {text}")
        given = global_variables() if var_list is None else var_list
        pairs = given.items() if isinstance(given, Mapping) else [(v.op.name, v) for v in given]
        named = {str(key): v for key, v in pairs}
        swapped = {key: self._swapped.get(key, key) for key in named}
        lacking = sorted(set(swapped.values()) - set(named))
        if lacking:
            text = f"expected {lacking} in var_list, too"
            raise fail(StateError, f"MovingAverageOptimizer.swapping_saver: {text}")
        return Saver({key: named[other] for key, other in swapped.items()}, name=name, **options)

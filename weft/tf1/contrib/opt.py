"""`tf.contrib.opt`: variants of Adam."""

from __future__ import annotations

from typing import Any

from weft import ops
from weft.ops.optimizer.adam import corrected
from weft.ops.optimizer.rule import averaged, over_root
from weft.tf1.train.optimizer.adam import AdamOptimizer
from weft.tf1.train.optimizer.base import Update
from weft.tf1.variable.variable import Variable

__all__ = ["LazyAdamOptimizer", "NadamOptimizer"]


class LazyAdamOptimizer(AdamOptimizer):
    """Adam that leaves alone the rows of a table that have no gradient."""

    _lazy = True


class NadamOptimizer(AdamOptimizer):
    """Adam whose step is taken by the mean of the next step's gradient, if it were this one's."""

    def _update_of(self, var: Variable) -> Update:
        powers = [self._extra[name, var.graph] for name in ("beta1_power", "beta2_power")]

        def update(g: Any, w: Any, m: Any, v: Any, *rates: Any) -> tuple[Any, ...]:
            rate, beta1, beta2, epsilon = rates
            step = corrected(rate, *[ops.read(p.handle) for p in powers])
            m, v = averaged(m, g, 1.0 - beta1), averaged(v, g * g, 1.0 - beta2)
            return w - over_root((g * (1.0 - beta1) + m * beta1) * step, v, epsilon), m, v

        return update

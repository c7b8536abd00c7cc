"""Adadelta (Zeiler, 2012)."""

from __future__ import annotations

from typing import Any

from weft.ir.node import Value
from weft.ops.optimizer.root import adadelta
from weft.tf1.train.optimizer.base import Optimizer, Update
from weft.tf1.variable.variable import Variable


class AdadeltaOptimizer(Optimizer):
    """Steps in units of the parameters: gradients times a quotient of running roots.

    Args:
        learning_rate: a number, a tensor, or a function that returns one.
        rho: the factor of the running means.
        epsilon: added to the means before their roots are taken.
    """

    _kind = "ApplyAdadelta"
    _lazy = True

    def __init__(
        self, learning_rate: Any = 0.001, rho: Any = 0.95, epsilon: Any = 1e-8,
        use_locking: bool = False, name: str = "Adadelta",
    ) -> None:  # fmt: skip
        super().__init__(use_locking, name)
        self._keep(lr=learning_rate, rho=rho, epsilon=epsilon)
        self._fresh = {"accum": None, "accum_update": None}

    def _update_of(self, var: Variable) -> Update:
        def update(
            g: Value, w: Value, square: Value, moved: Value, rate: Value, rho: Value, eps: Value
        ) -> tuple[Value, ...]:
            return adadelta(w, g, square, moved, lr=rate, rho=rho, rest=1.0 - rho, eps=eps).values

        return update

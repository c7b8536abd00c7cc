"""Gradient descent with momentum (Polyak), or Nesterov's."""

from __future__ import annotations

from typing import Any

from weft.ir.node import Value
from weft.ops.optimizer.descent import sgd
from weft.tf1.train.optimizer.base import Optimizer, Update
from weft.tf1.variable.variable import Variable


class MomentumOptimizer(Optimizer):
    """a = momentum * a + gradient; var -= learning_rate * a

    With `use_nesterov`, var -= learning_rate * (gradient + momentum * a) (Sutskever et al., 2013).

    Args:
        learning_rate: a number, a tensor, or a function that returns one.
        momentum: the part of a that stays.
        use_nesterov: whether to look ahead.
    """

    _kind = "ApplyMomentum"
    _lazy = True

    def __init__(
        self, learning_rate: Any, momentum: Any, use_locking: bool = False, name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(use_locking, name)
        self._keep(learning_rate=learning_rate, momentum=momentum)
        self._fresh = {"momentum": None}
        self._use_nesterov = use_nesterov

    def _update_of(self, var: Variable) -> Update:
        looks = self._use_nesterov

        def update(g: Value, w: Value, a: Value, rate: Value, momentum: Value) -> tuple[Value, ...]:
            moved = sgd(w, g, a, lr=rate, momentum=momentum, nesterov=looks, rate_first=True)
            return moved.values

        return update

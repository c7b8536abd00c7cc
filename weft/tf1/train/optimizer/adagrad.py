"""Adagrad (Duchi et al., 2011)."""

from __future__ import annotations

from typing import Any

from weft.errors import GraphError
from weft.ir.node import Value
from weft.ops.optimizer.root import adagrad
from weft.tf1.train.optimizer.base import Optimizer, Update
from weft.tf1.variable import initializer
from weft.tf1.variable.variable import Variable


class AdagradOptimizer(Optimizer):
    """a += gradient ** 2; var -= learning_rate * gradient / sqrt(a)

    Args:
        learning_rate: a number, a tensor, or a function that returns one.
        initial_accumulator_value: a before the first step, above 0.

    Raises:
        GraphError: it is not above 0.
    """

    _kind = "ApplyAdagrad"
    _lazy = True

    def __init__(
        self, learning_rate: Any, initial_accumulator_value: float = 0.1, use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:  # fmt: skip
        if initial_accumulator_value <= 0.0:
            raise GraphError(
                f"initial_accumulator_value: expected > 0, got {initial_accumulator_value}"
            )
        super().__init__(use_locking, name)
        self._keep(learning_rate=learning_rate)
        self._fresh = {"accumulator": initializer.constant_initializer(initial_accumulator_value)}

    def _update_of(self, var: Variable) -> Update:
        def update(g: Value, w: Value, a: Value, rate: Value) -> tuple[Value, ...]:
            return adagrad(w, g, a, lr=rate, rate_first=True, reciprocal=True).values

        return update

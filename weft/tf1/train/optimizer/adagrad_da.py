"""Adagrad by dual averaging (Duchi et al., 2011)."""

from __future__ import annotations

from typing import Any

from weft.errors import ArgumentError
from weft.ir.node import Value
from weft.ops.optimizer.proximal import dual_averaging
from weft.tf1.framework.graph import fail
from weft.tf1.train.optimizer.base import Optimizer, Update
from weft.tf1.variable import initializer
from weft.tf1.variable.variable import Variable


class AdagradDAOptimizer(Optimizer):
    """Parameters from the sums of all gradients and of their squares, sparse with a penalty.

    Args:
        learning_rate: a number, a tensor, or a function that returns one.
        global_step: the variable that counts the steps.
        initial_gradient_squared_accumulator_value: the sum of squares before the first step, above
            0.
        l1_regularization_strength, l2_regularization_strength: of the penalties.

    Raises:
        ArgumentError: the initial sum is not above 0.
    """

    _kind = "ApplyAdagradDA"
    _lazy = True

    def __init__(
        self, learning_rate: Any, global_step: Any,
        initial_gradient_squared_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0, l2_regularization_strength: float = 0.0,
        use_locking: bool = False, name: str = "AdagradDA",
    ) -> None:  # fmt: skip
        super().__init__(use_locking, name)
        first = initial_gradient_squared_accumulator_value
        if first <= 0:
            text = f"initial_gradient_squared_accumulator_value: expected > 0, got {first}"
            raise fail(ArgumentError, text)
        self._step = global_step
        self._keep(
            learning_rate=learning_rate, l1_regularization_strength=l1_regularization_strength,
            l2_regularization_strength=l2_regularization_strength,
        )  # fmt: skip
        squares = initializer.constant_initializer(first)
        self._fresh = {"gradient_accumulator": None, "gradient_squared_accumulator": squares}

    def _hyperparameters(self) -> dict[str, Any]:
        return {**super()._hyperparameters(), "global_step": self._step.value() + 1}

    def _update_of(self, var: Variable) -> Update:
        def update(g: Value, w: Value, gradients: Value, squares: Value, *rates: Value) -> Any:
            rate, l1, l2, step = rates
            new = dual_averaging(w, g, gradients, squares, lr=rate, l1=l1, l2=l2, step=step)
            return new.values

        return update

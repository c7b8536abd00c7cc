"""Follow the regularized leader (McMahan et al., 2013)."""

from __future__ import annotations

from typing import Any

from weft.errors import ArgumentError
from weft.ir.node import Value
from weft.ops.optimizer.proximal import ftrl
from weft.tf1.framework.graph import fail
from weft.tf1.train.optimizer.base import Optimizer, Update
from weft.tf1.variable import initializer
from weft.tf1.variable.variable import Variable


class FtrlOptimizer(Optimizer):
    """Follow the regularized leader, for sparse models of clicks and the like.

    Args:
        learning_rate: a number, a tensor, or a function that returns one.
        learning_rate_power: of the sums of squared gradients; 0 for a fixed rate.
        initial_accumulator_value: these sums before the first step, 0 or more.
        l1_regularization_strength, l2_regularization_strength: of the penalties, 0 or more.
        accum_name, linear_name: of the slots; the optimizer's name and `_1` by default.
        l2_shrinkage_regularization_strength: of a penalty that only steps see, 0 or more.

    Raises:
        ArgumentError: a number is out of its range.
    """

    _kind = "ApplyFtrl"
    _lazy = True

    def __init__(
        self, learning_rate: Any, learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1, l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0, use_locking: bool = False, name: str = "Ftrl",
        accum_name: str | None = None, linear_name: str | None = None,
        l2_shrinkage_regularization_strength: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(use_locking, name)
        not_negative(
            "FtrlOptimizer",
            initial_accumulator_value=initial_accumulator_value,
            l1_regularization_strength=l1_regularization_strength,
            l2_regularization_strength=l2_regularization_strength,
            l2_shrinkage_regularization_strength=l2_shrinkage_regularization_strength,
        )
        if learning_rate_power > 0:
            text = f"FtrlOptimizer: expected learning_rate_power <= 0, got {learning_rate_power}"
            raise fail(ArgumentError, text)
        self._keep(
            learning_rate=learning_rate, l1_regularization_strength=l1_regularization_strength,
            l2_regularization_strength=l2_regularization_strength,
            learning_rate_power=learning_rate_power,
            l2_shrinkage_regularization_strength=l2_shrinkage_regularization_strength,
        )  # fmt: skip
        first = initializer.constant_initializer(initial_accumulator_value)
        self._fresh = {"accum": first, "linear": None}
        self._names = {"accum": accum_name or name, "linear": linear_name or name}

    def _slot_name(self, slot: str) -> str:
        return self._names[slot]

    def _update_of(self, var: Variable) -> Update:
        def update(g: Value, w: Value, total: Value, linear: Value, *rates: Value) -> Any:
            rate, l1, l2, power, shrinkage = rates
            return ftrl(
                w, g, total, linear, lr=rate, l1=l1, l2=l2, power=power, shrinkage=shrinkage
            ).values

        return update


def not_negative(kind: str, **numbers: float) -> None:
    """Refuse numbers below 0."""
    for name, number in numbers.items():
        if number < 0:
            raise fail(ArgumentError, f"{kind}: expected {name} >= 0, got {number}")

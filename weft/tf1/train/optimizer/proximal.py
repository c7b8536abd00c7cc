"""Gradient descent and Adagrad with penalties that make parameters 0."""

from __future__ import annotations

from typing import Any

from weft.errors import ArgumentError
from weft.ir.node import Value
from weft.ops.optimizer import proximal
from weft.tf1.framework.graph import fail
from weft.tf1.train.optimizer.base import Optimizer, Update
from weft.tf1.variable import initializer
from weft.tf1.variable.variable import Variable

__all__ = ["ProximalAdagradOptimizer", "ProximalGradientDescentOptimizer"]


class ProximalGradientDescentOptimizer(Optimizer):
    """var -= learning_rate * gradient, then moved towards 0 (Duchi and Singer, 2009).

    Args:
        learning_rate: a number, a tensor, or a function that returns one.
        l1_regularization_strength: moves by this times the rate.
        l2_regularization_strength: divides by 1 + this times the rate.
    """

    _kind = "ApplyProximalGradientDescent"
    _lazy = True

    def __init__(
        self, learning_rate: Any, l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0, use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ) -> None:  # fmt: skip
        super().__init__(use_locking, name)
        self._keep(
            learning_rate=learning_rate, l1_regularization_strength=l1_regularization_strength,
            l2_regularization_strength=l2_regularization_strength,
        )  # fmt: skip

    def _update_of(self, var: Variable) -> Update:
        def update(g: Value, w: Value, rate: Value, l1: Value, l2: Value) -> tuple[Value, ...]:
            return proximal.proximal_descent(w, g, lr=rate, l1=l1, l2=l2).values

        return update


class ProximalAdagradOptimizer(Optimizer):
    """A step of Adagrad, then moved towards 0 at its rates.

    Args:
        learning_rate: a number, a tensor, or a function that returns one.
        initial_accumulator_value: the sum of squared gradients before the first step, above 0.
        l1_regularization_strength, l2_regularization_strength: as in gradient descent.

    Raises:
        ArgumentError: the initial sum is not above 0.
    """

    _kind = "ApplyProximalAdagrad"
    _lazy = True

    def __init__(
        self, learning_rate: Any, initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0, l2_regularization_strength: float = 0.0,
        use_locking: bool = False, name: str = "ProximalAdagrad",
    ) -> None:  # fmt: skip
        super().__init__(use_locking, name)
        if initial_accumulator_value <= 0:
            text = f"initial_accumulator_value: expected > 0, got {initial_accumulator_value}"
            raise fail(ArgumentError, text)
        self._keep(
            learning_rate=learning_rate, l1_regularization_strength=l1_regularization_strength,
            l2_regularization_strength=l2_regularization_strength,
        )  # fmt: skip
        self._fresh = {"accumulator": initializer.constant_initializer(initial_accumulator_value)}

    def _update_of(self, var: Variable) -> Update:
        def update(
            g: Value, w: Value, total: Value, rate: Value, l1: Value, l2: Value
        ) -> tuple[Value, ...]:
            return proximal.proximal_adagrad(w, g, total, lr=rate, l1=l1, l2=l2).values

        return update

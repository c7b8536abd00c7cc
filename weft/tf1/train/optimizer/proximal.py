"""Penalties that make parameters 0: proximal steps, Adagrad by dual averaging, FTRL."""

from __future__ import annotations

from typing import Any

from weft.errors import ArgumentError
from weft.ir.node import Value
from weft.ops.optimizer import proximal
from weft.tf1.framework.graph import fail
from weft.tf1.train.optimizer.base import Optimizer
from weft.tf1.variable import initializer

__all__ = [
    "AdagradDAOptimizer", "FtrlOptimizer", "ProximalAdagradOptimizer",
    "ProximalGradientDescentOptimizer",
]  # fmt: skip


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

    @staticmethod
    def _rule(g: Value, w: Value, rate: Value, l1: Value, l2: Value) -> tuple[Value, ...]:
        return proximal.proximal_descent(w, g, lr=rate, l1=l1, l2=l2).values


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

    @staticmethod
    def _rule(
        g: Value, w: Value, total: Value, rate: Value, l1: Value, l2: Value
    ) -> tuple[Value, ...]:
        return proximal.proximal_adagrad(w, g, total, lr=rate, l1=l1, l2=l2).values


class AdagradDAOptimizer(Optimizer):
    """Adagrad by dual averaging (Duchi et al., 2011): sparse parameters from sums of gradients.

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

    @staticmethod
    def _rule(
        g: Value, w: Value, gradients: Value, squares: Value, *rates: Value
    ) -> tuple[Value, ...]:
        options = dict(zip(("lr", "l1", "l2", "step"), rates, strict=True))
        return proximal.dual_averaging(w, g, gradients, squares, **options).values


class FtrlOptimizer(Optimizer):
    """Follow the regularized leader (McMahan et al., 2013), for sparse models of clicks.

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

    @staticmethod
    def _rule(g: Value, w: Value, total: Value, linear: Value, *rates: Value) -> tuple[Value, ...]:
        names = ("lr", "l1", "l2", "power", "shrinkage")
        options = dict(zip(names, rates, strict=True))
        return proximal.ftrl(w, g, total, linear, **options).values


def not_negative(kind: str, **numbers: float) -> None:
    """Refuse numbers below 0."""
    for name, number in numbers.items():
        if number < 0:
            raise fail(ArgumentError, f"{kind}: expected {name} >= 0, got {number}")
